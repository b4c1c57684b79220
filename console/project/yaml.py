"""The only YAML parser of the project: bounded, YAML 1.2 scalars, no tags, with the place of every key and value.

source  YAML 1.2.2 §10.3 (core schema); stricter where it would surprise a reader: `0123` is text
"""

import copy
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from console.errors import Problem, Problems

LIBYAML: Any = None  # the parser, or None of a PyYAML that was built without it
with suppress(ImportError):
    from yaml import _yaml

    LIBYAML = _yaml.CParser

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
MAX_ALIASES = 100
# pure PyYAML needs about 50 µs a node, so size alone does not bound the time
MAX_NODES = 10_000

Keys = tuple[str | int, ...]

_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_READ_OTHERWISE = re.compile("[\t?\ufeff]|[|>][-+0-9]*#")  # by libyaml than by the pure loader
_TAB = re.compile(r"^ *\t", re.MULTILINE)
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_HINTS = {
    "mapping values are not allowed": "check the indentation, or quote a text that holds `: `",
    "could not find expected ':'": "write `key: value`, with a space after the colon",
    "expected <block end>": "check the indentation: keys of one mapping begin in the same column",
    "cannot start any token": "put the text in quotes",
    "expected a single document": "one file holds one document: remove the second `---`",
}


@dataclass(slots=True, kw_only=True)
class Document:
    """One file's values, with their places.

    file    as shown in errors, relative to the project
    data    a mapping of text keys to text, int, float, bool, None, lists and mappings
    keys    path → `file:line:column` of the key;  values  likewise, of the value
    raw     path → the scalar as written
    quoted  path → the quote of a scalar that is written in some, or the sign of a block
    """

    file: str
    data: dict[str, Any] = field(default_factory=dict)
    keys: dict[Keys, str] = field(default_factory=dict)
    values: dict[Keys, str] = field(default_factory=dict)
    raw: dict[Keys, str] = field(default_factory=dict)
    quoted: dict[Keys, str] = field(default_factory=dict)

    def place(self, path: Keys, *, key: bool = False) -> str:
        """Place of a value (or of its key); of its nearest parent if it does not exist."""
        if key and path in self.keys:
            return self.keys[path]
        while path:
            if path in self.values:
                return self.values[path]
            path = path[:-1]
        return self.values.get((), f"{self.file}:1:1")

    def get(self, path: Keys) -> Any:
        """The value at a path, or None."""
        value: Any = self.data
        for step in path:
            if isinstance(value, dict):
                value = value.get(str(step))
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def written(self, path: Keys) -> str:
        """The value at a path on one line, its scalars as written."""
        match self.get(path):
            case dict() as mapping:
                return "{" + ", ".join(f"{key}: {self.written((*path, key))}" for key in mapping) + "}"
            case list() as items:
                return "[" + ", ".join(self.written((*path, i)) for i in range(len(items))) + "]"
            case _:
                return self.raw.get(path, "")

    def copy(self) -> "Document":
        return Document(
            file=self.file,
            data=copy.deepcopy(self.data),
            keys=dict(self.keys),
            values=dict(self.values),
            raw=dict(self.raw),
            quoted=dict(self.quoted),
        )

    def put(self, path: Keys, source: "Document", at: Keys) -> None:
        """Replace the value at `path` (its parent exists) by the value at `at` of another document, with its places."""
        self._forget(path)
        self.get(path[:-1])[path[-1]] = copy.deepcopy(source.get(at))  # a changed key keeps its position
        for ours, theirs in zip(self._places(), source._places(), strict=True):
            ours.update({path + p[len(at) :]: text for p, text in theirs.items() if p[: len(at)] == at})

    def drop(self, path: Keys) -> None:
        """Remove the value at `path`, if there is one."""
        parent = self.get(path[:-1])
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
        self._forget(path)

    def _places(self) -> tuple[dict[Keys, str], ...]:
        return self.keys, self.values, self.raw, self.quoted

    def _forget(self, path: Keys) -> None:
        for places in self._places():
            for old in [p for p in places if p[: len(path)] == path]:
                del places[old]


def refuse(code: str, message: str, where: str, hint: str = "") -> Problems:
    """One problem, ready to be raised."""
    return Problems.of([Problem(code=code, message=message, where=where, hint=hint)])


