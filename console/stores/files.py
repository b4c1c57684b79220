"""plans/<pipeline>/replication.yaml and migrations/: the replicated tables, their stores, and the stores' addresses."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import unquote, urlsplit

from console.errors import DataError, Problem, Problems, UsageError
from console.model.region import Region
from console.propagation.migration import Migration
from console.propagation.migration_file import read
from console.propagation.replication import Replication, Target, UnfitKey, from_data
from console.propagation.tables import ColumnStorage
from console.stores.protocol import Store
from console.text import hide, secret

if TYPE_CHECKING:
    from console.project.yaml import Document

REPLICATION: Final = "replication.yaml"
MIGRATIONS: Final = "migrations"
_REFERENCE: Final = re.compile(r"(env|file):(?!//)(.+)", re.DOTALL)
_CODEC: Final = re.compile(r"[A-Za-z0-9_(), ]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReplicationConfig:
    """One pipeline's replication.

    source   how PostgreSQL is reached, as written: `{url: env:DATABASE_URL}`; {} if it is not configured
    file     relative to the project, for errors
    """

    pipeline: str
    replication: Replication
    source: Mapping[str, Any]
    file: str


@dataclass(frozen=True, slots=True)
class MigrationFile:
    """One migration file. id: its name without `.json`; body: its text."""

    id: str
    migration: Migration
    body: str


class StoreModule(Protocol):
    """`console/stores/<kind>.py`: the client of one kind of store."""

    def open_store(
        self, name: str, options: Mapping[str, Any], columns: Mapping[str, tuple[ColumnStorage, ...]]
    ) -> Store:
        """The store with the options of replication.yaml, references resolved; nothing is reached yet."""
        ...


@dataclass(frozen=True, slots=True)
class Site:
    """One store of one region; a store that several regions share belongs to the first of them."""

    region: Region
    target: Target
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.region.name}/{self.target.name}"

    @property
    def pipeline(self) -> str:
        """The pipeline that owns this store's tables, or ""."""
        return str(self.options.get("pipeline") or "")

    def open(self) -> Store:
        """The store; nothing is reached yet."""
        module = cast(StoreModule, import_module(f"console.stores.{self.target.kind}"))
        return module.open_store(self.name, self.options, self.target.kept)


def read_plan(root: Path, pipeline: str | None) -> ReplicationConfig:
    """The replication of a pipeline, or of the only one that has any.

    raises  UsageError if there is none; Problems with the place of each mistake
    """
    from console.project.yaml import parse, read_text

    having = sorted(path.parent.name for path in root.glob(f"plans/*/{REPLICATION}"))
    if pipeline is None and len(having) == 1:
        pipeline = having[0]
    if pipeline is None or pipeline not in having:
        subject = f"pipeline {pipeline} has" if pipeline else f"{len(having)} pipelines have"
        raise UsageError(
            f"{subject} a {REPLICATION}"
            if having and not pipeline
            else f"no {REPLICATION} in plans/{pipeline or '*'}/",
            hint=f"--pipeline {' or --pipeline '.join(having)}" if having else f"write plans/NAME/{REPLICATION}",
        )
    path = root / "plans" / pipeline / REPLICATION
    file = path.relative_to(root).as_posix()
    document = parse(read_text(path, root), file)
    if plain := list(_plaintext_secrets(document)):
        raise Problems.of(plain)
    data = dict(document.data)
    source = data.pop("source", None) or {}
    try:
        if not isinstance(source, dict):
            raise UnfitKey("source: expected {url: env:NAME}", keys=("source",))
        return ReplicationConfig(pipeline, _with_columns(from_data(data), path.parent), source, file)
    except UnfitKey as error:
        raise Problems.of(
            [Problem(code="P050", message=str(error), where=document.place(error.keys), hint=error.hint)]
        ) from None


