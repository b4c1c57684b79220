"""A generic migration as an edit of a landing table's file, after which the planner sees a change like any other.

The text is edited in place: comments, order and style of everything else stay.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from console.errors import DataError
from console.propagation.dialects.delta import TYPES
from console.propagation.migration import (
    KEPT,
    AddColumn,
    ChangeColumn,
    DropColumn,
    Migration,
    ReplaceColumn,
    SwapColumns,
)

Places = Mapping[tuple[str | int, ...], str]  # path → `file:line:column`
_PLAIN: Final = re.compile(r"[A-Za-z_][\w$]*", re.ASCII)
# plain words that YAML or people read as something else
_TAKEN: Final = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")


@dataclass(frozen=True, slots=True)
class Declared:
    """A table's file, read.

    text    as it is
    data    its values
    keys    the place of each key;  values  the place of each value
    """

    text: str
    data: Mapping[str, Any]
    keys: Places
    values: Places


def edited(table: Declared, migration: Migration) -> str:
    """The file's text after a migration; the same text where it says so already.

    raises  DataError where the file contradicts the migration
    """
    columns = table.data.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise DataError("the table's file declares no columns", hint="write columns: {name: type}")
    edit = _Edit(table, columns)
    match migration.operation:
        case AddColumn() as operation:
            return edit.added(operation)
        case DropColumn(name=name):
            return edit.dropped(name)
        case SwapColumns(columns=pairs):
            return edit.renamed(dict(pairs))
        case ChangeColumn() as operation:
            return edit.changed(operation)
        case ReplaceColumn(name=name):
            raise DataError(f"a file of names cannot express that {name} becomes another column")
        case _:
            assert_never(migration.operation)


@dataclass(frozen=True)
class _Edit:
    table: Declared
    columns: Mapping[str, Any]

    def added(self, operation: AddColumn) -> str:
        name, word = operation.name, TYPES.store_type(operation.data_type).word
        if name in self.columns:
            if not TYPES.fits(self._type(name), operation.data_type):
                raise DataError(f"the column {name} is declared as {self._type(name)}, which is not of type {word}")
            return self.table.text
        entry = f"{_key(name)}: {_value(word)}"
        last = list(self.columns)[-1]
        if self._flow:
            return self._put(self._end_of_value(last), f", {entry}")
        start = self._start(last)
        indent = " " * (start - self.table.text.rfind("\n", 0, start) - 1)
        end = self._end_of_block(last)
        lead = "" if self.table.text[:end].endswith("\n") else "\n"
        return self._put(end, f"{lead}{indent}{entry}\n")

    def dropped(self, name: str) -> str:
        if name not in self.columns:
            return self.table.text
        if len(self.columns) == 1:
            raise DataError(f"{name} is the table's only column", hint="drop the table instead")
        text, start = self.table.text, self._start(name)
        if not self._flow:
            return text[: text.rfind("\n", 0, start) + 1] + text[self._end_of_block(name) :]
        names = list(self.columns)
        rank = names.index(name)
        if rank + 1 < len(names):
            return text[:start] + text[self._start(names[rank + 1]) :]
        return text[: self._end_of_value(names[rank - 1])] + text[self._end_of_value(name) :]

    def renamed(self, pairs: Mapping[str, str]) -> str:
        """The keys change; their declarations move with them. A ring looks the same before and after: ask once."""
        given_up = set(pairs) - set(pairs.values())
        if given_up and not given_up & set(self.columns) and set(pairs.values()) <= set(self.columns):
            return self.table.text
        if missing := sorted(set(pairs) - set(self.columns)):
            raise DataError(f"the table declares no column {missing[0]}")
        if taken := sorted((set(pairs.values()) - set(pairs)) & set(self.columns)):
            raise DataError(f"the table declares a column {taken[0]} already")
        text = self.table.text
        for old in sorted(pairs, key=self._start, reverse=True):
            start = self._start(old)
            text = text[:start] + _key(pairs[old]) + text[_end_of_scalar(text, start) :]
        return text

    def changed(self, operation: ChangeColumn) -> str:
        name, to = operation.name, operation.to
        if name not in self.columns:
            raise DataError(f"the table declares no column {name}")
        spec, path = self.columns[name], ("columns", name)
        edits: list[tuple[int, int, str]] = []
        whole = isinstance(spec, dict)
        if to.data_type is not KEPT and not TYPES.fits(self._type(name), to.data_type):
            start = self._offset(self.table.values[(*path, "type")] if whole else self.table.values[path])
            edits.append((start, _end_of_scalar(self.table.text, start), _value(TYPES.store_type(to.data_type).word)))
        if to.nullable is True and whole and spec.get("nullable") is False:
            start = self._offset(self.table.values[(*path, "nullable")])
            edits.append((start, _end_of_scalar(self.table.text, start), "true"))
        text = self.table.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _type(self, name: str) -> str:
        spec = self.columns[name]
        return str(spec.get("type", "")) if isinstance(spec, dict) else str(spec)

    @property
    def _flow(self) -> bool:
        return self.table.text[self._offset(self.table.values[("columns",)])] == "{"

    def _offset(self, place: str) -> int:
        """A place as an offset in the text."""
        _, line, column = place.rsplit(":", 2)
        lines = self.table.text.splitlines(keepends=True)
        return sum(map(len, lines[: int(line) - 1])) + int(column) - 1

    def _start(self, name: str) -> int:
        return self._offset(self.table.keys[("columns", name)])

    def _put(self, at: int, new: str) -> str:
        return self.table.text[:at] + new + self.table.text[at:]

    def _end_of_value(self, name: str) -> int:
        """Behind the value of an entry of a flow mapping."""
        text, at = self.table.text, self._offset(self.table.values[("columns", name)])
        if text[at] not in "{[":
            return _end_of_scalar(text, at)
        depth = 0
        while True:
            if text[at] in "'\"":
                at = _end_of_scalar(text, at)
                continue
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(text[at], 0)
            at += 1
            if not depth:
                return at

    def _end_of_block(self, name: str) -> int:
        """Behind the last line of an entry of a block mapping: the first line that is not indented deeper."""
        text, start = self.table.text, self._start(name)
        indent = start - text.rfind("\n", 0, start) - 1
        end = at = _next_line(text, start)
        while at < len(text):
            line = text[at : _next_line(text, at)]
            bare = line.strip()
            if bare and len(line) - len(line.lstrip(" ")) <= indent:
                break
            at = _next_line(text, at)
            end = at if bare and not bare.startswith("#") else end
        return end


def _next_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _end_of_scalar(text: str, at: int) -> int:
    """Behind a scalar on one line: a quoted one, or a plain one up to what ends it."""
    if text[at] == "'":
        match = re.compile(r"'(?:[^']|'')*'").match(text, at)
    elif text[at] == '"':
        match = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL).match(text, at)
    else:
        # brackets belong to types: decimal(10,2), array<string>; a comma ends a scalar only outside of them
        match = re.compile(r"(?:[^\s,:{}\[\]#(<]|\([^)\n]*\)|<[^>\n]*>+|:(?=\S)| +(?=[^\s#:,}\]]))+").match(text, at)
    assert match is not None, "a value stands here"
    return match.end()


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _TAKEN else '"' + _escaped(name) + '"'


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _value(word: str) -> str:
    """A type as YAML: quoted where a comma would end it."""
    return f'"{word}"' if "," in word or ":" in word else word
