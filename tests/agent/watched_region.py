"""A region on real Spark whose releases are watched after their promotion, and defects that show only then.

Every defect leaves the version before as it was: only the new one lacks something, or only its definition breaks.
"""

import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.agent.feeds import live_feed
from console.agent.store import log
from console.model.breach import Breach, OnBreach, WatchProgress
from console.model.live import TableState
from console.model.status import Status
from tests.agent import watched_rows
from tests.agent.test_expectations import ExpectingRegion
from tests.agent.test_resilience import COLUMNS, PARSE, TABLE
from tests.life.region import LANDING

NEWEST = datetime(2026, 11, 4, 12, tzinfo=UTC)  # the day of the rows that arrive
CALLED = "2026-11-02"  # the day that is asked for
ADDED = (
    ", get_json_object(payload, '$.status') AS status, CAST(get_json_object(payload, '$.ms') AS DOUBLE) AS ms"  # r2's
)
# of an address with many a and no b it tries every way to divide them
COSTLY = " AND ip NOT RLIKE 'a.*a.*a.*a.*b'"
LONG = "a" * 76
CALL = f"calls:\n  - {{parameters: {{day: {CALLED}}}, budget: {{files: 30}}}}\n"
NEWEST_CALL = f"calls:\n  - {{parameters: {{day: {NEWEST:%Y-%m-%d}}}, budget: {{files: 200}}}}\n"
QUERY = "SELECT count_if(ip = 'evil') = 0 FROM requests"
VALUES = "requests: unchanged columns, newest days"
SECONDS = 120.0


class WatchedRegion(ExpectingRegion):
    """r1 is live; the next release adds two columns, expectations, and a condition to an endpoint."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._numbering = threading.Lock()

    def written(self, root: Path, *, first: bool = False, lenient: bool = False) -> Path:
        """The pipeline's files.

        lenient  without what rows of the defects break
        """
        added = "" if first else ADDED.replace("CAST(", "TRY_CAST(") if lenient else ADDED
        columns = COLUMNS + ("}\n" if first else ", status: string, ms: double}\n")
        expected = "cluster_by: [id]\nexpectations:\n  - status <> 'boom'\n  - {not_null: [id]}\n"
        texts = {
            "pipeline.yaml": "description: watched after its promotion\n",
            "tables/landing.yaml": TABLE,
            "tables/requests.yaml": columns if first or lenient else columns + expected,
            "materializations/parse.sql": f"{PARSE}{added} FROM landing\n",
            "endpoints/of_day.sql": "/* parameters: {day: date} */\n"
            "SELECT id, ts, ip FROM requests WHERE day = :day ORDER BY id\n",
            "endpoints/of_day.calls.yaml": CALL,
            "endpoints/clean.sql": "/* parameters: {day: date} */\n"
            f"SELECT count(*) AS n FROM requests WHERE day = :day{'' if first or lenient else COSTLY}\n",
            "endpoints/clean.calls.yaml": NEWEST_CALL,
        }
        for name, text in texts.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root

    async def releases(self, place: Path, **files: bool) -> None:
        """Carry a release to its gate, and promote it."""
        await self.waits(place, **files)
        self.promote()

    async def waits(self, place: Path, **files: bool) -> None:
        """Carry a release to its gate. files: as of `written`"""
        self.install("web", self.written(place, **files))
        plan = await self.plan("web")
        assert not plan.refusals, plan.refusals
        status = self.carry(plan)
        assert status.shown == "awaiting-confirmation", status.why
        assert [check for check in status.checks if check.ok is False] == []

    def watched(self, on_breach: OnBreach, query: str = QUERY) -> None:
        """The policy of the releases that follow."""
        asks = f", watch_query: {json.dumps(query)}" if query else ""
        self.policy(f"policy: {{watch: 3600s, on_breach: {on_breach}{asks}}}")

    @property
    def status(self) -> Status:
        return self.controller.recorder.status

    @property
    def new(self) -> str:
        """The path of the new version."""
        state = self._state()
        return self.controller.path(state.version.path)

    def _state(self) -> TableState:
        plan = self.controller.recorder.plan
        assert plan is not None
        state = plan.release.table("requests")
        assert state is not None
        return state

    def arrive(self, *payloads: dict[str, Any], at: datetime = NEWEST) -> list[str]:
        """Live rows of one commit, with these values; returns their ids. Their times differ: none is a copy of another"""
        with self._numbering:
            events = [self._next() for _ in payloads]
        rows = [
            {**event, "ts": at + timedelta(seconds=n), "payload": json.dumps(self.payload(**payload))}
            for n, (event, payload) in enumerate(zip(events, payloads, strict=True))
        ]
        write_deltalake(str(self.warehouse / "landing"), pa.Table.from_pylist(rows, LANDING), mode="append")
        return [str(row["id"]) for row in rows]

    @staticmethod
    def payload(**values: Any) -> dict[str, Any]:
        return {"ip": "192.0.2.9", "status": "200", "ms": 1.5, **values}

    def follow(self) -> None:
        """Until every feed that moves has passed what has landed. A tick that began before may answer a request as well."""
        landing = str(self.warehouse / "landing")
        latest, end = log.latest_version(landing), time.monotonic() + SECONDS
        while self.controller.feeds.follower.align("web").result(SECONDS)[landing] < latest:
            assert time.monotonic() < end

    def until(self, true: Callable[[Status], bool], seconds: float = SECONDS) -> Status:
        """The agent's own rounds go on until this is true of the status."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.service.agent.tick()
            if true(self.status):
                return self.status
            time.sleep(0.1)
        raise AssertionError(f"still {self.status.watch} {self.status.watched} {self.status.checks}")

    def clean_rounds(self, number: int) -> WatchProgress:
        """Until so many rounds in a row were clean."""
        status = self.until(lambda status: status.watch is not None and status.watch.clean >= number)
        assert status.watch is not None
        return status.watch

    def breached(self, name: str) -> Breach:
        """The breach of a check, as soon as it is stored."""
        status = self.until(lambda status: any(breach.name == name for breach in status.watched.breaches))
        return next(breach for breach in status.watched.breaches if breach.name == name)

    def due(self, *kinds: str) -> None:
        """Of the checks that ask Spark, these are run in the next round, and no others. A round that began before this has ended."""
        loops = (self.service.agent.rounds._watch, self.service.agent.rounds._gate)
        for loop in loops:
            if loop._thread is not None:
                loop._thread.join(SECONDS)
        known = (loop._known.get("web") for loop in loops)
        for check in (check for each in known if each is not None for check in each.slow):
            check.due = 0.0 if check.name in kinds else math.inf

    def judged(self) -> list[dict[str, Any]]:
        """What another program says of the rows of live and of the release before. raises AssertionError if live lacks one"""
        script = [sys.executable, "-I", watched_rows.__file__, str(self.warehouse), "web"]
        judged = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
        assert judged.returncode == 0, judged.stdout + judged.stderr
        return [json.loads(line) for line in judged.stdout.splitlines()]

    def rewrite(self, day: str, column: str = "", value: str = "", files: int = 1) -> None:
        """A compaction of a day that writes other files than it should, or another value: to readers of the log no row changes.

        column, value  an expression for one column
        """
        session = self.service.agent.spark.session()
        rows = session.read.format("delta").load(self.new).where(f"day = '{day}'")
        rows = rows.withColumn(column, expression(value)) if column else rows
        rows = session.createDataFrame(rows.collect(), rows.schema).repartition(files)
        options = {"replaceWhere": f"day = '{day}'", "dataChange": "false"}
        rows.write.format("delta").mode("overwrite").options(**options).save(self.new)


