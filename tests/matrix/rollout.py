"""One rollout of the demo's pipeline on this interpreter's Spark: `python -m tests.matrix.rollout FOLDER`.

The hourly 95th percentile is left out, since it is kept as a sketch that older versions of Spark lack. First release, live rows,
the change, its gate, promotion, rollback, promotion again; the demo's independent check has the rows. Prints the versions as JSON.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from console import paths, spark_versions
from console.demo.check import JudgedWarehouse, compare_rows, wait_for_feeds
from console.demo.prepare import ADDED, BEFORE
from console.demo.traffic.generate import TRAFFIC, build
from tests.matrix.environments import ROOT

REGION = "us"
QUANTILE = ("p95_ms: double", "  approx_percentile(duration_ms, 0.95) AS p95_ms,")
BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
SENDS_EVERY = 2.0


def project(folder: Path) -> Path:
    """The demo's pipeline without its quantile, and one region."""
    shutil.copytree(ROOT / "plans" / "web", folder / "plans" / "web", ignore=shutil.ignore_patterns("tests"))
    for path in folder.rglob("requests_by_hour.*"):
        kept = [
            line for line in path.read_text().splitlines() if line.strip() not in {part.strip() for part in QUANTILE}
        ]
        path.write_text("\n".join(kept) + "\n")
    assert not any("p95" in path.read_text() for path in folder.rglob("requests_by_hour.*"))
    (folder / "regions").mkdir()
    spark = {"conf": {"spark.driver.extraJavaOptions": BRIEF}}
    settings = {"warehouse": str(folder / "lake"), "spark": spark}
    (folder / "regions" / f"{REGION}.yaml").write_text("".join(f"{k}: {json.dumps(v)}\n" for k, v in settings.items()))
    return folder / "plans" / "web"


class Sender:
    """Sends rows as a service does, until it is ended. sent: rows that were acknowledged"""

    def __init__(self, folder: Path) -> None:
        self._folder, self._ended, self.sent, self._number = folder, threading.Event(), 0, 0
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _send(self) -> None:
        while not self._ended.wait(SENDS_EVERY):
            lines = [self._line() for _ in range(5)]
            file = self._folder / f"sent-{self._number}.ndjson"
            file.write_text("".join(f"{line}\n" for line in lines))
            done = console(self._folder, "ingest", str(file), "--region", REGION, check=False)
            self.sent += len(lines) if done.returncode == 0 else 0

    def _line(self) -> str:
        self._number += 1
        at = datetime.now(UTC) - timedelta(seconds=self._number % 3600)
        payload = {
            "tenant": "t1", "ip": "192.0.2.1", "method": "GET", "path": f"/a/{self._number}?q=1", "protocol": "HTTP/1.1",
            "status": 200, "bytes": self._number, "duration_ms": 1.5, "referrer": "http://example.org/", "user_agent": "curl",
        }  # fmt: skip
        row = {"id": f"live-{self._number}", "region": REGION, "ts": at.isoformat(), "payload": json.dumps(payload)}
        return json.dumps(row)


def console(folder: Path, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-m", "console.main", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=900)
    if check and done.returncode:
        raise SystemExit(f"console {' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def carried(folder: Path) -> tuple[int, dict[str, int]]:
    """Rows sent while it was carried, and the figures of the independent check."""
    plans = project(folder)
    warehouse = folder / "lake"
    warehouse.mkdir()
    build(TRAFFIC[REGION], warehouse, datetime.now(UTC), None, lambda _: None)
    after = {path: path.read_text() for path in plans.rglob("*.*")}
    shutil.copytree(BEFORE, plans, dirs_exist_ok=True)
    for added in ADDED:
        (plans / added).unlink()
    console(folder, "apply", "--yes")
    sender = Sender(folder)
    try:
        for path, text in after.items():
            path.write_text(text)
        console(folder, "apply", "--no-input", check=False)  # stops at the gate
        console(folder, "promote", "--region", REGION, "--yes")
        console(folder, "rollback", "--region", REGION, "--yes")
        console(folder, "apply", "--no-input", check=False)
        console(folder, "promote", "--region", REGION, "--yes")
    finally:
        sender.end()
    with tempfile.TemporaryDirectory() as scratch:
        judged = JudgedWarehouse(REGION, str(warehouse), "web", scratch)
        wait_for_feeds([judged], 120.0)
        judged.read_landing()
        return sender.sent, compare_rows(judged)


def main(folder: str) -> int:
    place = Path(folder)
    try:
        sent, figures = carried(place)
    finally:
        console(place, "follow", "--region", REGION, "--stop", check=False)
    wrong = [name for name in ("gaps", "duplicates", "changed") if figures[name]]
    if wrong or not sent or not figures["agents"] or figures["landing"] != figures["compared"]:
        raise SystemExit(f"wrong: {wrong}, {sent} rows sent, {figures}")
    print(json.dumps({"versions": asdict(spark_versions.installed(paths.jars_dir())), "sent": sent, **figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
