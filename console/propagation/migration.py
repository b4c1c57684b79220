"""Generic migrations: what changed in a PostgreSQL table, in no store's language. Frozen values."""

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
    """What a change leaves as it is (`None` is a value of its own: a default that is dropped)."""

    KEPT = "kept"


KEPT: Final = Unchanged.KEPT


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

    data_type: Type | Unchanged = KEPT
    nullable: bool | Unchanged = KEPT
    default: str | Unchanged | None = KEPT


STAGED: Final = "__new"  # how a store's column is called that waits for the name of one that is to go
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

    @property
    def taker(self) -> str:
        """The column that takes the name, as a store has it until then; a new one has a name of its own there."""
        return f"{self.name}{STAGED}" if self.source is None else self.source

    @property
    def staged(self) -> AddColumn | None:
        """What a store needs before the first row of a new column arrives."""
        to = self.to
        if self.source is not None:
            return None
        assert to.data_type is not KEPT
        assert to.nullable is not KEPT
        assert to.default is not KEPT
        return AddColumn(self.taker, to.data_type, to.nullable, to.default)


Operation = AddColumn | DropColumn | SwapColumns | ChangeColumn | ReplaceColumn
# what consumers are told of before its rows arrive: names of theirs mean other columns from one instant on
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
        """Applying it needs the operator's explicit word (P6)."""
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
        case ChangeColumn(classification=classification):
            return "pre" if classification == "widening" else "post"
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