def _with_columns(replication: Replication, folder: Path) -> Replication:
    """The stores with the column settings of their own files: `columns: clickhouse.yaml`."""
    from console.project.yaml import parse, read_text

    stores = []
    for target in replication.stores:
        name = target.options.get("columns")
        if name is None or not target.dialect.column_storage:
            stores.append(target)
            continue
        keys = ("stores", target.name, "columns")
        path = ".".join(keys)
        if not isinstance(name, str) or Path(name).name != name or not (folder / name).is_file():
            hint = "table: {column: {codec: ZSTD(3)}}"
            raise UnfitKey(f"{path}: no file {name!r:.60} beside {REPLICATION}", keys=keys, hint=hint)
        try:
            data = parse(read_text(folder / name, folder), name).data
            stores.append(replace(target, kept=_columns_by_table(replication, target, data, path)))
        except DataError as error:
            raise UnfitKey(str(error), keys=keys, hint=error.hint) from None
    return replace(replication, stores=tuple(stores))


def _columns_by_table(
    replication: Replication, target: Target, data: Mapping[str, Any], path: str
) -> Mapping[str, tuple[ColumnStorage, ...]]:
    """The store's table → its columns, from a file that names PostgreSQL's tables."""
    known = {entry.table: entry for entry in replication.tables}
    known |= {f"{entry.schema}.{entry.table}": entry for entry in replication.tables}
    by_table = {}
    for table, columns in data.items():
        if table not in known or not isinstance(columns, dict):
            raise DataError(
                f"{path}: {table!r:.60} is not a table of replication.yaml", hint="table: {column: {codec: ZSTD(3)}}"
            )
        by_table[target.place(known[table])] = tuple(
            _column_storage(name, settings, f"{path}: {table}") for name, settings in columns.items()
        )
    return by_table


def _column_storage(column: str, settings: Any, path: str) -> ColumnStorage:
    if not isinstance(settings, dict) or not set(settings) <= {"codec", "low_cardinality"}:
        raise DataError(
            f"{path}.{column}: expected codec and low_cardinality alone", hint="{codec: ZSTD(3), low_cardinality: true}"
        )
    codec, low = settings.get("codec", ""), settings.get("low_cardinality", False)
    if not isinstance(codec, str) or not _CODEC.fullmatch(codec):
        raise DataError(f"{path}.{column}.codec: expected the text inside CODEC(…)", hint="codec: Delta, ZSTD(3)")
    if not isinstance(low, bool):
        raise DataError(f"{path}.{column}.low_cardinality: expected true or false")
    return ColumnStorage(column, codec, low)


def _plaintext_secrets(document: "Document") -> Iterator[Problem]:
    """Secrets written into the file itself."""
    for path, place in document.values.items():
        value = document.get(path)
        if isinstance(value, str) and value and secret(str(path[-1])) and not _REFERENCE.fullmatch(value):
            name = ".".join(map(str, path))
            hint = "put it in a variable or a file: env:NAME, file:PATH"
            yield Problem(code="P050", message=f"{name}: a secret in the file", where=place, hint=hint)


def read_changes(root: Path, pipeline: str) -> tuple[MigrationFile, ...]:
    """The committed migrations, in the order of their names.

    raises  Problems with every invalid file
    """
    from console.project.yaml import read_text

    changes: list[MigrationFile] = []
    problems: list[Problem] = []
    for path in sorted((root / "plans" / pipeline / MIGRATIONS).glob("*.json")):
        try:
            body = read_text(path, root)
            changes.append(MigrationFile(path.stem, read(body), body))
        except Problems as error:
            problems += error.problems
        except DataError as error:
            problems.append(
                Problem(
                    code="P051", message=str(error), where=f"{path.relative_to(root).as_posix()}:1:1", hint=error.hint
                )
            )
    if problems:
        raise Problems.of(problems)
    return tuple(changes)