def expression(sql: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(sql)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A defect of the new version.

    check  the name of the breach;  kind: of the checks that find it, "" for those of logs
    also   another check that may find it first, of the newest rows
    """

    name: str
    check: str
    kind: str
    also: str = ""
    plant: Callable[[WatchedRegion], None]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of all checks that may find it."""
        return (self.kind, "newest rows") if self.also else (self.kind,)


def turns_false(region: WatchedRegion) -> None:
    region.arrive({"ip": "evil"})


def slow_on_new_traffic(region: WatchedRegion) -> None:
    region.arrive({"ip": LONG})


def unexpected(region: WatchedRegion) -> None:
    region.arrive({}, {"status": "boom"})


def many_files(region: WatchedRegion) -> None:
    region.rewrite(CALLED, files=60)


def another_value(region: WatchedRegion) -> None:
    one = region.arrive({})[0]
    region.follow()
    region.rewrite(f"{NEWEST:%Y-%m-%d}", "ip", f"CASE WHEN id = '{one}' THEN '0.0.0.0' ELSE ip END")


def lost_and_doubled(region: WatchedRegion) -> None:
    """One row of a live commit for another: the number of rows stays."""
    with wrong_feed(region, "id"):
        region.arrive({}, {"ip": "192.0.2.77"}, {"ip": "192.0.2.78"})
        region.follow()


def new_shape(region: WatchedRegion) -> None:
    """A producer's new shape, which only the new version's query does not convert."""
    region.arrive({"ms": "fast"})


@contextmanager
def wrong_feed(region: WatchedRegion, by: str) -> Iterator[None]:
    """The new version's live feed leaves the last row of each range out, and stores the first one twice."""
    compute, new = live_feed.compute, region.new

    def wrong(session: Any, feed: live_feed.LiveFeed, stored: Any, joined: Any) -> Any:
        rows = compute(session, feed, stored, joined)
        if feed.target_path != new:
            return rows
        first, last = rows.orderBy(rows[by]).first()[by], rows.orderBy(rows[by].desc()).first()[by]
        return rows.where(f"{by} <> '{last}'").unionAll(rows.where(f"{by} = '{first}'"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_feed, "compute", wrong)
        yield


# in this order they can be planted under one watch: none hides the next one
DEFECTS = (
    Defect(name="a query turns false", check="policy: watch_query", kind="policy's query", plant=turns_false),
    Defect(name="slow on new traffic", check="clean: recorded calls: cost", kind="recorded calls", plant=slow_on_new_traffic),
    Defect(name="a row not as expected", check="requests: expects status <> 'boom'", kind="expectations", plant=unexpected),
    Defect(name="more files to read", check="of_day: recorded calls: cost", kind="recorded calls", plant=many_files),
    Defect(name="another value", check=VALUES, kind="newest rows", plant=another_value),
    Defect(name="lost and doubled", check="requests: feed parse: live rows", kind="live rows", also=VALUES, plant=lost_and_doubled),
    Defect(name="its feed stops", check="requests: feed parse goes on", kind="", plant=new_shape),
)  # fmt: skip
