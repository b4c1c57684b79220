"""The other two writers of a drawn landing table: Spark, in a session of its own, and deltalake."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from console.agent.spark_session import SparkHandle
from tests.worlds.drawn import LOST, Row, World
from tests.worlds.hand import Hand, arrow

PROPERTIES = {
    "name": {"delta.columnMapping.mode": "name"}, "id": {"delta.columnMapping.mode": "id"},
    "vectors": {"delta.enableDeletionVectors": "true"}, "rows": {"delta.enableRowTracking": "true"},
    "feed": {"delta.enableChangeDataFeed": "true"}, "in-commit": {"delta.enableInCommitTimestamps": "true"}, "v2": {"delta.checkpointPolicy": "v2"},
    "widening": {"delta.enableTypeWidening": "true"}, "default": {"delta.feature.allowColumnDefaults": "supported"},
    "name+vectors": {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
}  # fmt: skip
EXTRA = {
    "default": "e bigint DEFAULT 7", "generated": "e date GENERATED ALWAYS AS (CAST(ts AS DATE))",
    "identity": "e bigint GENERATED ALWAYS AS IDENTITY", "zoneless": "e timestamp_ntz", "variant": "e variant", "void": "e void",
    "widening": "e int",
}  # fmt: skip


class Writer(Protocol):
    """One landing table; each call is a commit or more."""

    def append(self, rows: list[Row]) -> None: ...

    def act(self, what: str, delete: Iterable[int]) -> None: ...


def writer(world: World, place: Path, session: Any) -> Writer:
    match world.writer:
        case "spark":
            return BySpark(place, world, session)
        case "deltalake":
            return ByDeltalake(place, world)
        case "hand":
            return Hand(place, world)


def writing(spark: SparkHandle) -> Any:
    """A session that writes by path, as a stranger's does."""
    return spark.session(spark__sql__runSQLOnFiles="true")


def newest(place: Path) -> int:
    """The last version of a table."""
    return max(int(path.stem) for path in (place / "_delta_log").glob("*.json") if path.stem.isdigit())


def clean_up(place: Path, world: World) -> None:
    """Take away the commits before the fence, or all but the last one of a history, as log retention does behind a checkpoint."""
    kept = world.fence if world.fence >= 0 else newest(place)
    for path in (place / "_delta_log").iterdir():
        stem, _, suffix = path.name.partition(".")
        if stem.isdigit() and int(stem) < kept and suffix in ("json", "crc"):
            path.unlink()


class ByDeltalake:
    def __init__(self, place: Path, world: World) -> None:
        self.place, self.world, self.wider = str(place), world, list[str]()
        by = {"partition_by": world.by} if world.by else {}
        write_deltalake(self.place, arrow(world, []), **by)
        if world.feature == "checkpoint":
            DeltaTable(self.place).create_checkpoint()

    def append(self, rows: list[Row]) -> None:
        data = arrow(self.world, rows)
        for name in self.wider:
            data = data.append_column(name, pa.array(["x"] * len(rows)))
        write_deltalake(self.place, data, mode="append")

    def act(self, what: str, delete: Iterable[int]) -> None:
        table = DeltaTable(self.place)
        match what:
            case "delete":
                table.delete(f"id IN ({', '.join(map(str, delete))})")
            case "optimize":
                table.optimize.compact()
            case "add column":
                self.wider.append(f"extra{len(self.wider)}")
                table.alter.add_columns(Field(self.wider[-1], PrimitiveType("string")))
            case "vacuum":
                table.optimize.compact()
                DeltaTable(self.place).vacuum(0, dry_run=False, enforce_retention_duration=False)
            case "checkpoint" | "cleanup":
                table.create_checkpoint()
        if what == "cleanup":
            clean_up(Path(self.place), self.world)


class BySpark:
    def __init__(self, place: Path, world: World, session: Any) -> None:
        self.place, self.world, self.session, self.wider = str(place), world, session, list[str]()
        self._lost = self._wide = False
        self._swaps = 0
        self._name = "delta.`" + self.place.replace("`", "``") + "`"
        columns = ", ".join(f"{name} {kind}" for name, kind in world.columns.items())
        if extra := EXTRA.get(world.feature):
            columns += f", {extra}"
        by = (
            f"PARTITIONED BY ({', '.join(world.by)})"
            if world.by
            else "CLUSTER BY (id)"
            if world.feature == "cluster"
            else ""
        )
        text = ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES.get(world.feature, {}).items())
        session.sql(
            f"CREATE TABLE {self._name} ({columns}) USING delta {by} {f'TBLPROPERTIES ({text})' if text else ''}"
        )
        if world.feature == "check":
            session.sql(f"ALTER TABLE {self._name} ADD CONSTRAINT positive CHECK (id > 0)")

    def append(self, rows: list[Row]) -> None:
        frame = self.session.createDataFrame(arrow(self.world, rows))
        match self.world.feature:
            case "zoneless" | "variant" | "widening":
                value = {
                    "zoneless": "TIMESTAMP_NTZ'2026-11-01'",
                    "variant": "parse_json('{\"a\": 1}')",
                    "widening": "1L" if self._wide else "1",
                }
                frame = frame.selectExpr("*", f"{value[self.world.feature]} AS e")
        for name in self.wider:
            frame = frame.selectExpr("*", f"'x' AS `{name}`")
        if self._lost:
            frame = frame.withColumnRenamed("k", LOST)
        frame.coalesce(1).write.format("delta").mode("append").save(self.place)

    def act(self, what: str, delete: Iterable[int]) -> None:
        match what:
            case "delete":
                self.session.sql(f"DELETE FROM {self._name} WHERE id IN ({', '.join(map(str, delete))})")
            case "optimize":
                self.session.sql(f"OPTIMIZE {self._name}")
            case "add column":
                self.wider.append(f"extra{len(self.wider)}")
                self._alter(f"ADD COLUMN ({self.wider[-1]} string)")
            case "rename column" | "drop column" if not self.wider:
                self.act("add column", delete)
                self.act(what, delete)
            case "rename column":
                self._alter(f"RENAME COLUMN `{self.wider[-1]}` TO `renamed {self.wider[-1]} ü`")
                self.wider[-1] = f"renamed {self.wider[-1]} ü"
            case "drop column":
                self._alter(f"DROP COLUMN `{self.wider.pop()}`")
            case "swap":
                self._swaps += 1
                self._alter(f"RENAME COLUMN k TO `k before {self._swaps}`")
                self._alter("ADD COLUMN (k string)")
            case _ if what == LOST:
                self._alter(f"RENAME COLUMN k TO `{LOST}`")
                self._lost = True
            case "vacuum":
                self.session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
                self.session.sql(f"OPTIMIZE {self._name}")
                self.session.sql(f"VACUUM {self._name} RETAIN 0 HOURS")
            case "checkpoint" | "cleanup":
                self._checkpoint()
        if what == "cleanup":
            clean_up(Path(self.place), self.world)
        if self.world.feature == "widening" and what and not self._wide:
            self._alter("ALTER COLUMN e TYPE bigint")
            self._wide = True

    def _alter(self, change: str) -> None:
        self.session.sql(f"ALTER TABLE {self._name} {change}")

    def _checkpoint(self) -> None:
        parts = "2" if self.world.feature == "parts" else "1000000"
        self.session.conf.set("spark.databricks.delta.checkpoint.partSize", parts)
        spark_delta = self.session._jvm.org.apache.spark.sql.delta
        spark_delta.DeltaLog.forTable(self.session._jsparkSession, self.place).checkpoint()
