"""The demo's rollout in a bucket: with a Spark of the agent's own, on a cluster, and through Spark Connect.

Its producer and its reader go on, while agents and consoles die at every point of `tests/faults` that a rollout of this
pipeline meets. The rows are judged on a copy of the bucket by the demo's own check, which imports nothing of console.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import obstore
import pytest

from console.demo.check import MIN_READS
from console.demo.prepare import ADDED, BEFORE
from console.demo.traffic.generate import Traffic, build
from tests.faults import points
from tests.faults.mirror import Mirror
from tests.objects.region import LOOK_SECONDS, Region
from tests.objects.server import BUCKET, client
from tests.objects.sparks import KINDS, Kind
from tests.objects.test_region_on_connect import has_no_jvm
from tests.soak import DOCS, append

pytestmark = [pytest.mark.cluster, pytest.mark.s3, pytest.mark.soak]

ROOT = DOCS.parent
CHECK = ROOT / "console" / "demo" / "check.py"
# of the history; live rows are as many as the demo's producer sends
TRAFFIC = Traffic(region="us", rows_a_day=4_000, heavy=9_000, live=50)
# the demo's own, with a commit each ten seconds: the server of these tests takes longer for each of thousands
PRODUCER = "from console.demo.traffic import producer; producer.BATCH_SECONDS = 10.0; producer.main()"
# a rollout of this pipeline builds no aggregate anew, and its first release is not under fire
MET = tuple(
    point.replace("requests-parse", "requests-parse_requests")  # the name of its query
    for point in (*points.FIRST, *points.LIVE)
    if "by_hour" not in point and point != "before-commit-landing"
)
# where an agent dies of entering the gate, no console sees it enter
CONSOLE = tuple(point for point in points.CONSOLE if "-saw-" not in point)
TRIES = 60
UNDER_FIRE_SECONDS = 3600.0  # a command outlives dozens of agents, each of which leaves a lease of half a minute
LEVEL_SECONDS = 300.0
LEVEL_PAUSE_SECONDS = 5.0
READ_SECONDS = 600.0
NURSE_SECONDS = 3.0


@dataclass(slots=True, kw_only=True)
class Demo:
    """The demo's pipeline in a region of a bucket.  before: rows of its history"""

    region: Region
    before: int = 0

    @property
    def plans(self) -> Path:
        return self.region.home / "project" / "plans" / "web"

    @property
    def crashes(self) -> Path:
        return self.region.home / "crash"

    @property
    def ledger(self) -> Path:
        return self.region.home / "ledgers" / "us.ndjson"

    def prepare(self) -> None:
        """History in the bucket, the pipeline as it was before the change, and its first release."""
        history = self.region.home / "history"
        history.mkdir()
        self.before = build(TRAFFIC, history, datetime.now(UTC), None, lambda _: None)
        store = client(self.region.store["AWS_ENDPOINT_URL"], self.region.store)
        prefix = self.region.warehouse.removeprefix(f"s3://{BUCKET}/")
        for file in sorted(
            (path for path in history.rglob("*") if path.is_file()), key=lambda path: "_delta_log" in path.parts
        ):
            obstore.put(store, f"{prefix}/{file.relative_to(history)}", file.read_bytes())
        self.region.write({})
        shutil.copytree(ROOT / "plans" / "web", self.plans)
        shutil.copytree(BEFORE, self.plans, dirs_exist_ok=True)
        for added in ADDED:
            (self.plans / added).unlink()
        self.region.console("apply", "--yes")

    def change(self) -> None:
        shutil.copytree(ROOT / "plans" / "web", self.plans, dirs_exist_ok=True)

    def under_fire(self, armed: tuple[str, ...], *words: str) -> None:
        """The same command until it is done, while a process dies at each of these points."""
        for point in armed:
            (self.crashes / point).touch()
        for _ in range(TRIES):
            outcome = self.region.attempt(*words, seconds=UNDER_FIRE_SECONDS)
            if outcome.returncode == 0:
                break
        assert outcome.returncode == 0, f"{words}: {outcome}\n{self.region.log()}"
        until = time.monotonic() + LEVEL_SECONDS  # a command may be quicker than the producer's next batch
        while self.armed() and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        assert self.armed() == set(), "these were never reached"

    def armed(self) -> set[str]:
        return {path.name for path in self.crashes.iterdir() if path.is_file()}

    def died(self) -> list[str]:
        return sorted(path.name.rpartition(".")[0] for path in (self.crashes / "fired").iterdir())

    @contextmanager
    def nursed(self) -> Iterator[None]:
        """What a service manager does: an agent that died is started again."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(NURSE_SECONDS):
                if not self.region.running():
                    self.region.follow()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    @contextmanager
    def beside(self, name: str, *words: str, **more: str) -> Iterator[None]:
        """A process of the demo's, until SIGTERM; its consoles and agents reach the bucket as all of this region do."""
        with (self.region.home / f"{name}.log").open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=ROOT,
                env={**self.region.environment, **more},
                stdout=out,
                stderr=out,
            )
            try:
                yield
                assert process.poll() is None, (
                    f"{name} has ended: {(self.region.home / f'{name}.log').read_text()[-1000:]}"
                )
            finally:
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(60)
                process.kill()
                process.wait()

    def producing(self) -> AbstractContextManager[None]:
        project = str(self.region.home / "project")
        words = ("--project", project, "--region", "us", "--pipeline", "web", "--ledger", str(self.ledger))
        return self.beside("producer", "-c", PRODUCER, *words)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Ends once there are as many reads as the demo's check asks for. It reads around the proxy that agents go through."""
        copy, results = str(self.region.home / "read"), str(self.reads)
        words = ("--mirrored", self.region.warehouse, "--copy", copy, "--results", results)
        with self.beside("reader", "-m", "tests.objects.demo_reader", *words, **self.region.store):
            yield
            until = time.monotonic() + READ_SECONDS
            while self.seen()["reads"] < MIN_READS and time.monotonic() < until:
                time.sleep(LOOK_SECONDS)

    @property
    def reads(self) -> Path:
        return self.region.home / "reads.json"

    def seen(self) -> dict[str, Any]:
        """Figures of the reader so far."""
        figures: dict[str, Any] = json.loads(self.reads.read_text())["us"]
        return figures

    def level(self) -> None:
        """Wait until every landed row has arrived and nothing is written any more."""
        until, last = time.monotonic() + LEVEL_SECONDS, -1
        while time.monotonic() < until:
            paths = self.region.paths()
            landed, arrived = (self._rows(paths[name]) for name in ("landing", "requests"))
            version = self.region.table(paths["requests_by_hour"]).version()
            if landed == arrived and version == last:
                return
            last = version
            time.sleep(LEVEL_PAUSE_SECONDS)
        raise AssertionError(f"{landed} rows landed, {arrived} arrived")

    def _rows(self, path: str) -> int:
        return sum(self.region.table(path).get_add_actions(flatten=True).column("num_records").to_pylist())

    def judged(self) -> dict[str, Any]:
        """What the demo's check says of the live release, on a copy of the bucket."""
        self.level()
        copy, facts, result = (self.region.home / name for name in ("judged", "facts.json", "check.json"))
        Mirror(self.region.warehouse, copy, self.region.store).sync()
        facts.write_text(json.dumps({"us": {"before": self.before, "moved": 0, "everything": 0}}))
        done = subprocess.run(
            [
                sys.executable, "-P", str(CHECK), "--region", f"us={copy}", "--reads", str(self.reads),
                "--ledgers", str(self.ledger.parent), "--facts", str(facts), "--json", str(result), "--settle", "0",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        shutil.rmtree(copy)
        assert done.returncode in (0, 1), done.stderr
        (figures,) = json.loads(result.read_text())
        return dict(figures)


@pytest.mark.parametrize("spark", KINDS)
def test_the_demos_rollout_loses_and_doubles_no_row_under_fire(bare_region: Region, spark: Kind) -> None:
    demo, began = Demo(region=bare_region), time.monotonic()
    with spark(demo.region.home, demo.region.environment) as demo.region.spark:
        demo.prepare()
        before = demo.region.live()
        demo.change()
        with demo.nursed():
            with demo.producing():
                with demo.reading():
                    demo.under_fire((*MET, *CONSOLE), "apply", "--yes")
                reads, changed = demo.seen(), demo.region.live()
                demo.under_fire(points.BACK, "rollback", "--region", "us", "--yes")
                demo.under_fire((), "rollback", "--region", "us", "--yes", "--to", changed)
            figures = demo.judged()
        if "remote" in demo.region.spark:
            assert has_no_jvm(demo.region)
        keep(spark.__name__, demo, figures, time.monotonic() - began)
        assert figures["faults"] == [], (figures, reads["notes"])
        # a console that dies before its plan is accepted leaves a release's id unused
        assert (figures["release"], reads["releases"]) == (changed, [before, changed])


def keep(spark: str, demo: Demo, figures: dict[str, Any], seconds: float) -> None:
    """One line of the account of reliability, where one is asked for."""
    if place := os.environ.get("CONSOLE_RELIABILITY"):
        wrong = {
            "lost": "gaps",
            "duplicated": "duplicates",
            "unexpected": "changed",
            "torn": "torn",
            "failed": "failed",
        }
        append(
            Path(place),
            {
                "seed": 0, "store": "s3", "pipeline": "demo", "spark": spark, "faults": demo.died(), "seconds": round(seconds),
                "rows": figures["landing"], "reads": figures["reads"], **{name: figures[of] for name, of in wrong.items()},
                "result": "; ".join(figures["faults"]) or "whole",
            },
        )  # fmt: skip
