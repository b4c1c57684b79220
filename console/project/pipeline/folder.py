"""Reads one pipeline's folder: its nodes by file, not yet checked."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from console.errors import Problem, Problems
from console.model.sources import Sources
from console.project.names import did_you_mean, wrong_name
from console.project.yaml import Document, parse, read_text, refuse

KINDS = ("materializations", "endpoints", "copies", "sinks")
FOLDERS = frozenset((*KINDS, "tables", "tests", "migrations"))
CALLS = ".calls.yaml"  # of an endpoint, behind its name
FILES = frozenset(("pipeline.yaml", "replication.yaml", "README.md"))
# read by modules of their own
_ELSEWHERE = frozenset(("migrations", "tests"))
_COMMENT = re.compile(r"\s*/\*(.*?)\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Query:
    """A SQL file: its leading comment as a document, the SQL after it, and the place of the SQL's first character."""

    front: Document
    sql: str
    where: str


@dataclass(slots=True, kw_only=True)
class Folder:
    """Contents of a pipeline's folder. Names are file names, checked; contents are not.

    file     `plans/web`
    queries  kind (`endpoints`) → name → query
    texts    name below the folder (`tables/requests.yaml`) → text
    calls    endpoint → its recorded calls
    """

    name: str
    file: str
    head: Document
    tables: dict[str, Document] = field(default_factory=dict)
    queries: dict[str, dict[str, Query]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    calls: dict[str, Document] = field(default_factory=dict)
    sources: Sources | None = None


def read_folder(path: Path, root: Path) -> tuple[Folder, list[Problem]]:
    """All nodes in `plans/<pipeline>/`, and a problem for each file that cannot be read or does not belong there."""
    shown = path.relative_to(root).as_posix()
    folder = Folder(
        name=path.name, file=shown, head=Document(file=f"{shown}/pipeline.yaml"), queries={kind: {} for kind in KINDS}
    )
    problems: list[Problem] = []
    names = {entry.name for entry in path.iterdir()}
    if "pipeline.yaml" not in names:
        hint = did_you_mean("pipeline.yaml", names - FILES) or "write one; it may be empty"
        hint = hint if "?" in hint else "write one; it may be empty"
        problems.append(
            Problem(code="P011", message="`pipeline.yaml` is missing", where=f"{shown}/pipeline.yaml:1:1", hint=hint)
        )
    for entry in sorted(path.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and entry.name in FOLDERS:
            problems += [] if entry.name in _ELSEWHERE else _nodes(folder, entry, root)
        elif entry.is_dir() or entry.name not in FILES:
            known = {name for name in FOLDERS | FILES if (name in FOLDERS) == entry.is_dir()}
            what = "folder" if entry.is_dir() else "file"
            hint = did_you_mean(entry.name, known, f"known {what}s")
            place = f"{shown}/{entry.name}:1:1"
            problems.append(
                Problem(code="P020", message=f"unknown {what} `{entry.name}` in a pipeline", where=place, hint=hint)
            )
        elif entry.name == "pipeline.yaml":
            try:
                text = folder.texts[entry.name] = read_text(entry, root)
                folder.head = parse(text, f"{shown}/pipeline.yaml")
            except Problems as invalid:
                problems += invalid.problems
    folder.sources = Sources.of(folder.texts)
    return folder, problems


def _nodes(folder: Folder, path: Path, root: Path) -> list[Problem]:
    problems: list[Problem] = []
    suffix = ".yaml" if path.name == "tables" else ".sql"
    for entry in sorted(path.iterdir()):
        if entry.name.startswith(".") or entry.name == "README.md":
            continue
        shown = entry.relative_to(root).as_posix()
        if path.name == "endpoints" and entry.name.endswith(CALLS):
            try:
                folder.calls[entry.name.removesuffix(CALLS)] = parse(read_text(entry, root), shown)
            except Problems as invalid:
                problems += invalid.problems
            continue
        if entry.suffix != suffix:
            hint = f"files here end in {suffix}"
            problems.append(
                Problem(code="P020", message=f"a stray file or folder in {path.name}/", where=f"{shown}:1:1", hint=hint)
            )
        elif wrong := wrong_name(entry.stem):
            problems.append(Problem(code="P013", message=wrong, where=f"{shown}:1:1", hint="rename the file"))
        else:
            try:
                text = folder.texts[f"{path.name}/{entry.name}"] = read_text(entry, root)
                if suffix == ".yaml":
                    folder.tables[entry.stem] = parse(text, shown)
                else:
                    folder.queries[path.name][entry.stem] = split(text, shown)
            except Problems as invalid:
                problems += invalid.problems
    return problems


def split(text: str, file: str) -> Query:
    """Front matter and SQL of one file.

    The text around the front matter is blanked rather than cut, so that its places are those of the file.

    raises  Problems if the leading comment is not YAML, or no SQL follows it
    """
    front, start = Document(file=file), 0
    if comment := _COMMENT.match(text):
        start = comment.end()
        blank = re.sub(r"[^\r\n]", " ", text[: comment.start(1)])
        front = _front(blank + comment[1].rstrip(), file)
    elif text.lstrip().startswith("/*"):
        raise refuse("P002", "the leading comment has no end", f"{file}:1:1", "end it with */")
    sql = text[start:].strip()
    if not sql:
        raise refuse("P011", "no SQL in the file", f"{file}:1:1", "write a SELECT after the leading comment")
    before = text[: text.index(sql[0], start)].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return Query(front, sql, f"{file}:{len(before)}:{len(before[-1]) + 1}")


def _front(yaml: str, file: str) -> Document:
    try:
        return parse(yaml, file)
    except Problems as invalid:
        first = invalid.problems[0]
        hint = first.hint or "the leading /* … */ is YAML; put each key on its own line, prose behind --"
        raise refuse(first.code, first.message, first.where, hint) from None
