"""Generic migrations: what changed in a PostgreSQL table, in no store's language. Frozen values and their JSON.

source  docs/migration.schema.json is generated from `schema()`
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Literal, assert_never

from console.errors import DataError
from console.model.codec import loads
from console.propagation.types import Type, parse

VERSION: Final = 1
MAX_BYTES: Final = 256 * 1024

Phase = Literal["pre", "post"]
Classification = Literal["safe", "widening", "destructive"]
PHASES: Final[tuple[Phase, ...]] = ("pre", "post")
CLASSIFICATIONS: Final[tuple[Classification, ...]] = ("safe", "widening", "destructive")
# what a default can say, as the published schema has it: a number, true, false, a quoted text, now() or []
DEFAULT: Final = (
    r"^(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|true|false|now\(\)|\[\]|'(?:[^'\x00]|'')*')$"
)
_DEFAULT: Final = re.compile(DEFAULT)


class Kept(Enum):
    """What a change leaves as it is (`None` is a value of its own: a default that is dropped)."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column.

    default  what rows without a value read: a number, `true`, `false`, a quoted text, `now()`, `[]`; None where there
             is none, or where only PostgreSQL can compute it
    """

    name: str
    data_type: Type
    nullable: bool = True
    default: str | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column goes, and its values with it."""

    name: str


@dataclass(frozen=True, slots=True)
class SwapColumns:
    """Names change hands at one instant: `{"a": "b", "b": "a"}` swaps, `{"a": "b"}` renames.

    columns  (old name, new name), sorted; each name at most once on either side
    """

    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Facets:
    """What a column is, or as much of it as a change touches or an observer knew; the rest is `KEPT`."""

    data_type: Type | Kept = KEPT
    nullable: bool | Kept = KEPT
    default: str | Kept | None = KEPT