def read_text(path: Path, root: Path) -> str:
    """A small regular file of the project as text.

    path  below `root`, also after following links: a link out of the project, a pipe or a device is not read, nor
          what everyone may write, or put another file in the place of
    raises  Problems at the file, at its folder, or at the first byte that is not text
    """
    shown = path.relative_to(root).as_posix()
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(root.resolve()):
            raise refuse("P001", "the link leads out of the project", f"{shown}:1:1", "copy the file into the project")
        mode = real.stat().st_mode
        if not stat.S_ISREG(mode):
            raise refuse("P001", "not a regular file", f"{shown}:1:1", "remove it")
        if mode & stat.S_IWOTH:
            raise refuse("P004", "everyone on this machine may write it", f"{shown}:1:1", f"chmod o-w {shown}")
        if folder := _open_folder(path, root) or (real != path and _open_folder(real, root.resolve())):
            raise refuse("P004", "everyone on this machine may write it", f"{folder}/:1:1", f"chmod o-w {folder}")
        # a pipe put there between the check and the opening must not block
        handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise refuse("P001", "not a regular file", f"{shown}:1:1", "remove it")
            data = file.read(MAX_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise refuse("P001", f"cannot be read: {why.lower()}", f"{shown}:1:1") from None
    if len(data) > MAX_BYTES:
        raise refuse("P001", f"larger than {MAX_BYTES // 1024} KiB", f"{shown}:1:1", "split the file")
    return _decode(data, shown)


def _open_folder(path: Path, root: Path) -> str:
    """The nearest folder around a file, up to the project's root, that everyone may write; "" where there is none."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        # a sticky root keeps its regions/ and plans/; a sticky folder below it would still take files in
        if mode & stat.S_IWOTH and not (folder == root and mode & stat.S_ISVTX):
            return folder.relative_to(root).as_posix()
        if folder == root:
            break
    return ""


def _decode(data: bytes, file: str) -> str:
    if data[:3] == b"\xef\xbb\xbf" or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise refuse("P001", "begins with a byte order mark", f"{file}:1:1", "save it as UTF-8 without a BOM")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        raise refuse("P001", "not UTF-8", _place(file, before), "save it as UTF-8") from None
    if bad := _UNREADABLE.search(text):
        message = f"holds the control character {bad[0]!a}"
        raise refuse("P001", message, _place(file, text[: bad.start()]), "remove it")
    return text


def _place(file: str, before: str) -> str:
    lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return f"{file}:{len(lines)}:{len(lines[-1]) + 1}"


def parse(text: str, file: str) -> Document:
    """YAML text as a document; an empty one is an empty mapping.

    raises  Problems at the first thing that is not YAML, or that we refuse
    """
    if tab := _TAB.search(text):
        hint = "indent with spaces"
        raise refuse("P002", "a tab in the indentation", _place(file, text[: tab.end() - 1]), hint)
    document = Document(file=file)
    try:
        loader, node = _composed(text, file)
        if node is None or (isinstance(node, ScalarNode) and node.style is None and node.value == ""):
            return document
        if not isinstance(node, MappingNode):
            what = "a list" if isinstance(node, SequenceNode) else "text"
            raise refuse("P002", f"expected `key: value` lines, found {what}", loader.at(node.start_mark))
        document.data = _Builder(loader, document).value(node, ())
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, file) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        # PyYAML lets `chr()` of an escape beyond Unicode through
        raise refuse("P002", "not YAML: an invalid escape or character", f"{file}:1:1") from None
    return document


def _composed(text: str, file: str) -> "tuple[_Loader, Any]":
    """The text's only node, with the loader that composed it.

    libyaml takes a sixth of the pure loader's time. Whatever it refuses, and the little that it reads otherwise, is read by
    the pure one, so that values, places and messages are those of one parser (`tests/project/test_two_loaders.py`).
    """
    if LIBYAML is not None and not _READ_OTHERWISE.search(text):
        with suppress(yaml.YAMLError, ValueError, RecursionError, Problems):
            fast = _FastLoader(text, file)
            return fast, fast.get_single_node()
    pure = _Loader(text, file)
    return pure, pure.get_single_node()


def _syntax(error: yaml.MarkedYAMLError, file: str) -> Problems:
    mark = error.problem_mark or error.context_mark
    where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else f"{file}:1:1"
    problem = error.problem or error.context or "cannot be read"
    hint = next((hint for start, hint in _HINTS.items() if start in f"{error.context} {problem}"), "")
    return refuse("P002", f"not YAML: {problem}", where, hint)


class _Loader(yaml.SafeLoader):
    """The pure loader, used up to its node tree, with a limit on everything that can grow."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text)
        self.file = file
        self._depth = self._nodes = self._aliases = 0

    def at(self, mark: Any) -> str:
        return f"{self.file}:{mark.line + 1}:{mark.column + 1}"

    def _stop(self, message: str, mark: Any, hint: str) -> Problems:
        return refuse("P003", message, self.at(mark), hint)

    def fetch_directive(self) -> None:
        raise self._stop("YAML directives are not supported", self.get_mark(), "remove the line")

    def fetch_tag(self) -> None:
        raise self._stop("YAML tags are not supported", self.get_mark(), "remove the tag, or quote the text")

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        return ""  # scalars are resolved by `_scalar`, from their text

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        peek: Callable[[], Any] = self.peek_event  # PyYAML has no type annotations
        event = peek()
        self._depth += 1
        self._nodes += 1
        self._aliases += isinstance(event, yaml.AliasEvent)
        if self._depth > MAX_DEPTH:
            raise self._stop(f"nested deeper than {MAX_DEPTH} levels", event.start_mark, "flatten it")
        if self._nodes > MAX_NODES:
            raise self._stop(f"more than {MAX_NODES:,} values in one file", event.start_mark, "split the file")
        if self._aliases > MAX_ALIASES:
            raise self._stop(f"more than {MAX_ALIASES} aliases in one file", event.start_mark, "write them out")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _FastLoader(_Loader):
    """The same over libyaml's events. Raises YAMLError at what the pure parser refuses or places elsewhere: directives, tags,
    values of no character."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__("", file)
        self._events = LIBYAML(text)

    def check_event(self, *kinds: Any) -> bool:
        return bool(self._events.check_event(*kinds))

    def peek_event(self) -> Any:
        return self._events.peek_event()

    def get_event(self) -> Any:
        event = self._events.get_event()
        match event:
            case yaml.DocumentStartEvent() if event.version or event.tags:
                raise yaml.YAMLError
            case (
                yaml.ScalarEvent(style="", value="")
                | yaml.ScalarEvent(tag=str())
                | yaml.CollectionStartEvent(tag=str())
            ):
                raise yaml.YAMLError
            case yaml.ScalarEvent(style=""):
                event.style = None  # as the pure parser says of a plain one
        return event


class _Builder:
    """Nodes to plain values; fills the document's places on the way."""

    def __init__(self, loader: _Loader, document: Document) -> None:
        self._loader, self._document = loader, document
        self._open: set[int] = set()
        self._built = 0

    def value(self, node: Node, path: Keys) -> Any:
        where = self._loader.at(node.start_mark)
        self._document.values[path] = where
        self._built += 1
        # aliases of aliases grow without a limit of their own
        if self._built > MAX_NODES:
            raise refuse("P003", f"aliases expand to more than {MAX_NODES:,} values", where, "write them out")
        if isinstance(node, ScalarNode):
            self._document.raw[path] = node.value
            if node.style is not None:
                self._document.quoted[path] = node.style
            return self._scalar(node, where)
        if id(node) in self._open:
            raise refuse("P003", "an alias that contains itself", where, "write it out")
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, path)
            return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
        finally:
            self._open.remove(id(node))

    def _mapping(self, node: MappingNode, path: Keys) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key, value in node.value:
            where = self._loader.at(key.start_mark)
            if not isinstance(key, ScalarNode):
                raise refuse("P003", "a key that is a list or a mapping", where, "write the key as text")
            name = key.value
            self._scalar(key, where)
            if name == "<<" and key.style is None:
                raise refuse("P003", "merge keys (`<<`) are not supported", where, "write the keys out")
            if name in mapping:
                first = self._document.keys[(*path, name)]
                raise refuse("P003", f"the key `{name}` occurs twice", where, f"the first one is at {first}")
            self._document.keys[(*path, name)] = where
            mapping[name] = self.value(value, (*path, name))
        return mapping

    @staticmethod
    def _scalar(node: ScalarNode, where: str) -> Any:
        text = node.value
        if bad := _UNREADABLE.search(text):
            raise refuse("P003", f"a text with the control character {bad[0]!a}", where, "remove it")
        return _plain(text) if node.style is None else text


def _plain(text: str) -> Any:
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if len(text) > 40:  # too long for a number; converting one costs time quadratic in its digits
        return text
    if _INT.fullmatch(text):
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text, base)
    return float(text) if _FLOAT.fullmatch(text) else text
