"""Remedies of a problem, as values: a hint is their text, so that people read the same remedy that programs apply.

`SetKey`, `DropKey`, `KeepLive` and `Flag` can be carried out by a program as they are, where no value is left to the operator;
`AnotherColumn` and `StopReading` say what a query has to be changed to; the others describe a person's change in words.
"""

from collections.abc import Iterable

from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SetKey:
    """A key written in the file of a table.

    columns  those in whose declaration it is written, all of them; () for a key of the table itself
    value    "" where it is the operator's to find
    without  a key that is removed with it
    effect   its result
    """

    node: str
    key: str
    value: str = ""
    columns: tuple[str, ...] = ()
    without: str = ""
    effect: str = ""

    def __str__(self) -> str:
        places = f" for {', '.join(self.columns)}" if self.columns else ""
        dropped = f" without `{self.without}`" if self.without else ""
        return f"`{self.key}: {self.value or '…'}`{places}{dropped} {self.effect}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropKey:
    """A key removed from the file of a table. effect: its result"""

    node: str
    key: str
    effect: str = ""

    def __str__(self) -> str:
        return f"drop `{self.key}`" + (f": {self.effect}" if self.effect else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepLive:
    """A table, or one column of it, left as it is in the live release. column: "" for the whole table"""

    node: str
    column: str = ""

    def __str__(self) -> str:
        return f"keep {'.'.join(filter(None, (self.node, self.column)))} as it is live"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnotherColumn:
    """A changed column declared beside the live one, which stays as it is, under a name that its author finds. effect: its result"""

    node: str
    column: str
    effect: str = ""

    def __str__(self) -> str:
        return f"give the new {self.column} another name" + (f": {self.effect}" if self.effect else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReading:
    """A query changed so that it no longer reads a table, or one column of it. node: the query;  column: "" for the whole table"""

    node: str
    table: str
    column: str = ""

    def __str__(self) -> str:
        return "change it as well"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of a file that only its author can make. how: in words"""

    node: str
    how: str

    def __str__(self) -> str:
        return self.how


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """An option of the same command. effect: its result"""

    flag: str
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.flag} {self.effect}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """Another command, typed before this one is tried again."""

    command: str

    def __str__(self) -> str:
        return self.command


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Something that is not in the project's files: a table's writers, a disk, the readers of a number."""

    what: str

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class Stays:
    """The problem stays refused. instead: what gives the same result"""

    instead: str

    def __str__(self) -> str:
        return self.instead


Remedy = SetKey | DropKey | KeepLive | AnotherColumn | StopReading | Edit | Flag | RunCommand | Elsewhere | Stays


def hint(remedies: Iterable[Remedy]) -> str:
    """The alternatives as one line."""
    return "; or ".join(str(remedy) for remedy in remedies)