FACETS: Final = tuple(Facets.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """A column's type, nullability or default changes.

    to              what changes, and into what
    was             the same before, as far as the observer knew it
    classification  `safe`: no store has anything to do or to lose; `widening`: stores must accept more before the first
                    such row arrives; `destructive`: a stored value may be lost, or nobody could prove that it is not
    """

    name: str
    to: Facets
    was: Facets
    classification: Classification


@dataclass(frozen=True, slots=True)
class ReplaceColumn:
    """From one instant on a name stands for another column: the one that had it goes, and its values with it.

    source  the column that takes the name along with its values, those that are stored and those that arrive; None: a
            new column, which holds nothing but what arrives
    to      what stands under the name from then on: of a new column all three, the default being what rows from before
            read; of another one what the observer knew
    """

    name: str
    source: str | None
    to: Facets = Facets()


Operation = AddColumn | DropColumn | SwapColumns | ChangeColumn | ReplaceColumn
# what consumers are told of before its rows arrive: names of theirs mean other columns from one instant on
TOLD: Final = (SwapColumns, ReplaceColumn)


@dataclass(frozen=True, slots=True)
class Migration:
    """One change of one table.

    phase  `pre`: before the application's own migration; `post`: after it, when no old writer is left
    """

    phase: Phase
    schema: str
    table: str
    operation: Operation

    @property
    def destructive(self) -> bool:
        """Applying it needs the operator's explicit word (P6)."""
        match self.operation:
            case DropColumn() | ReplaceColumn():
                return True
            case ChangeColumn(classification=found):
                return found == "destructive"
            case AddColumn() | SwapColumns():
                return False
            case _:
                assert_never(self.operation)

    @property
    def columns(self) -> frozenset[str]:
        """Every column name that it touches, old and new."""
        if isinstance(self.operation, SwapColumns):
            return frozenset(name for pair in self.operation.columns for name in pair)
        if isinstance(self.operation, ReplaceColumn) and self.operation.source is not None:
            return frozenset((self.operation.name, self.operation.source))
        return frozenset((self.operation.name,))

    @property
    def title(self) -> str:
        """A short name in words, fit for a file's name: `add_issues_title`."""
        match self.operation:
            case AddColumn(name=name):
                return f"add_{self.table}_{name}"
            case DropColumn(name=name):
                return f"drop_{self.table}_{name}"
            case ChangeColumn(name=name):
                return f"change_{self.table}_{name}"
            case SwapColumns(columns=columns):
                verb = "swap" if {old for old, _ in columns} == {new for _, new in columns} else "rename"
                return f"{verb}_{self.table}_" + "_".join(old for old, _ in columns)
            case ReplaceColumn(name=name):
                return f"replace_{self.table}_{name}"
            case _:
                assert_never(self.operation)

    def in_phase(self, phase: Phase) -> "Migration":
        return replace(self, phase=phase)


def default_phase(operation: Operation) -> Phase:
    """Additions before the application's migration, removals and new names after it."""
    match operation:
        case AddColumn():
            return "pre"
        case DropColumn() | SwapColumns() | ReplaceColumn():
            return "post"
        case ChangeColumn(classification=found):
            return "pre" if found == "widening" else "post"
        case _:
            assert_never(operation)


def swap(columns: Mapping[str, str]) -> SwapColumns:
    """A swap from old name → new name; names that end where they began are left out.

    raises  DataError where two columns would end with one name, or nothing is left
    """
    pairs = tuple(sorted((old, new) for old, new in columns.items() if old != new))
    if not pairs or len({new for _, new in pairs}) != len(pairs):
        raise DataError("swap_columns: every column needs a new name of its own")
    return SwapColumns(pairs)


def written(migration: Migration) -> str:
    """The text of a migration's file."""
    return json.dumps(to_data(migration), indent=2, ensure_ascii=False) + "\n"


def to_data(migration: Migration) -> dict[str, Any]:
    """A migration as the JSON that is committed, keys in the published order."""
    operation = migration.operation
    data: dict[str, Any]
    match operation:
        case AddColumn():
            data = {
                "type": "add_column",
                "name": operation.name,
                "data_type": str(operation.data_type),
                "nullable": operation.nullable,
                "default": operation.default,
            }
        case DropColumn():
            data = {"type": "drop_column", "name": operation.name}
        case SwapColumns():
            data = {"type": "swap_columns", "columns": dict(operation.columns)}
        case ChangeColumn():
            data = {
                "type": "change_column",
                "name": operation.name,
                **_facets_data(operation.to),
                "was": _facets_data(operation.was),
                "classification": operation.classification,
            }
        case ReplaceColumn():
            data = {
                "type": "replace_column",
                "name": operation.name,
                "from": operation.source,
                **_facets_data(operation.to),
            }
        case _:
            assert_never(operation)
    head = {"version": VERSION, "phase": migration.phase, "schema": migration.schema, "table": migration.table}
    return {**head, "operation": data}


def _facets_data(facets: Facets) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if facets.data_type is not KEPT:
        data["data_type"] = str(facets.data_type)
    if facets.nullable is not KEPT:
        data["nullable"] = facets.nullable
    if facets.default is not KEPT:
        data["default"] = facets.default
    return data


def read(text: str | bytes) -> Migration:
    """A migration file's content.

    raises  DataError for what is no JSON, or no migration
    """
    if len(text) > MAX_BYTES:
        raise DataError(f"larger than {MAX_BYTES // 1024} KiB")
    return from_data(loads(text))


def from_data(data: Any) -> Migration:
    """A migration from its JSON.

    raises  DataError naming the key that does not fit; unknown and missing ones included
    """
    head = _object(data, "migration", {"version", "phase", "schema", "table", "operation"})
    if head["version"] != VERSION or isinstance(head["version"], bool):
        raise DataError(f"version: expected {VERSION}, found {head['version']!r:.40}")
    phase = head["phase"]
    if phase not in PHASES:
        raise DataError(f"phase: expected pre or post, found {phase!r:.40}")
    operation = _operation(head["operation"])
    return Migration(phase, _name(head["schema"], "schema"), _name(head["table"], "table"), operation)


def _operation(data: Any) -> Operation:
    kind = data.get("type") if isinstance(data, dict) else None
    if kind == "add_column":
        found = _object(data, "operation", {"type", "name", "data_type", "nullable", "default"})
        facets = _facets(found, "operation")
        assert facets.data_type is not KEPT
        assert facets.nullable is not KEPT
        assert facets.default is not KEPT
        return AddColumn(_name(found["name"], "operation.name"), facets.data_type, facets.nullable, facets.default)
    if kind == "drop_column":
        return DropColumn(_name(_object(data, "operation", {"type", "name"})["name"], "operation.name"))
    if kind == "swap_columns":
        columns = _object(data, "operation", {"type", "columns"})["columns"]
        if not isinstance(columns, dict):
            raise DataError("operation.columns: expected an object of old name → new name")
        return swap({_name(old, "operation.columns"): _name(new, "operation.columns") for old, new in columns.items()})
    if kind == "change_column":
        return _change(data)
    if kind == "replace_column":
        return _replace(data)
    raise DataError(
        "operation.type: expected add_column, drop_column, swap_columns, change_column or replace_column,"
        f" found {kind!r:.40}"
    )


def _change(data: Any) -> ChangeColumn:
    found = _object(data, "operation", {"type", "name", "was", "classification"}, frozenset(FACETS))
    if found["classification"] not in CLASSIFICATIONS:
        raise DataError(f"operation.classification: expected one of {', '.join(CLASSIFICATIONS)}")
    to = _facets(found, "operation")
    if to == Facets():
        raise DataError("operation: a change_column changes data_type, nullable or default")
    was = _facets(_object(found["was"], "operation.was", frozenset(), frozenset(FACETS)), "operation.was")
    return ChangeColumn(_name(found["name"], "operation.name"), to, was, found["classification"])


def _replace(data: Any) -> ReplaceColumn:
    found = _object(data, "operation", {"type", "name", "from"}, frozenset(FACETS))
    name, source = _name(found["name"], "operation.name"), found["from"]
    if source is None:
        _object(data, "operation", {"type", "name", "from", *FACETS})
    elif _name(source, "operation.from") == name:
        raise DataError("operation.from: a column does not take the place of itself")
    return ReplaceColumn(name, source, _facets(found, "operation"))


def _facets(data: Mapping[str, Any], path: str) -> Facets:
    kind, nullable, default = (data.get(key, KEPT) for key in ("data_type", "nullable", "default"))
    if kind is not KEPT:
        try:
            kind = parse(_name(kind, f"{path}.data_type"))
        except ValueError as error:
            raise DataError(f"{path}.data_type: {error}") from None
    if nullable is not KEPT and not isinstance(nullable, bool):
        raise DataError(f"{path}.nullable: expected true or false")
    if default is not KEPT and default is not None and not (isinstance(default, str) and _DEFAULT.fullmatch(default)):
        raise DataError(
            f"{path}.default: expected a number, true, false, now(), [], a text in single quotes or null,"
            f" found {default!r:.60}"
        )
    return Facets(kind, nullable, default)


def _object(
    data: Any, path: str, needed: set[str] | frozenset[str], allowed: frozenset[str] = frozenset()
) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise DataError(f"{path}: expected an object, found {type(data).__name__}")
    if strange := sorted(set(data) - needed - allowed):
        raise DataError(f"{path}: unknown key {strange[0]!r:.60}")
    if missing := sorted(needed - set(data)):
        raise DataError(f"{path}: {missing[0]} is missing")
    return data


def _name(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise DataError(f"{path}: expected a text")
    return value
