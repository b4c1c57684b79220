"""One pipeline as the operator's files declare it for one region: the desired state."""

import hashlib
import json
from dataclasses import field, replace
from functools import cached_property
from typing import Literal

from console.errors import Problem
from console.model.codec import QUIET, encode
from console.model.recorded_call import RecordedCall
from console.model.schema import Table
from console.model.sources import Sources
from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialization:
    """A query that feeds one table from a driving table and may join others. `sql` is Spark SQL as written."""

    name: str
    into: str
    sql: str
    description: str = ""
    owner: str = ""
    where: str = ""  # file:line:column of the SQL's first line


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named parameter of an endpoint: `:day` in its SQL."""

    name: str
    type: str
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A named, parameterised query over the release."""

    name: str
    sql: str
    parameters: tuple[Parameter, ...] = ()
    description: str = ""
    owner: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A query whose result is appended to or replaces a separate table, on demand or by schedule."""

    name: str
    into: str
    sql: str
    mode: Literal["append", "replace"] = "replace"
    schedule: str = ""
    description: str = ""
    owner: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """A query exported to files below the region's warehouse, at the relative `path`."""

    name: str
    sql: str
    path: str
    format: Literal["ndjson", "csv", "parquet"] = "ndjson"
    schedule: str = ""
    description: str = ""
    owner: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Override:
    """One setting overridden by a region: `path` as `tables.landing.retention`, values as written."""

    path: str
    base: str
    value: str
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """The desired state of one region. Nodes are sorted by name, so that moving a file changes nothing.

    ineffective  warnings about unused keys and files of the pipeline
    calls        recorded calls of its endpoints, in the order of their files; like tests, they are not part of any digest
    """

    name: str
    description: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    materializations: tuple[Materialization, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    copies: tuple[Copy, ...] = ()
    sinks: tuple[Sink, ...] = ()
    overrides: tuple[Override, ...] = ()
    sources: Sources | None = field(default=None, metadata=QUIET)
    ineffective: tuple[Problem, ...] = field(default=(), metadata=QUIET)
    calls: tuple[RecordedCall, ...] = field(default=(), metadata=QUIET)

    def table(self, name: str) -> Table | None:
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Table]:
        return {table.name: table for table in reversed(self.tables)}

    def digest(self) -> str:
        """sha256 over all declarations, without file positions and texts: moving a declaration does not change it."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        placeless = replace(
            self,
            tables=tuple(replace(node, where="") for node in self.tables),
            materializations=tuple(replace(node, where="") for node in self.materializations),
            endpoints=tuple(replace(node, where="") for node in self.endpoints),
            copies=tuple(replace(node, where="") for node in self.copies),
            sinks=tuple(replace(node, where="") for node in self.sinks),
            overrides=tuple(replace(node, where="") for node in self.overrides),
            sources=None,
            ineffective=(),
            calls=(),
        )
        return digest(encode(placeless))


def digest(data: object) -> str:
    """sha256, in hex, of a JSON-able value in canonical form."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
