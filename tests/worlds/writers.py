"""The other two writers of a drawn landing table: Spark, in a session of its own, and deltalake."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from tests.worlds.drawn import Row, World
from tests.worlds.hand import Hand, arrow

PROPERTIES = {
    "name": {"delta.columnMapping.mode": "name"}, "id": {"delta.columnMapping.mode": "id"},
    "vectors": {"delta.enableDeletionVectors": "true"}, "rows": {"delta.enableRowTracking": "true"},
    "in-commit": {"delta.enableInCommitTimestamps": "true"}, "v2": {"delta.checkpointPolicy": "v2"},
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
            return ByHand(place, world)


class ByHand(Hand):
    def act(self, what: str, delete: Iterable[int]) -> None:
        if what == "add column":
            self.add_column()


class ByDeltalake:
    def __init__(self, place: Path, world: World) -> None:
        self.place, self.world, self.wider = str(place), world, list[str]()
        by = {"partition_by": ["p"]} if world.kind else {}
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
            case "checkpoint":
                table.create_checkpoint()


class BySpark:
    def __init__(self, place: Path, world: World, session: Any) -> None:
        self.place, self.world, self.session, self.wider = str(place), world, session, list[str]()
        self._name = "delta.`" + self.place.replace("`", "``") + "`"
        columns = ", ".join(f"{name} {kind}" for name, kind in world.columns.items())
        if extra := EXTRA.get(world.feature):
            columns += f", {extra}"
        by = "PARTITIONED BY (p)" if world.kind else "CLUSTER BY (id)" if world.feature == "cluster" else ""
        told = ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES.get(world.feature, {}).items())
        session.sql(
            f"CREATE TABLE {self._name} ({columns}) USING delta {by} {f'TBLPROPERTIES ({told})' if told else ''}"
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
                    "widening": "1",
                }
                frame = frame.selectExpr("*", f"{value[self.world.feature]} AS e")
        for name in self.wider:
            frame = frame.selectExpr("*", f"'x' AS {name}")
        frame.coalesce(1).write.format("delta").mode("append").save(self.place)

    def act(self, what: str, delete: Iterable[int]) -> None:
        match what:
            case "delete":
                self.session.sql(f"DELETE FROM {self._name} WHERE id IN ({', '.join(map(str, delete))})")
            case "optimize":
                self.session.sql(f"OPTIMIZE {self._name}")
            case "add column":
                self.wider.append(f"extra{len(self.wider)}")
                self.session.sql(f"ALTER TABLE {self._name} ADD COLUMN ({self.wider[-1]} string)")
            case "checkpoint":
                parts = "2" if self.world.feature == "parts" else "1000000"
                self.session.conf.set("spark.databricks.delta.checkpoint.partSize", parts)
                self.session._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
                    self.session._jsparkSession, self.place
                ).checkpoint()
        if self.world.feature == "widening" and what:
            self.session.sql(f"ALTER TABLE {self._name} ALTER COLUMN e TYPE bigint")
