"""All pipelines of a project, each as desired in every region."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from console.errors import Problem
from console.model.pipeline import Pipeline
from console.project.names import SAVED, did_you_mean, wrong_name
from console.project.pipeline.build import build
from console.project.pipeline.checks import across
from console.project.pipeline.folder import read_folder
from console.project.pipeline.override import overlay
from console.project.regions import RegionEntry

Desired = dict[tuple[str, str], Pipeline]


def read_pipelines(root: Path, entries: Sequence[RegionEntry]) -> tuple[Desired, dict[str, Pipeline], list[Problem]]:
    """Every folder of plans/, with each region's overrides.

    returns  (pipeline, region) → pipeline; by name, sorted, the pipelines without overrides; all that is wrong
    """
    paths, problems = _folders(root)
    desired: Desired = {}
    bases: dict[str, Pipeline] = {}
    for path in paths:
        folder, wrong = read_folder(path, root)
        base, more = build(folder)
        problems += [*wrong, *more]
        bases[path.name] = base
        for entry in entries:
            differs = entry.overrides.get(folder.name)
            desired[folder.name, entry.name] = base
            if differs is not None:
                laid, overrides, wrong = overlay(folder, entry.document, differs.tables, differs.variables)
                desired[folder.name, entry.name], more = build(laid, overrides)
                problems += [*wrong, *more]
    return desired, bases, [*problems, *across(tuple(bases.values())), *_strangers(entries, tuple(bases))]


def _folders(root: Path) -> tuple[list[Path], list[Problem]]:
    paths: list[Path] = []
    problems: list[Problem] = []
    for path in sorted((root / "plans").iterdir()):
        where = f"plans/{path.name}:1:1"
        if path.name.startswith(".") or path.name in ("README.md", SAVED):
            continue
        if not path.is_dir():
            hint = "a pipeline is a folder: plans/NAME/pipeline.yaml"
            problems.append(Problem(code="P020", message="a stray file in plans/", where=where, hint=hint))
        elif wrong := wrong_name(path.name):
            problems.append(Problem(code="P013", message=wrong, where=where, hint="rename the folder"))
        elif not path.resolve().is_relative_to(root):
            problems.append(
                Problem(code="P001", message="the link leads out of the project", where=where, hint="copy the folder")
            )
        else:
            paths.append(path)
    if not paths and not problems:
        problems.append(
            Problem(
                code="P011", message="no pipeline is declared", where="plans/:1:1", hint="write plans/web/pipeline.yaml"
            )
        )
    return paths, problems


def _strangers(entries: Sequence[RegionEntry], names: Sequence[str]) -> Iterator[Problem]:
    for entry in entries:
        for name in entry.overrides:
            if name not in names:
                where = entry.document.place(("overrides", name), key=True)
                hint = did_you_mean(name, names, "pipelines")
                yield Problem(
                    code="P034",
                    message=f"overrides: no pipeline is named `{name}`",
                    where=where,
                    hint=hint,
                    node=entry.name,
                )