def sites(plan: ReplicationConfig, regions: Sequence[Region], names: Collection[str] = ()) -> tuple[Site, ...]:
    """The named stores (none named: all), region by region, each address once.

    raises  UsageError for an unknown name; DataError for an address
    """
    known = {target.name: target for target in plan.replication.stores}
    for name in names:
        if name not in known:
            raise UsageError(f"no store is named {name}", hint=f"{plan.file} has: {', '.join(known) or 'none'}")
    chosen = [target for name, target in known.items() if not names or name in names]
    by_address: dict[tuple[str, ...], Site] = {}
    for region in regions:
        for target in chosen:
            if (options := _options(target, region)) is not None:
                site = Site(region, target, options)
                own = (target.kind, site.pipeline, *([region.name] if site.pipeline else []), site.open().address)
                by_address.setdefault((target.name, *own), site)
    return tuple(by_address.values())


def source_of(plan: ReplicationConfig, region: Region) -> str:
    """PostgreSQL's address for a region; "" if none is configured."""
    per_region = plan.source.get("regions") or {}
    written = {**plan.source, **(per_region.get(region.name) or {})}.get("url")
    return "" if written is None else resolved(f"{plan.file}: source.url", str(written), region)


def dsn_of(written: str) -> str:
    """An address from the command line, which may be a reference too."""
    reference = _REFERENCE.fullmatch(written)
    return _dereferenced("--dsn", *reference.groups()) if reference else written


def _options(target: Target, region: Region) -> dict[str, Any] | None:
    """A store's options in a region, references resolved; None if the region has no such store."""
    written = dict(target.options)
    per_region = written.pop("regions", None)
    if per_region is not None:
        if not isinstance(per_region, dict):
            raise DataError(f"stores.{target.name}.regions: expected region → options")
        if region.name not in per_region:
            return None
        written |= per_region[region.name] or {}
    dialect = target.dialect
    if strange := sorted(set(written) - dialect.options):
        known = ", ".join(sorted(dialect.options))
        raise DataError(
            f"stores.{target.name}: unknown key {strange[0]!r:.60}", hint=f"a {target.kind} store has {known}"
        )
    if (wrong := dialect.wrong_option(written)) is not None:
        raise DataError(f"stores.{target.name}.{wrong.key}: expected {wrong.expected}", hint=wrong.hint)
    merged = {**dialect.defaults, **written}
    return {key: _filled(f"stores.{target.name}.{key}", value, region) for key, value in merged.items()}


def _filled(path: str, value: Any, region: Region) -> Any:
    if isinstance(value, dict):
        return {key: _filled(f"{path}.{key}", inner, region) for key, inner in value.items()}
    return resolved(path, value, region) if isinstance(value, str) else value


def resolved(path: str, written: str, region: Region) -> str:
    """A text with `{region}` and `{warehouse}` filled in, and a reference resolved.

    raises  DataError for a reference to nothing, or a password in the file
    """
    text = written.replace("{region}", region.name).replace("{warehouse}", region.warehouse)
    reference = _REFERENCE.fullmatch(text)
    if reference is None:
        if urlsplit(text).password:
            raise DataError(f"{path}: a password in the file", hint="put the address in a variable: env:NAME")
        return text
    value = _dereferenced(path, *reference.groups())
    hide([(path.rpartition(".")[2], value), ("password", unquote(urlsplit(value).password or ""))])
    return value


def _dereferenced(path: str, kind: str, name: str) -> str:
    if kind == "env":
        if not os.environ.get(name):
            raise DataError(f"{path}: the variable {name} is not set", hint=f"export {name}=…")
        return os.environ[name]
    try:
        return Path(name).expanduser().read_text().strip()
    except OSError as error:
        raise DataError(f"{path}: {name} cannot be read: {error.strerror}") from None


def concerning(plan: ReplicationConfig, changes: Iterable[MigrationFile]) -> tuple[MigrationFile, ...]:
    """The migrations of replicated tables and columns."""
    return tuple(change for change in changes if not plan.replication.concerns(change.migration))
