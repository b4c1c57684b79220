"""An adapter in front of a landing table that a stranger keeps writing. Judged by DuckDB over the stranger's own table."""

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring, real_drivers
from tests.life.region import LANDING, LiveRegion, event, multiset
from tests.life.test_landing_changes import reached
from tests.life.test_lost_days import written

EVERY = 0.5  # seconds between two of the stranger's commits
BEFORE = {
    "pipeline.yaml": "description: a table of others\n",
    "tables/outside.yaml": "kind: landing\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n",
    "tables/visits.yaml": "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ip: string}\n",
    "materializations/parse.sql": "/* into: visits */\nSELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.ip') AS ip FROM outside\n",
    "tables/daily.yaml": "kind: aggregate\ntime: day\npartition_by: [day]\ncolumns: {day: date, hits: bigint}\n",
    "materializations/tally.sql": "/* into: daily */\nSELECT day, count(*) AS hits FROM visits GROUP BY day\n",
}
LAID = (
    "kind: landing\nsource: outside\ntime: ts\npartition_by: [arrived]\n"
    'select: "id, ts, payload, to_date(ts) AS arrived"\n'
    "columns: {id: string, ts: timestamp, payload: string, arrived: date}\n"
)
RENAMED = (
    LAID.replace("time: ts", "time: at")
    .replace("id, ts, payload", "id, ts AS at, payload")
    .replace("ts: time", "at: time")
)


class Stranger:
    """Appends to the table by itself, and asks nobody."""

    def __init__(self, table: Path) -> None:
        self._table, self._rng, self._rows = str(table), random.Random(3), 0
        self._commits, self._enough = 0, asyncio.Event()
        for _ in range(3):
            self._append(100)
        self._task = asyncio.create_task(self._write())

    def _append(self, number: int) -> None:
        rows = [event(self._rows + at, self._rng) for at in range(number)]
        self._rows += number
        write_deltalake(self._table, pa.Table.from_pylist(rows, LANDING), mode="append")

    async def _write(self) -> None:
        while not self._enough.is_set():
            await asyncio.to_thread(self._append, self._rng.randrange(1, 12))
            self._commits += 1
            await asyncio.sleep(EVERY)

    async def more(self) -> None:
        """Returns once two commits are there that began after this call."""
        await reached(self._task, lambda: self._commits, self._commits + 3)  # one may be on its way

    async def end(self) -> None:
        self._enough.set()
        await self._task


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedPipeline:
    """A pipeline below a stranger's table, in a region that has others. suffix: of its name and of all of its tables' names"""

    region: LiveRegion
    place: Path
    suffix: str

    @property
    def name(self) -> str:
        return f"web{self.suffix}"

    def called(self, text: str) -> str:
        """Two pipelines of one region have no table in common."""
        for table in ("outside", "visits", "daily"):
            text = text.replace(table, table + self.suffix)
        return text

    @property
    def outside(self) -> Path:
        return self.region.warehouse / self.called("outside")

    @property
    def adapter(self) -> str:
        return f"events{self.suffix}"

    async def begins(self) -> None:
        """Rolled out for the first time, upon the stranger's table itself."""
        files = {self.called(place): self.called(text) for place, text in BEFORE.items()}
        self.region.install(self.name, written(self.place, files))
        await self.region.roll_out(self.name)

    async def adapt(self) -> None:
        """The adapter's files are written by the command, and the table below is bound to it without a byte."""
        context = CliContext(Wiring(real_drivers))
        line = ["adapt", self.called("outside"), "--as", self.adapter, "--pipeline", self.name]
        done = CliRunner().invoke(cli, [*line, "--project", str(self.region.root)], obj=context, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        result = await self.actions()
        visits = self.called("visits")
        assert {name: action for name, (action, _) in result.items()} == {self.adapter: "create", visits: "rebind"}
        assert result[visits][1] == 0

    async def actions(self) -> dict[str, tuple[str, int]]:
        """Changed table → action and bytes to be written."""
        plan = await self.region.plan(self.name)
        return {node.name: (node.action, node.price.written) for node in plan.nodes if node.action != "keep"}

    async def laid(self) -> None:
        """In another layout, in a version of its own."""
        self._file(f"tables/{self.adapter}.yaml").write_text(self.called(LAID))
        result = await self.actions()
        wanted = {self.adapter: "forward", self.called("visits"): "rebind"}
        assert {name: action for name, (action, _) in result.items()} == wanted

    async def renamed(self) -> None:
        """A column that is read gets another name."""
        self._file(f"tables/{self.adapter}.yaml").write_text(self.called(RENAMED))
        parse = self._file("materializations/parse.sql")
        parse.write_text(parse.read_text().replace("id, ts, to_date(ts) AS day", "id, at AS ts, to_date(at) AS day"))
        assert await self.actions() == {self.adapter: ("metadata", 0)}

    def _file(self, place: str) -> Path:
        return self.region.root / "plans" / self.name / place

    def version(self) -> str:
        """The one version of the table below the adapter."""
        (only,) = (path.name for path in (self.region.warehouse / self.called("visits")).iterdir())
        return only

    async def same(self) -> None:
        """What the pipeline answers is what the stranger's table gives."""
        await self.region.followed(self.name)
        db = duckdb.connect()
        db.execute("SET TimeZone = 'UTC'")
        db.register("outside", DeltaTable(str(self.outside)).to_pyarrow_table())
        for columns, table, truth in (
            ("id, ts, ip", "visits", "SELECT id, ts, json_extract_string(payload, '$.ip') FROM outside"),
            ("day, hits", "daily", "SELECT CAST(ts AS DATE), count(*) FROM outside GROUP BY 1"),
            ("count(*), count(DISTINCT id)", self.adapter, "SELECT count(*), count(DISTINCT id) FROM outside"),
        ):
            shown = await self.region.table(self.name, columns, self.called(table))
            assert multiset(shown) == multiset(db.execute(truth).fetchall()), table
