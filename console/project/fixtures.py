"""Reads the fixture tests of a pipeline, `plans/<pipeline>/tests/*.yaml`; they are part of no plan and of no digest."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from console.errors import Problem, Problems, UsageError
from console.model.fixture import ExpectedRows, Fixture, FixtureRow, FixtureValue, GivenRows
from console.project import documents as docs
from console.project.explain import validated
from console.project.names import did_you_mean, wrong_name
from console.project.yaml import Document, Keys, parse, read_text

FOLDER = "tests"


def fixtures_folder(root: Path, pipeline: str) -> Path:
    return root / "plans" / pipeline / FOLDER


def read_fixtures(root: Path, pipeline: str, names: Collection[str] = ()) -> tuple[Fixture, ...]:
    """The fixture tests of a pipeline, by name.

    root    of the project
    names   those to be read; () for all
    raises  UsageError for an unknown name; Problems with every mistake in the files, by line
    """
    paths, problems = _paths(fixtures_folder(root, pipeline), root)
    for name in names:
        if name not in paths:
            hint = did_you_mean(name, paths, "tests") or f"write {FOLDER}/{name}.yaml: docs/testing.md"
            raise UsageError(f"{pipeline} has no test {name!r:.80}", hint=hint)
    read: list[Fixture] = []
    for name, path in paths.items():
        if names and name not in names:
            continue
        try:
            read.append(parsed(name, read_text(path, root), path.relative_to(root).as_posix()))
        except Problems as invalid:
            problems += invalid.problems
    if problems:
        raise Problems.of(problems)
    return tuple(read)


def _paths(folder: Path, root: Path) -> tuple[dict[str, Path], list[Problem]]:
    """The files by name, and a problem for each that is not a test."""
    paths: dict[str, Path] = {}
    problems: list[Problem] = []
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        if entry.name.startswith(".") or entry.name == "README.md":
            continue
        where = f"{entry.relative_to(root).as_posix()}:1:1"
        if entry.suffix != ".yaml":
            message = f"a stray file or folder in {FOLDER}/"
            problems.append(Problem(code="P020", message=message, where=where, hint="files here end in .yaml"))
        elif wrong := wrong_name(entry.stem):
            problems.append(Problem(code="P013", message=wrong, where=where, hint="rename the file"))
        else:
            paths[entry.stem] = entry
    return paths, problems


def parsed(name: str, text: str, file: str) -> Fixture:
    """One file as a fixture.

    file    as shown in errors
    raises  Problems
    """
    document = parse(text, file)
    doc, problems = validated(docs.FixtureDoc, document, name)
    if doc is None:
        raise Problems.of(problems)
    return Fixture(
        name=name,
        file=file,
        given=tuple(_given(document, table) for table in doc.given),
        expected=tuple(_expected(document, node, spec) for node, spec in doc.expect.items()),
        description=doc.description,
        now=doc.now,
    )


def _given(document: Document, table: str) -> GivenRows:
    at: Keys = ("given", table)
    return GivenRows(table, tuple(_rows(document, at)), document.place(at, key=True))


def _expected(document: Document, label: str, spec: docs.ExpectationDoc) -> ExpectedRows:
    at: Keys = ("expect", label)
    rows: Keys = at if isinstance(document.get(at), list) else (*at, "rows")
    return ExpectedRows(
        node=label.partition(" ")[0],
        label=label,
        rows=tuple(_rows(document, rows)),
        parameters=_values(document, (*at, "parameters")),
        key=tuple(spec.key),
        match=spec.match,
        ordered=spec.ordered,
        tolerance=spec.tolerance,
        where=document.place(at, key=True),
    )


def _rows(document: Document, at: Keys) -> Iterator[FixtureRow]:
    for number in range(len(document.get(at) or ())):
        yield FixtureRow(_values(document, (*at, number)), document.place((*at, number)))


def _values(document: Document, at: Keys) -> dict[str, FixtureValue]:
    written: dict[str, Any] = document.get(at) or {}
    return {
        name: FixtureValue(value, document.raw.get((*at, name), ""), document.place((*at, name)))
        for name, value in written.items()
    }
