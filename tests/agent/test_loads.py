"""Files into a landing table, each line once, whoever sends, dies, edits and tries again. No Java.

The clients are console's own over the agent's own landing writer; `sent.py`, which knows nothing of either, computes what
the table must hold. `LOADS=500 SEED=7000` draws others, `python -m tests.drawn clients` for an hour; a failure names its seed.
"""

import asyncio
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from console.agent.feeds.follower import FeedFollower
from console.agent.ingest import loads
from console.agent.ingest.landing import LandingWriter
from console.agent.pipeline import PipelineController
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.errors import Conflict, ConsoleError, DataError, Unreachable
from console.model import codec
from console.model.live import Release, TableState, Version
from console.model.load import EventRun, LoadState
from console.model.schema import Column, Table
from console.runner.ingest import events as cutting
from console.runner.ingest.upload import FileUpload, UploadResult
from tests.agent.sent import File, Ledger

pytestmark = pytest.mark.slow

COLUMNS = (Column(name="id", type="string"), Column(name="n", type="bigint"))
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])
FIRST = int(os.environ.get("SEED", "0"))
# in every run, the seeds by which the planted bugs are found; `tests.drawn` draws all others
SEEDS = range(FIRST, FIRST + int(os.environ["LOADS"])) if "LOADS" in os.environ else (0,)


class Died(Exception):
    """The client's process is gone."""


class Region:
    """A landing table and its writer, which may be restarted at any request."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.table = str(place / "landing")
        write_deltalake(self.table, pa.Table.from_pylist([], SCHEMA))
        columns = Table(name="landing", kind="landing", columns=COLUMNS, managed=True)
        state = TableState(
            table=columns,
            version=Version(content="landing", path="landing", columns=COLUMNS),
            read="SELECT * FROM stored",
            rows="",
            values={},
        )
        self.restart()
        self.controller.releases.propose(
            Release(id="r1", pipeline="web", digest="d", tables=(state,), feeds=()), "web-1", "ada", "laptop"
        )
        self.controller.releases.swap("", "r1", "ada", "laptop")

    def restart(self) -> None:
        loads.forget()
        spark = SparkHandle(Settings(region="eu"), -1)
        self.controller = PipelineController(
            self.place, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings(region="eu")
        )
        self.writer = LandingWriter(self.controller)

    def clean(self) -> None:
        """What the log's retention does: a checkpoint, and nothing before it."""
        DeltaTable(self.table).create_checkpoint()
        latest = DeltaTable(self.table).version()
        for version in range(latest):
            (Path(self.table) / "_delta_log" / f"{version:020}.json").unlink(missing_ok=True)

    def widen(self) -> None:
        count = len(DeltaTable(self.table).schema().fields)
        DeltaTable(self.table).alter.add_columns([Field(f"more{count}", PrimitiveType("string"))])

    def lines(self) -> list[str]:
        """The table's rows as the lines they were."""
        rows = DeltaTable(self.table).to_pyarrow_table(columns=["id", "n"]).to_pylist()
        return [json.dumps(row) for row in rows]


class Link:
    """A client's way to the region: requests wait for their turn, are lost, or lose their answer.

    lost  how likely, by request
    """

    def __init__(self, region: Region, random: Random, lost: float = 0.0) -> None:
        self.region, self.random, self.lost = region, random, lost

    async def ingest(
        self, pipeline: str, table: str, batch: str, lines: Sequence[str], run: EventRun | None = None, shape: str = ""
    ) -> dict[str, Any]:
        on_progress = codec.decode(EventRun, json.loads(codec.dumps(run)))
        return await self._asked(lambda: self.region.writer.append(table, batch, list(lines), on_progress, shape))

    async def check(
        self, pipeline: str, table: str, lines: Sequence[str], at: Sequence[tuple[int, int]], shape: str = ""
    ) -> str:
        return str((await self._asked(lambda: self.region.writer.check(table, lines, at, shape)))["schema"])

    async def landed(self, pipeline: str, table: str, load: str, first: str, **more: Any) -> LoadState:
        state = await self._asked(lambda: self.region.writer.load_state(table, load, first, **more))
        return codec.decode(LoadState, json.loads(codec.dumps(state)))

    async def marks(self, pipeline: str, table: str, load: str, rows: int) -> bytes:
        import base64

        return base64.b64decode((await self._asked(lambda: self.region.writer.marks(table, load, rows)))["marks"])

    async def _asked(self, ask: Any) -> Any:
        for _ in range(self.random.randint(0, 3)):
            await asyncio.sleep(0)
        if self.random.random() < self.lost:
            raise self.random.choice((Unreachable("the connection broke"), Died()))
        answer = ask()
        if self.random.random() < self.lost:
            raise self.random.choice((Unreachable("the connection broke before the answer"), Died()))
        return answer


