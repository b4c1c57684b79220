"""Fixture tests of a pipeline as written: input rows, and expected rows of tables and queries."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from console.record import dataclass


@dataclass(frozen=True, slots=True)
class FixtureValue:
    """One value of a row.

    value  text, number, boolean, None, or lists and mappings of these
    raw    a scalar as written; "" for lists and mappings
    where  `file:line:column`
    """

    value: Any
    raw: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class FixtureRow:
    """The columns that a row names; others are NULL in given rows, and not compared in expected ones."""

    values: Mapping[str, FixtureValue]
    where: str = ""


@dataclass(frozen=True, slots=True)
class GivenRows:
    """All rows of one table, whose own queries do not run."""

    table: str
    rows: tuple[FixtureRow, ...]
    where: str = ""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed difference of a number: in its own unit, or as a share of the expected value (0.01 is one percent)."""

    absolute: float = 0.0
    relative: float = 0.0

    def allows(self, expected: float, result: float) -> bool:
        return abs(expected - result) <= max(self.absolute, self.relative * abs(expected))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRows:
    """The expected rows of a table, or of one call of an endpoint.

    node       a table, endpoint, copy or sink;  label  its name in the file, with the words that distinguish calls
    parameters of the call, by name
    key        columns by which rows are paired; () pairs them by similarity
    match      `exact`: these rows and no others; `contains`: others are allowed
    ordered    rows must be in this order
    tolerance  column → allowed difference; "" for all columns
    """

    node: str
    label: str
    rows: tuple[FixtureRow, ...]
    parameters: Mapping[str, FixtureValue] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    match: Literal["exact", "contains"] = "exact"
    ordered: bool = False
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """One file of `plans/<pipeline>/tests/`.

    now  the time that queries read from the clock (UTC); None if they must not read it
    """

    name: str
    file: str
    given: tuple[GivenRows, ...]
    expected: tuple[ExpectedRows, ...]
    description: str = ""
    now: datetime | None = None
