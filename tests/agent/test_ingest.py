"""`console ingest` as an operator types it, against a real agent that is killed in the middle. No Java: nothing is followed."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.store import log
from console.agent.store.ledger import Releases
from console.model.live import Release, TableState, Version
from console.model.schema import Column, Table

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
COLUMNS = (
    Column(name="id", type="string"),
    Column(name="n", type="bigint"),
    Column(name="region", type="string"),
    Column(name="ts", type="timestamp"),
)
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("region", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
LINES = 25_000
WRONG = 24_001


class IngestProject:
    """A project, its one region, and an operator in front of it."""

    def __init__(self, root: Path) -> None:
        self.root, self.lake = root, root / "lake"
        self.armed = root / "armed"
        self.armed.mkdir()
        self.env = {
            **os.environ,
            "CONSOLE_HOME": str(root / "home"),
            "XDG_RUNTIME_DIR": str(root),
            "CONSOLE_CRASH_DIR": str(self.armed),
        }
        columns = "{id: string, n: bigint, region: string, ts: timestamp}"
        for name, text in {
            "regions/eu.yaml": f"warehouse: {self.lake}\n",
            "plans/web/pipeline.yaml": "name: web\n",
            "plans/web/tables/landing.yaml": f"kind: landing\nmanaged: true\npartition_by: [region]\ncolumns: {columns}\n",
        }.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        self.table = str(self.lake / "landing")
        write_deltalake(self.table, pa.Table.from_pylist([], SCHEMA), partition_by=["region"])
        table = Table(name="landing", kind="landing", columns=COLUMNS, managed=True, partition_by=("region",))
        state = TableState(
            table=table,
            version=Version(content="landing", path="landing", columns=COLUMNS),
            read="SELECT * FROM stored",
            rows="",
            values={},
        )
        releases = Releases(self.lake, "web")
        releases.propose(
            Release(id="r1", pipeline="web", digest="d", tables=(state,), feeds=()), "web-1", "ada", "laptop"
        )
        releases.swap("", "r1", "ada", "laptop")

    def console(self, *words: str, given: bytes | None = None) -> tuple[int, str]:
        """(exit code, what was said on either stream)"""
        done = subprocess.run(
            [str(BIN / "console"), *words, "--project", str(self.root), "--region", "eu"],
            input=given, capture_output=True, env=self.env, timeout=120, check=False,
        )  # fmt: skip
        return done.returncode, (done.stdout + done.stderr).decode()

    def ingest(self, lines: list[str], *words: str, name: str = "events.ndjson") -> tuple[int, str]:
        (self.root / name).write_text("".join(line + "\n" for line in lines))
        return self.console("ingest", str(self.root / name), *words)

    def ids(self) -> list[str]:
        return sorted(DeltaTable(self.table).to_pyarrow_table(columns=["id"]).column("id").to_pylist())

    def version(self) -> int:
        return int(DeltaTable(self.table).version())


@pytest.fixture
def project(tmp_path: Path) -> Iterator[IngestProject]:
    project = IngestProject(tmp_path)
    yield project
    project.console("follow", "--stop")


def events(count: int, start: int = 0) -> list[str]:
    return [
        json.dumps({"id": f"{n:06}", "n": n, "region": "de", "ts": "2026-11-22T10:00:00Z"}) for n in range(start, count)
    ]


def ids(count: int) -> list[str]:
    return [f"{n:06}" for n in range(count)]


def test_a_wrong_line_far_down_is_named_as_the_file_has_it_nothing_is_written_and_the_corrected_file_lands_once(
    project: IngestProject,
) -> None:
    lines = events(LINES)
    spoilt = [*lines[: WRONG - 1], json.dumps({"id": "x", "n": "three"}), *lines[WRONG:]]
    code, output = project.ingest(spoilt)
    assert (code, f"line {WRONG}: n: 'three' is not a valid int64" in output, "nothing was written" in output) == (
        65,
        True,
        True,
    ), output
    assert project.ids() == []
    code, output = project.ingest(lines)
    assert (code, output) == (0, f"landing: {LINES:,} rows added\n")
    assert project.ids() == ids(LINES)
    for again in (project.ingest(lines), project.ingest(lines, name="another.ndjson")):
        assert again == (0, f"landing: already there, nothing added ({LINES:,} lines)\n")
    piped = project.console(
        "ingest", "-", given="".join(line + "\n" for line in [*lines, *events(LINES + 5, LINES)]).encode()
    )
    assert piped == (0, f"landing: 5 rows added, after {LINES:,} rows that had landed\n")
    assert project.ids() == ids(LINES + 5)


@pytest.mark.parametrize(
    "point", ["before-commit-landing", pytest.param("after-commit-landing", marks=pytest.mark.soak)]
)
def test_killed_in_the_middle_it_says_what_landed_goes_on_after_it_and_refuses_another_file(
    project: IngestProject, point: str
) -> None:
    lines = events(LINES)
    assert project.ingest(lines[:2])[0] == 0  # an agent runs
    (project.armed / point).touch()
    code, output = project.ingest(lines)
    assert code == 5
    landed = len(project.ids())
    assert landed in (2, *range(3, LINES))
    match = re.search(r"lines 1–([\d,]+) \(([\d,]+) rows\) have landed as load events.ndjson", output)
    assert match, output
    sure = int(match[1].replace(",", ""))
    assert (sure, sure <= landed) == (int(match[2].replace(",", "")), True)

    changed = [lines[0], json.dumps({"id": "other", "n": 1, "region": "de"}), *lines[2:]]
    code, output = project.ingest(changed)
    assert (code, "line 2 differs from what load events.ndjson has landed" in output) == (65, True), output
    assert len(project.ids()) == landed
    assert project.ingest(lines)[0] == 0
    assert project.ids() == ids(LINES)
    assert project.ingest(changed[:3], "--load", "corrected") == (0, "landing: 3 rows added\n")
    assert Counter(project.ids()) == Counter([*ids(LINES), "000000", "000002", "other"])


def test_each_commit_notes_load_lines_and_their_hash(project: IngestProject) -> None:
    assert project.ingest(["", *events(3)])[0] == 0
    assert project.ingest(["", *events(3), "", *events(5, 3)])[0] == 0
    notes = [commit.note for commit in log.commits(project.table, 1, project.version())]
    assert [(note["load"], note["lines"], note["rows"], note["rows_in"]) for note in notes] == [
        ("events.ndjson", [2, 4], 3, 3),
        ("events.ndjson", [6, 7], 5, 2),
    ]
    assert len({note["hash"] for note in notes}) == 2


def test_what_delta_would_change_is_refused_by_its_line(project: IngestProject) -> None:
    for event, says in (
        ({"region": ""}, "line 3: region: '' cannot be stored in a partition column"),
        ({"region": "__HIVE_DEFAULT_PARTITION__"}, "line 3: region: '__HIVE_DEFAULT_PARTITION__' cannot be stored"),
        (
            {"ts": "2026-11-22T10:00:00.1234567Z"},
            "line 3: ts: '2026-11-22T10:00:00.1234567Z' is finer than a microsecond",
        ),
    ):
        code, output = project.ingest([*events(1), "", json.dumps({"id": "x", **event}), *events(2, 1)])
        assert (code, says in output, project.ids()) == (65, True, []), output


def test_batches_of_a_console_that_knew_no_loads_count_as_landed(project: IngestProject) -> None:
    """They are named by the hash of the whole file and a number; cut as today."""
    import hashlib

    from console.agent.feeds.follower import FeedFollower
    from console.agent.ingest.landing import LandingWriter
    from console.agent.pipeline import PipelineController
    from console.agent.settings import Settings
    from console.agent.spark_session import SparkHandle
    from console.runner.ingest.events import examine

    lines = events(LINES)
    (project.root / "events.ndjson").write_text("".join(line + "\n" for line in lines))
    with open(project.root / "events.ndjson", "rb") as source:
        pieces = list(examine(source, "events.ndjson").chunks(gap_bytes=0))
        batch = hashlib.sha256((project.root / "events.ndjson").read_bytes()).hexdigest()
    spark = SparkHandle(Settings(region="eu"), -1)
    older = LandingWriter(
        PipelineController(project.lake, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings(region="eu"))
    )
    older.append("landing", f"{batch}/1", pieces[0].events)
    assert project.ingest(lines)[0] == 0
    assert project.ids() == ids(LINES)
    assert project.ingest(lines)[1].startswith("landing: already there")