def sending(
    region: Region, file: File, random: Random, *, load: str = "", name: str = "", lost: float = 0.0
) -> FileUpload:
    looked = cutting.examine(io.BytesIO(file.data()), file.name)
    known = load or name or f"stdin-{looked.first.hex()[:12]}"
    link: Any = Link(region, random, lost)
    return FileUpload(link, "web", "landing", looked, load=known, named=bool(load), on_progress=lambda _: None)


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "CHUNK_LINES", 3)


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_line_lands_once_whoever_sends_dies_edits_and_tries_again(tmp_path: Path, seed: int) -> None:
    random = Random(f"loads {seed}")
    region, ledger = Region(tmp_path), Ledger(random)
    versions: dict[str, list[File]] = {}
    for step in range(30):
        story = random.choice([f"s{len(versions)}", *versions, *versions])
        file_versions = versions.setdefault(story, [])
        file = ledger.edited(file_versions[-1], story) if file_versions and random.random() < 0.7 else None
        file = file or (file_versions[-1] if file_versions else ledger.file(story, 14))
        file_versions.append(file)
        named = {each for each in versions if ledger.begun(each, [])}
        match random.choice(("alone", "alone", "alone", "hurt", "hurt", "crowd", "named", "spoilt", "maintenance")):
            case "hurt" if story not in named:
                await outcome(sending(region, file, random, name=file.name, lost=0.15))
            case "crowd" if story not in named:
                others = [other[-1] for each, other in versions.items() if each not in named]
                file_versions.insert(-1, ledger.edited(file, story))  # two versions of it at once
                crowd = [file, file_versions[-2], file, *random.sample(others, min(2, len(others)))]
                await asyncio.gather(
                    *(outcome(sending(region, each, random, name=each.name, lost=0.03)) for each in crowd)
                )
            case "named":
                load = f"load {step:02}"
                while not isinstance(await outcome(sending(region, file, random, load=load, lost=0.1)), UploadResult):
                    pass
                ledger.named[load] = file.events
            case "spoilt":
                await spoilt(region, ledger, story, versions, random)
            case "maintenance":
                random.choice((region.restart, region.clean, region.widen))()
            case _:
                await alone(region, ledger, story, versions, random)
        landed = ledger.landed(story, region.lines(), file_versions)
        if landed and random.random() < 0.5:
            file_versions.append(_as_landed(landed, file))  # its owner gives in
    for story in versions:
        await alone(region, ledger, story, versions, random)


async def test_one_file_sent_under_several_names_at_once_lands_once(tmp_path: Path) -> None:
    region, random = Region(tmp_path), Random("names")
    ledger = Ledger(random)
    for number in range(12):
        file = ledger.file(f"s{number}", 14)
        clients = [sending(region, file, random, name=name) for name in (file.name, f"copy of {file.name}", "")]
        came = await asyncio.gather(*(outcome(client) for client in clients))
        assert all(isinstance(end, UploadResult) for end in came), came
        assert sum(end.rows for end in came if isinstance(end, UploadResult)) == len(file.events)
        assert ledger.landed(f"s{number}", region.lines(), [file]) == file.events
        ledger.named[file.name] = file.events
        region.restart()


