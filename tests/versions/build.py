"""Regions as the code of another commit builds and leaves them, packed into one archive each.

    python -m tests.versions.build --commit e7e9d6c        needs Java; tests/versions/<version of console there>/

The commit is checked out into a temporary folder and run from there, by its own command line, in this environment: its
lock is the same but for tools. What an archive holds is a project, its warehouse below it, as it lay at `PLACE`.
"""

import argparse
import gzip
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLACE = Path("/tmp/console-stored")  # a release of 0.1.0 holds absolute paths: the same on every machine
FIRST_DAY = datetime(2026, 11, 1, tzinfo=UTC)
DAYS, ROWS, BATCH = 4, 180, 60
TIMEOUT = 300.0
RELEASES = "releases.json.gz"
STATES = ("gate", "paused", "failed", "live")
REGION = """name: eu
warehouse: warehouse
policy: {promote: ask}
limits: {rows: %d}
spark:
  master: local[2]
  conf:
    spark.sql.codegen.wholeStage: "false"
    spark.sql.codegen.factoryMode: NO_CODEGEN
    spark.driver.memory: 1g
    spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""
# in every process of the old code: whose machine built it stands nowhere
NOBODY = "import socket\nsocket.gethostname = lambda: 'laptop'\n"
LANDING = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("payload", pa.string())])
CLICKS = pa.schema(
    [("click_id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("ip", pa.string()), ("cents", pa.int64())]
)
COUNTRIES = pa.schema([("ip", pa.string()), ("country", pa.string())])


class Building:
    """One project at `PLACE`, and the command line of a checkout."""

    def __init__(self, checkout: Path) -> None:
        self.checkout, self.warehouse = checkout, PLACE / "warehouse"
        self._rng, self._written, self._clicked, self._sent = random.Random(13), 0, 0, 0
        self._home = checkout.parent / "home"
        python = checkout.parent / "python"
        python.mkdir()
        (python / "sitecustomize.py").write_text(NOBODY)
        self._env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(checkout), str(python)]),
            "CONSOLE_HOME": str(self._home),
            "CONSOLE_JARS": str(ROOT / ".console" / "jars"),
            "LOGNAME": "ada",
            "NO_COLOR": "1",
        }

    # -- the old code's own command line

    def console(self, *words: str, exits: tuple[int, ...] = (0,)) -> str:
        """What a command says on stdout.

        raises  AssertionError with all it said where it exits otherwise
        """
        command = [sys.executable, "-m", "console.main", *words, "--project", str(PLACE)]
        done = subprocess.run(command, cwd=self.checkout, env=self._env, capture_output=True, text=True, check=False)
        assert done.returncode in exits, f"{' '.join(words)}: exit {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def status(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.console("status", "--output", "json"))
        return data["regions"][0]

    def until(self, what: str, holds: Callable[[dict[str, Any]], bool]) -> None:
        end, status = time.monotonic() + TIMEOUT, {}
        while time.monotonic() < end:
            status = self.status()
            if holds(status):
                return
            time.sleep(0.2)
        raise AssertionError(f"not {what} after {TIMEOUT:g} s: {status}")

    def until_event(self, event: str) -> None:
        """Until the second release's rollout has stored such an event: read here, since a command takes seconds to begin."""
        table = DeltaTable(str(self.warehouse / "_console" / "web" / "rollouts"))
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            table.update_incremental()
            rows = table.to_pyarrow_table(columns=["rollout", "event"]).to_pylist()
            if any(row["rollout"] == "web-2" and json.loads(row["event"])["type"] == event for row in rows):
                return
            time.sleep(0.1)
        raise AssertionError(f"no {event} after {TIMEOUT:g} s")

    def left(self, state: Callable[[], None], archive: Path) -> None:
        """Bring the region there, end its agent and pack what it leaves."""
        began = time.monotonic()
        try:
            state()
        finally:
            self.console("follow", "--region", "eu", "--stop", exits=(0, 4, 5))
        packed(archive)
        text = f"{archive.name}: {archive.stat().st_size / 1024:.0f} KiB, {time.monotonic() - began:.0f} s"
        print(text, file=sys.stderr, flush=True)

    # -- what others do

    def install(self, files: str) -> None:
        shutil.rmtree(PLACE / "plans", ignore_errors=True)
        shutil.copytree(HERE / "pipeline" / files, PLACE / "plans" / "web")

    def event(self) -> dict[str, Any]:
        """One row of landing: mostly of known days, one in thirty without a time."""
        self._written += 1
        at = FIRST_DAY + timedelta(seconds=self._rng.randrange(DAYS * 86400))
        payload = {
            "ip": f"192.0.2.{self._rng.randrange(8)}",
            "status": self._rng.choice([200, 200, 304, 404, 500, 700]),
            "bytes": self._rng.choice([None, self._rng.randrange(10_000)]),
            "ms": self._rng.randrange(4_000) / 8,
            "ua": self._rng.choice(["curl/8", "Googlebot", "Mozilla/5.0 (“X”; \\ 'q')", ""]),
        }
        return {
            "id": f"e{self._written}",
            "ts": None if self._written % 30 == 0 else at,
            "payload": json.dumps(payload),
        }

    def seed(self) -> None:
        for _ in range(3):
            rows = pa.Table.from_pylist([self.event() for _ in range(ROWS // 3)], LANDING)
            write_deltalake(str(self.warehouse / "landing"), rows, mode="append")
        known = [{"ip": f"192.0.2.{n}", "country": ("es", "fr", "tr")[n % 3]} for n in range(6)]
        write_deltalake(str(self.warehouse / "countries"), pa.Table.from_pylist(known, COUNTRIES))
        self.click(40)

    def click(self, rows: int) -> None:
        """Somebody else's writer appends to a landing table of its own."""
        made = []
        for _ in range(rows):
            self._clicked += 1
            at = FIRST_DAY + timedelta(seconds=self._rng.randrange(DAYS * 86400))
            ip = f"192.0.2.{self._rng.randrange(8)}"
            made.append({"click_id": f"c{self._clicked}", "at": at, "ip": ip, "cents": self._rng.randrange(500)})
        write_deltalake(str(self.warehouse / "clicks"), pa.Table.from_pylist(made, CLICKS), mode="append")

    @contextmanager
    def clicking(self) -> Iterator[None]:
        """Somebody clicks once in five seconds, so that every feed passes a live row."""
        enough = threading.Event()

        def go() -> None:
            while not enough.wait(5):
                self.click(1)

        thread = threading.Thread(target=go)
        thread.start()
        try:
            yield
        finally:
            enough.set()
            thread.join()

    def ingest(self, rows: int) -> None:
        self._sent += 1
        made = [self.event() for _ in range(rows)]
        lines = [json.dumps({**row, "ts": row["ts"] and row["ts"].isoformat()}) for row in made]
        file = self._home / f"part-{self._sent}.ndjson"
        file.write_text("\n".join(lines) + "\n")
        self.console("ingest", str(file), "--region", "eu", "--pipeline", "web")

    def releases(self, into: Path) -> None:
        """What the planner of that commit makes of many pipelines."""
        kept = [*self.checkout.glob("plans/*"), *self.checkout.glob("tests/*/cases/*/*"), *HERE.glob("pipeline/*")]
        folders = [str(folder) for folder in sorted(kept) if (folder / "pipeline.yaml").is_file()]
        subprocess.run(
            [sys.executable, str(HERE / "released.py"), str(into), *folders],
            cwd=self.checkout,
            env={**self._env, "PYTHONPATH": str(self.checkout)},
            check=True,
        )

    # -- the states in which a region is left

    def first(self) -> None:
        """A first release, live, with rows that came after its history."""
        shutil.rmtree(PLACE, ignore_errors=True)
        self.warehouse.mkdir(parents=True)
        (PLACE / "regions").mkdir()
        (PLACE / "regions" / "eu.yaml").write_text(REGION % BATCH)
        self._home.mkdir(exist_ok=True)
        self.install("before")
        self.seed()
        with self.clicking():
            self.console("apply", "--yes", "--no-input")
        self.ingest(12)
        self.click(3)
        self.followed()

    def followed(self) -> None:
        """Every feed has read all that there is, for some seconds."""
        for _ in range(3):
            time.sleep(1.5)
            self.until("followed", lambda region: region["status"]["lag_commits"] == 0)

    def gate(self) -> None:
        self.install("after")
        self.console("apply", "--no-input", exits=(3,))
        self.ingest(7)
        self.click(2)
        self.followed()

    def live(self) -> None:
        self.gate()
        self.console("promote", "--regions", "eu", "--yes", "--no-input")
        self.ingest(6)
        self.click(2)
        self.followed()

    def paused(self) -> None:
        """In the middle of its history: some days are in, some are not."""
        self.install("after")
        command = [sys.executable, "-m", "console.main", "apply", "--no-input", "--project", str(PLACE)]
        applying = subprocess.Popen(
            command, cwd=self.checkout, env=self._env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        hold = self.warehouse / "_console" / "pause"
        self.until_event("BatchDone")
        hold.write_text("one batch is enough")
        self.console("pause", "--regions", "eu")
        self.until("paused", lambda region: region["status"]["held"] == "paused")
        hold.unlink()
        applying.terminate()
        applying.wait(TIMEOUT)
        steps = self.status()["status"]["steps"]
        done = sum(step["rows_done"] for step in steps if step["id"].startswith("backfill/requests"))
        assert 0 < done < ROWS, f"{done} of {ROWS} rows are in"
        self.ingest(5)
        self.click(2)

    def failed(self) -> None:
        """A file of landing is not where its log says; it is back when the region is packed."""
        self.install("after")
        table = DeltaTable(str(self.warehouse / "landing"), version=0)
        file = Path(table.file_uris()[0].removeprefix("file://"))
        file.rename(self.warehouse / "aside")
        self.console("apply", "--no-input", exits=(1,))
        self.until("failed", lambda region: region["status"]["held"] == "failed")
        (self.warehouse / "aside").rename(file)


def checked_out(commit: str, into: Path) -> Path:
    into.mkdir()
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(into, filter="data")
    return into


def packed(into: Path) -> None:
    """All of `PLACE`, each time the same bytes for the same files."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return info

    with (
        into.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, 0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        archive.add(PLACE, ".", filter=plain)


def unpacked(archive: Path, into: Path) -> None:
    shutil.rmtree(into, ignore_errors=True)
    with tarfile.open(archive) as file:
        file.extractall(into, filter="tar")


def build(commit: str, states: list[str], scratch: Path) -> None:
    full = subprocess.run(["git", "-C", str(ROOT), "rev-parse", commit], capture_output=True, text=True, check=True)
    checkout = checked_out(commit, scratch / "checkout")
    building, base = Building(checkout), scratch / "first.tar.gz"
    version = building.console("--version").split()[-1]
    into = HERE / version
    into.mkdir(exist_ok=True)
    building.releases(into / RELEASES)
    if states:
        building.left(building.first, base)
    for state in states:
        unpacked(base, PLACE)
        building.left(getattr(building, state), into / f"{state}.tar.gz")
        noted = {"commit": full.stdout.strip(), "version": version, "at": round(time.time()), "place": str(PLACE)}
        (into / f"{state}.json").write_text(json.dumps(noted, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="build regions with the code of another commit")
    parser.add_argument("--commit", required=True)
    parser.add_argument("--only", choices=("releases", *STATES), action="append", help="this alone; may be given again")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="console-versions-") as scratch:
        build(asked.commit, [state for state in asked.only or STATES if state != "releases"], Path(scratch))
    shutil.rmtree(PLACE, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
