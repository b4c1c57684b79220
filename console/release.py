"""Live tables for other programs, by logical name: `console.open_release("eu")`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.aws_profile import SOURCES, of_profile
from console.errors import DataError, RegionError, Unreachable, UsageError
from console.model import codec
from console.model.live import Release, TableState
from console.paths import version_path
from console.text import one_line

# a release is opened within a minute or not at all; by itself deltalake would try for three minutes
_PROMPT = {"timeout": "20s", "connect_timeout": "5s", "max_retries": "2", "retry_timeout": "30s"}


@dataclass(frozen=True, slots=True)
class OpenRelease:
    """One release, whole: every table read through it belongs to it, whatever is promoted meanwhile.

    A long-lived program opens it again (or calls `refresh`) as often as it wants to follow promotions.

    warehouse  its folder, or the URI of one in a bucket, which is read with this process's own credentials
    """

    warehouse: Path | str
    manifest: Release

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def tables(self) -> Mapping[str, TableState]:
        """Logical name → its state in the release."""
        return {state.table.name: state for state in self.manifest.tables}

    def path(self, table: str) -> str:
        """The place of the version behind a logical name."""
        path = self._state(table).version.path
        return f"{self.warehouse}/{path}" if isinstance(self.warehouse, str) else version_path(self.warehouse, path)

    def spark(self, table: str, session: Any) -> Any:
        """A DataFrame of the logical table in the caller's SparkSession (with Delta), of a JVM or of Spark Connect.

        Renames, defaults and merged states of the release are applied. In a JVM the temp view `stored` is left behind.

        raises   DataError for a release whose SQL reads anything but its own table
        """
        from console.agent.query_over import query_over
        from console.planning.sql.duckdb import read_of

        read_of(self._state(table).read)
        stored = session.read.format("delta").load(self.path(table))
        return query_over(session, self._state(table).read, {"stored": stored})

    def arrow(self, table: str, where: str = "") -> Any:
        """The logical table as a `pyarrow.Table`, without Spark.

        where    a DuckDB condition over logical columns, pushed down to the files: `day = DATE '2026-11-07'`
        raises   DataError for an aggregate and a table that keeps one row of each key, which only Spark merges, and for a landing table with computed columns
        """
        import duckdb
        from deltalake import DeltaTable

        from console.planning.sql.duckdb import in_duckdb, refuse_computed
        from console.stores.lakes.delta_rows import dataset

        state = self._state(table)
        if state.newest is not None:
            raise DataError(
                f"{table} keeps the newest row of each key, which only Spark can determine", hint="console query"
            )
        read = in_duckdb(state.read)
        if state.table.kind == "landing":
            refuse_computed(state.read, table)
        db = duckdb.connect()
        db.execute("SET TimeZone = 'UTC'")
        options = _credentials(self.warehouse)
        db.register("stored", dataset(DeltaTable(self.path(table), storage_options=options), options))
        rows = db.sql(read)
        return (rows.filter(where) if where else rows).to_arrow_table()

    def refresh(self) -> "OpenRelease":
        """The release that is live now."""
        return _open(self.warehouse, self.manifest.pipeline)

    def _state(self, table: str) -> TableState:
        state = self.manifest.table(table)
        if state is None:
            known = ", ".join(sorted(self.tables))
            raise DataError(f"release {self.id} has no table {table!r:.60} (it has {known})")
        return state


def open_release(
    region: str = "", *, project: str | Path = ".", pipeline: str | None = None, warehouse: str | Path = ""
) -> OpenRelease:
    """The live release of a region. One in a bucket is read there, without its agent and without SSH.

    region     its name in the inventory of `project` (searched upward); or give `warehouse` and `pipeline` instead
    raises     UsageError for an unknown region, and for one on the disk of a host behind SSH; Unreachable if there is no
               warehouse, or its bucket gives no usable answer; RegionError if nothing is live, or for a profile without keys
    """
    if warehouse:
        if not pipeline:
            raise DataError("open_release: `warehouse` needs `pipeline` beside it")
        return _open(_place(str(warehouse)), pipeline)
    from console.project import find, load

    loaded = load(find(Path(project)))
    known = loaded.region(region)
    place, name = _place(known.warehouse), loaded.pipeline(pipeline, known).name
    if known.transport and isinstance(place, Path):
        there = f"console.open_release(warehouse={str(place)!r}, pipeline={name!r})"
        raise UsageError(
            f"{region} is behind SSH: its tables are files of {known.transport.host}, which are not read from here",
            hint=f"on that host: {there}; from here: console query --region {region}",
            region=region,
        )
    return _open(place, name)


def _place(warehouse: str) -> Path | str:
    """A folder, or a bucket's URI as deltalake and Spark know it."""
    place = warehouse.removeprefix("file://")
    return place.replace("s3a://", "s3://", 1).rstrip("/") if "://" in place else Path(place)


def _open(warehouse: Path | str, pipeline: str) -> OpenRelease:
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        manifests = _live(f"{warehouse}/_console/{pipeline}/releases", _credentials(warehouse))
    except TableNotFoundError:
        raise Unreachable(f"no releases of {pipeline} at {warehouse}", hint="console status") from None
    except (DeltaError, OSError) as error:
        if isinstance(warehouse, Path):
            raise
        raise Unreachable(f"{warehouse}: {one_line(error)}", hint=SOURCES) from None
    if not manifests:
        raise RegionError(f"{pipeline}: no release is live at {warehouse}", hint="console apply")
    return OpenRelease(warehouse, codec.decode(Release, codec.loads(manifests[0])))


def _live(path: str, options: Mapping[str, str]) -> list[str]:
    from deltalake import DeltaTable, QueryBuilder

    releases = DeltaTable(path, storage_options={**options, **_PROMPT} if "://" in path else None)
    live = QueryBuilder().register("t", releases).execute("SELECT manifest FROM t WHERE state = 'live'").read_all()
    return [str(manifest) for manifest in live.column("manifest").to_pylist()]


def _credentials(warehouse: Path | str) -> dict[str, str]:
    """deltalake's options for a bucket: the keys of this process's profile. The environment's and the instance's it finds itself."""
    return {} if isinstance(warehouse, Path) else of_profile(os.environ)
