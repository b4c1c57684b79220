"""Generic migrations: changes of a PostgreSQL table, independent of any store. Frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Literal, assert_never

from console.errors import DataError
from console.propagation.types import Type

Phase = Literal["pre", "post"]
Classification = Literal["safe", "widening", "destructive"]
PHASES: Final[tuple[Phase, ...]] = ("pre", "post")
CLASSIFICATIONS: Final[tuple[Classification, ...]] = ("safe", "widening", "destructive")


class Unchanged(Enum):
    """A facet that a change leaves alone (`None` is a value of its own: a dropped default)."""

    KEPT = "kept"


KEPT: Final = Unchanged.KEPT


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column.

    default  the value of rows without one: a number, `true`, `false`, a quoted text, `now()`, `[]`; None if there is
             none, or only PostgreSQL can compute it
    """

    name: str
    data_type: Type
    nullable: bool = True
    default: str | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column is dropped with its values."""

    name: str


@dataclass(frozen=True, slots=True)
class SwapColumns:
    """Columns change names in one transaction: `{"a": "b", "b": "a"}` swaps, `{"a": "b"}` renames.

    columns  (old name, new name), sorted; each name at most once on either side
    """

    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Facets:
    """Properties of a column, as far as a change touches them or an observer knew them; the others are `KEPT`."""

    data_type: Type | Unchanged = KEPT
    nullable: bool | Unchanged = KEPT
    default: str | Unchanged | None = KEPT


STAGED: Final = "__new"  # suffix of a store's column that waits for the name of one that is to be dropped
FACETS: Final = tuple(Facets.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """A column's type, nullability or default changes.

    to              the changed properties
    was             the same properties before, as far as the observer knew them
    classification  `safe`: nothing to do or to lose in any store; `widening`: stores must accept more before the first
                    such row arrives; `destructive`: stored values may be lost, or it is not proven that they are not
    """

    name: str
    to: Facets
    was: Facets
    classification: Classification


@dataclass(frozen=True, slots=True)
class ReplaceColumn:
    """In one transaction another column takes a name, and the column that had it is dropped with its values.

    source  the column that takes the name and keeps its values; None: a new column, which has only values that arrive
    to      properties of the column under the name afterwards: all three of a new column, whose default is for older
            rows; of an existing one as far as the observer knew them
    """

    name: str
    source: str | None
    to: Facets = Facets()

    @property
    def taker(self) -> str:
        """The store's name, until then, of the column that takes the name; a new column has a temporary one."""
        return f"{self.name}{STAGED}" if self.source is None else self.source

    @property
    def staged(self) -> AddColumn | None:
        """The addition that a store needs before the first row of a new column arrives."""
        to = self.to
        if self.source is not None:
            return None
        assert to.data_type is not KEPT
        assert to.nullable is not KEPT
        assert to.default is not KEPT
        return AddColumn(self.taker, to.data_type, to.nullable, to.default)


Operation = AddColumn | DropColumn | SwapColumns | ChangeColumn | ReplaceColumn
# announced to consumers before its rows arrive: from one commit on, names belong to other columns
ANNOUNCED: Final = (SwapColumns, ReplaceColumn)


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
        """Applying it needs an explicit flag (P6)."""
        match self.operation:
            case DropColumn() | ReplaceColumn():
                return True
            case ChangeColumn(classification=classification):
                return classification == "destructive"
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
        """A short name, suitable for a file's name: `add_issues_title`."""
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
        case ChangeColumn(classification=classification):
            return "pre" if classification == "widening" else "post"
        case _:
            assert_never(operation)


def swap(columns: Mapping[str, str]) -> SwapColumns:
    """A swap from old name → new name; unchanged names are left out.

    raises  DataError if two columns would get one name, or no name changes
    """
    pairs = tuple(sorted((old, new) for old, new in columns.items() if old != new))
    if not pairs or len({new for _, new in pairs}) != len(pairs):
        raise DataError("swap_columns: every column needs a new name of its own")
    return SwapColumns(pairs)
