"""The propagation's knowledge of one kind of store: types, options, and the translation of migrations."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from console.propagation.migration import Migration
from console.propagation.store_types import StoreTypes
from console.propagation.tables import StoreTable
from console.propagation.translate.operations import Translation


@dataclass(frozen=True, slots=True)
class WrongOption:
    """An option of a store with a value that it cannot have."""

    key: str
    expected: str
    hint: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Dialect(ABC):
    """One kind of store.

    kind            as in replication.yaml;  title  as people write it
    position        order in which pages and messages name the stores
    options         the keys of a store of this kind in replication.yaml, apart from `kind`, `table` and `extra`
    defaults        options that need not be written
    nullable_types  NULL is a part of a column's type
    keyed           rows are identified by the table's own key, so it must contain PostgreSQL's
    column_storage  a file may say how its columns are stored (`columns: FILE`)
    """

    kind: str
    title: str
    position: int
    types: StoreTypes
    options: frozenset[str]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    nullable_types: bool = False
    keyed: bool = False
    column_storage: bool = False

    @abstractmethod
    def translate(self, migration: Migration, table: StoreTable, mark: str) -> Translation:
        """The remaining steps of a migration on one table, computed from its current state.

        mark    the migration's own name: no two have the same
        raises  DataError for a change that needs a person
        """

    @abstractmethod
    def after(self, migration: Migration, table: StoreTable, mark: str) -> StoreTable:
        """The table after all steps of a migration: the next migration is planned for it.

        Migrations run one after another, but are shown, refused and confirmed together, before the first step.

        raises  DataError as `translate` does
        """

    def wrong_option(self, options: Mapping[str, Any]) -> WrongOption | None:
        """The first option with a value that it cannot have."""
        return None
