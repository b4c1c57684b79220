"""One agent that follows a chain of two tables, in a process of its own: `FOLDER RATE SECONDS SETTINGS COMMITS COMPACT`.

Prints one JSON object. A producer beside it (`producer_process`) commits so many rows a second, once a second; the lags are the differences between
the times at which the landing commits and those of the chain's last table were put into their logs. COMMITS: of each table before that.
No compaction falls into that time; COMPACT 1: what one takes afterwards is told beside it.
"""

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from console.agent.feeds import app_ids
from console.agent.maintenance import maintainer
from console.agent.maintenance.maintainer import MaintenanceRequest
from console.agent.service import Service
from console.agent.settings import Settings, load_settings
from console.model.live import Feed
from tests.agent.test_status_without_agent import UnattendedSetup
from tests.bench.processor_time import spent
from tests.bench.size import sized
from tests.faults.rules.tables import commit_rows, number, rows

WARM_SECONDS = float(sized(20, 40))
TAIL_SECONDS = 20.0
MOST_LINKS = 30_000  # of one file; a file system has its own limit
FEW = 10  # files that are worth a compaction here
MARKS = 6  # while rows are produced, at equal distances


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What following has taken so far. seconds: of processors; commits, log_bytes: of the two tables, their JSON"""

    seconds: float
    commits: int
    log_bytes: int

    @classmethod
    def now(cls, agent: Any, tables: Iterable[Path]) -> "Mark":
        logs = [path for table in tables for path in (table / "_delta_log").glob("*.json")]
        return cls(seconds=own(agent), commits=len(logs), log_bytes=sum(path.stat().st_size for path in logs))


def main(
    place: Path, rate: int, seconds: float, settings: Settings, commits: int = 0, *, compact: bool = False
) -> dict[str, Any]:
    maintainer.EVERY_SECONDS = math.inf  # an hour's compaction would fall into the last of the marks alone
    setup = UnattendedSetup(place)
    if commits:
        grown(setup, commits)
    (setup.warehouse / "_console").mkdir(exist_ok=True)
    agent = Service(setup.warehouse, settings, -1).agent
    ended = threading.Event()
    agent.start()
    agent.controller("web").resume()

    def tick() -> None:
        while not ended.wait(1.0):
            agent.tick()

    threading.Thread(target=tick, name="ticks", daemon=True).start()
    with producing(setup.landing, rate) as end:
        time.sleep(WARM_SECONDS)
        tables = tuple(setup.warehouse / name for name in ("copy", "below"))
        began = time.monotonic()
        first = DeltaTable(setup.landing).version() + 1
        marks = [Mark.now(agent, tables)]
        for _ in range(MARKS):
            time.sleep(seconds / MARKS)
            marks.append(Mark.now(agent, tables))
        used, took = marks[-1].seconds - marks[0].seconds, time.monotonic() - began
        produced = end()
    last = DeltaTable(setup.landing).version()
    until_there(setup, produced)
    report = {
        "cores": used / took,
        "marks": [asdict(mark) for mark in marks],
        "lags": lags(setup.warehouse / "landing", setup.warehouse / "copy", setup.warehouse / "below", (first, last)),
        "ticks": max(0, DeltaTable(str(setup.warehouse / "below")).version()),
    }
    if compact:
        report["compaction"] = [asdict(mark) for mark in compacted(agent, tables)]
    ended.set()
    agent.stop()
    return report


def compacted(agent: Any, tables: tuple[Path, ...]) -> tuple[Mark, Mark]:
    """Before and after one compaction of these tables."""
    before = Mark.now(agent, tables)
    done = agent.maintainer.run(agent.controller("web"), MaintenanceRequest(many=FEW))
    assert sum(each.what == "compacted" for each in done) == len(tables), done
    return before, Mark.now(agent, tables)


def grown(setup: UnattendedSetup, commits: int) -> None:
    """Lengthen each log by so many commits that changed nothing, as those of an earlier time; its feeds have passed them."""
    for source, target, feed in (("", "landing", ""), ("landing", "copy", "every"), ("copy", "below", "again")):
        table = DeltaTable(str(setup.warehouse / target))
        table.create_checkpoint()
        log, last = setup.warehouse / target / "_delta_log", table.version()
        for version in range(last + 1, last + commits + 1):
            if (version - last) % MOST_LINKS == 1:
                one = log / f"{version:020}.json"
                one.write_text(json.dumps({"commitInfo": {"timestamp": round(time.time() * 1000)}}))
            else:
                os.link(one, log / f"{version:020}.json")
        # what the checkpoint holds is still so: nothing has changed since
        (log / f"{last:020}.checkpoint.parquet").rename(log / f"{last + commits:020}.checkpoint.parquet")
        hint = json.loads((log / "_last_checkpoint").read_text())
        (log / "_last_checkpoint").write_text(json.dumps({**hint, "version": last + commits}))
        if source:
            spec = Feed(materialization=feed, source=source, target=target, sql="")
            seen = DeltaTable(str(setup.warehouse / source)).version()
            path = str(setup.warehouse / target)
            commit_rows(path, app_ids.live_id(path, spec), number(1, seen), rows(), kind="live")


@contextmanager
def producing(landing: str, rate: int) -> Iterator[Callable[[], int]]:
    """A producer beside the agent; what it has taken is none of the agent's. Yields what ends it and returns its rows."""
    command = [sys.executable, "-m", "tests.bench.producer_process", landing, str(rate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:

        def end() -> int:
            process.terminate()
            return int(process.communicate()[0])

        try:
            yield end
        finally:
            process.terminate()


def own(agent: Any) -> float:
    """Processor seconds of the agent so far, Python and JVM, without the main thread, which measures here."""
    jvm = agent.spark._jvm.proc.pid if agent.spark.started else 0
    everything = spent(jvm) if jvm else time.process_time()
    return everything - time.thread_time()


def until_there(setup: UnattendedSetup, produced: int) -> None:
    end = time.monotonic() + TAIL_SECONDS
    while DeltaTable(str(setup.warehouse / "below")).count() < produced and time.monotonic() < end:
        time.sleep(0.2)


def lags(landing: Path, upper: Path, lower: Path, versions: tuple[int, int]) -> list[float]:
    """Seconds from each landing commit to the commit that holds its rows two tables further.

    versions  of the landing table, first and last
    """
    copied, below = passed(upper), passed(lower)
    found = []
    for version in range(versions[0], versions[1] + 1):
        through = next((at for at, (start, end) in copied.items() if start <= version <= end), None)
        there = next(
            (at for at, (start, end) in below.items() if through is not None and start <= through <= end), None
        )
        if there is None:
            raise AssertionError(f"landing version {version} did not arrive")
        found.append(put(lower, there) - put(landing, version))
    return found


def passed(table: Path) -> dict[int, tuple[int, int]]:
    """Version → the versions of its source whose rows it holds."""
    ranges = {}
    for entry in DeltaTable(str(table)).history():
        note = json.loads(entry.get("userMetadata") or "{}")
        if note.get("kind") == "live" and "to" in note:
            ranges[int(entry["version"])] = (int(note["from"]), int(note["to"]))
    return ranges


def put(table: Path, version: int) -> float:
    return (table / "_delta_log" / f"{version:020}.json").stat().st_mtime


if __name__ == "__main__":
    given = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), load_settings(sys.argv[4])
    print(json.dumps(main(*given, int(sys.argv[5]), compact=sys.argv[6] == "1")))