@pytest.mark.parametrize(
    ("change", "landed"),
    [
        pytest.param(lambda data: b"", 3, id="cut off"),
        pytest.param(lambda data: b"\xff" * len(data), 3, id="overwritten"),
        pytest.param(lambda data: data.replace(b"-7", b"-x"), 6, id="edited"),
    ],
)
async def test_a_file_that_changes_while_it_is_sent_is_reported_with_what_landed_of_it(
    tmp_path: Path, change: Any, landed: int
) -> None:
    region, random = Region(tmp_path), Random("changed")
    data = b"".join(json.dumps({"id": f"e-{n}", "n": n}).encode() + b"\n" for n in range(1, 8))
    source = io.BytesIO(data)

    def changed(_: int) -> None:
        at = source.tell()
        source.seek(0)
        source.truncate()
        source.write(change(data))
        source.seek(at)

    link: Any = Link(region, random)
    file = cutting.examine(source, "f")
    came = await outcome(FileUpload(link, "web", "landing", file, load="f", named=False, on_progress=changed))
    assert isinstance(came, Conflict), came
    assert came.code == "E_FILE_CHANGED"
    assert f"{landed} rows" in str(came)
    assert len(region.lines()) == landed


def _as_landed(landed: list[str], file: File) -> File:
    """The file with what landed put back, and the rest of it as it is."""
    return File(file.name, [*landed, *(event for event in file.events if event not in landed)])


async def alone(region: Region, ledger: Ledger, story: str, versions: dict[str, list[File]], random: Random) -> None:
    """One client that nobody disturbs ends as the ledger says, to the line."""
    file = versions[story][-1]
    before = region.lines()
    landed = ledger.landed(story, before, versions[story])
    expected = ledger.expect(ledger.begun(story, landed), file)
    piped = landed[:1] == file.events[:1] and random.random() < 0.3  # through stdin, known by its first line alone
    came = await outcome(sending(region, file, random, name="" if piped else file.name))
    added = len(region.lines()) - len(before)
    if not expected.refused_at:
        assert isinstance(came, UploadResult), came
        assert (came.rows, came.before, added) == (expected.added, expected.before, expected.added)
        if expected.load:
            ledger.named[expected.load] = file.events
        else:
            assert ledger.landed(story, region.lines(), versions[story]) == file.events
        return
    assert added == 0
    if isinstance(came, UploadResult):
        assert (expected.cut_short, came.rows) == (True, 0)
        return
    assert isinstance(came, DataError), came
    assert came.code == "E_LOAD_DIFFERS"
    assert piped or names_line(str(came), expected.refused_at), f"{came}, not line {expected.refused_at}"


async def spoilt(region: Region, ledger: Ledger, story: str, versions: dict[str, list[File]], random: Random) -> None:
    """With one wrong value beyond what has landed nothing is written, and its line is named."""
    good, before = versions[story][-1], region.lines()
    expected = ledger.expect(ledger.begun(story, ledger.landed(story, before, versions[story])), good)
    least = max(1, expected.before)
    if expected.refused_at or len(good.events) <= least:
        return
    at = good.line_of(random.randrange(least, len(good.events)))
    lines = [*good.lines[: at - 1], '{"id": "x", "n": "three"}', *good.lines[at:]]
    came = await outcome(sending(region, File(good.name, lines), random, name=good.name))
    assert isinstance(came, DataError)
    assert f"line {at}: n: 'three' is not a valid int64" in str(came)
    assert region.lines() == before


def names_line(text: str, line: int) -> bool:
    """Whether a refusal names this line, or a range around it where the log no longer tells."""
    words = text.replace("–", " ").replace(",", "").split()
    if "lines" in words and "one of the lines" in text:
        at = words.index("lines")
        return int(words[at + 1]) <= line <= int(words[at + 2])
    return int(words[words.index("line") + 1]) == line


async def outcome(client: FileUpload) -> UploadResult | Exception:
    """How a client ends, whatever that is."""
    try:
        return await client.run()
    except (ConsoleError, Died) as error:
        return error
