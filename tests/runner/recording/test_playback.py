"""A played-back recording shows the live views of that time, by whichever way the time is reached."""

import asyncio
import itertools
import json
import random
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from console.drivers.fake import Scenario
from console.errors import Conflict, ConsoleError, DataError, NewerFormat, UsageError
from console.model.event import Accepted, Lagging, Logged, Paused, Recorded, StepDone
from console.model.measured import FeedSample
from console.model.region import Spark, Ssh
from console.model.status import replay
from console.runner.recording.entry import Entry
from console.runner.recording.player import SPEEDS, Playback
from console.runner.recording.reader import RecordingReader, open_recording
from console.runner.recording.writer import RecordingWriter
from console.runner.view import RegionView
from console.runner.view_events import with_history
from console.runner.watch import RegionBoard
from console.text import hide
from tests.runner.worlds import World, at_event, fake, region, until

BEGAN = 1_790_000_000.0
Seen = list[tuple[float, Mapping[str, RegionView]]]


def stepping() -> Callable[[], float]:
    """A clock that steps a tenth of a second at each look."""
    ticks = itertools.count()
    return lambda: BEGAN + next(ticks) / 10


class Watched(RecordingWriter):
    """Keeps beside each line what the live views were after it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, clock=stepping())
        self.seen: Seen = []
        self._views: dict[str, RegionView] = {}

    def __call__(self, before: RegionView, after: RegionView, recorded: Recorded | None) -> None:
        super().__call__(before, after, recorded)
        self._views = self._views | {after.region.name: after}
        self.seen.append((self._latest, self._views))


async def rolled_out(folder: Path) -> tuple[Path, Seen]:
    """Two regions roll out while an agent is killed and a link is lost; one is promoted and taken back."""
    us, eu = fake("us", canary=True), fake("eu", Scenario(failures={"validate": 1}), wave=2)
    us.samples = [FeedSample(at=BEGAN + at, feed="", rows=9.0, lag=1.0, behind=3) for at in range(-50, 0, 10)]
    at_event(us, 6, lambda: us.drop_link(after=1))
    fleet = World(folder, us, eu).console(remember=True)
    recorder = Watched(folder / "one.jsonl")
    fleet.record(recorder)
    await fleet.refresh()
    await fleet.start("us")
    await until(lambda: not us.reachable)
    us.heal()
    await until(lambda: fleet.views["us"].status.state == "awaiting-confirmation")
    await us.kill_agent()
    await fleet.promote("us")
    await fleet.start("eu")
    await until(lambda: fleet.views["eu"].status.held == "failed")
    await fleet.control("eu", "retry")
    await until(lambda: fleet.views["eu"].status.state == "awaiting-confirmation")
    await fleet.rollback("us")
    await fleet.refresh()
    await fleet.close()
    return recorder.path, recorder.seen


def spaced(path: Path, seconds: float = 60.0) -> Path:
    """The same recording with so much time between two entries."""
    lines = [json.loads(line) for line in lines_of(path)]
    for number, line in enumerate(lines[1:]):
        line["at"] = BEGAN + seconds * number
    path.write_text("".join(json.dumps({**line}, separators=(",", ":")) + "\n" for line in lines))
    return path


def paused(path: Path, at: float | None = None) -> Playback:
    player = Playback(open_recording(path), "console playback one.jsonl", at=at)
    player.toggle()
    return player


async def views_at(player: Playback, at: float) -> Mapping[str, RegionView]:
    await player.seek(at)
    return dict(player.views)


@pytest.mark.slow
async def test_playback_shows_at_each_moment_what_the_live_views_showed(folder: Path) -> None:
    path, seen = await rolled_out(folder)
    states = {view.status.shown for _, views in seen for view in views.values()}
    assert states >= {"awaiting-confirmation", "failed", "rolled-back"}, "the rollout of both regions was not seen"
    player = paused(path)
    for at, views in seen:
        shown = await views_at(player, at)
        for name, view in views.items():
            assert shown[name] == view, (at, name)
    await player.close()


@pytest.mark.slow
async def test_going_back_and_forth_shows_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.runner.recording.player.FEWEST", 7)
    path, seen = await rolled_out(folder)
    player, draw = paused(path), random.Random(7)
    for at, views in draw.choices(seen, k=150):
        shown = await views_at(player, at)
        assert all(shown[name] == view for name, view in views.items()), at
    await player.close()


@pytest.mark.slow
async def test_time_passes_at_the_chosen_speed_and_stands_still_in_a_pause(folder: Path) -> None:
    path, _ = await rolled_out(folder)
    seconds = [100.0]
    player = Playback(open_recording(spaced(path)), "console playback one.jsonl", clock=lambda: seconds[0], speed=2.0)
    begins, ends = player.position.begins, player.position.ends
    assert player.now() == begins
    seconds[0] += 2.0
    assert player.now() == begins + 4.0
    player.faster(1)
    assert player.position.speed == 5.0
    seconds[0] += 0.1
    assert player.now() == pytest.approx(begins + 4.5)
    player.toggle()
    seconds[0] += 60
    assert player.now() == pytest.approx(begins + 4.5)
    assert not player.position.playing
    player.toggle()
    for _ in SPEEDS:
        player.faster(1)
    assert player.position.speed == SPEEDS[-1]
    seconds[0] += 3600
    assert (player.now(), player.position.playing) == (ends, False)
    player.toggle()  # from the beginning
    assert (player.now(), player.position.playing) == (begins, True)
    await player.close()


@pytest.mark.slow
async def test_changes_arrive_while_it_plays(folder: Path) -> None:
    path, seen = await rolled_out(folder)
    player = Playback(open_recording(path), "console playback one.jsonl", speed=1000.0)
    changes = player.changes()
    async with asyncio.timeout(60):
        while player.views["eu"].status.state != "awaiting-confirmation":
            await anext(changes)
    assert player.views["eu"] == seen[-1][1]["eu"]
    await player.close()


@pytest.mark.slow
async def test_each_decision_can_be_gone_to_and_is_announced(folder: Path) -> None:
    path, _ = await rolled_out(folder)
    player = paused(path)
    lines = []
    await player.seek(player.position.begins)
    while what := player.position.next_what:
        lines.append(what)
        assert await player.seek_decision(1)
    assert not await player.seek_decision(1)
    text = "\n".join(lines)  # whether as an event or as a state that was adopted whole depends on what came first
    for line in (
        r"us: r2 ",
        r"us: .*awaiting-confirmation",
        r"us: r2 (is )?live",
        r"eu: .*failed",
        r"us: .*(is live again|rolled-back)",
    ):
        assert re.search(line, text), (line, lines)
    backwards = 0
    while await player.seek_decision(-1):
        backwards += 1
    assert backwards >= len(lines) - 2  # some share a time
    await player.close()


@pytest.mark.slow
async def test_nothing_of_a_recording_can_be_acted_on(folder: Path) -> None:
    path, _ = await rolled_out(folder)
    player = paused(path)
    acts = (
        player.refresh(), player.witness("eu"), player.run(), player.start("eu"), player.control("eu", "pause"),
        player.promote("eu"), player.rollback("eu"), player.cleanup("eu"), player.query("eu", "SELECT 1", (), {}, 1),
        player.trigger("eu", "copy", "c"),
    )  # fmt: skip
    for act in acts:
        with pytest.raises(Conflict, match="a recording is played"):
            await act
    await player.close()


@pytest.mark.slow
async def test_all_stored_events_of_a_rollout_are_found_again(folder: Path) -> None:
    path, seen = await rolled_out(folder)
    player = paused(path, seen[-1][0])
    await player.seek(seen[-1][0])
    view = seen[-1][1]["eu"]
    events = await player.recorded("eu")
    assert events == tuple(recorded for recorded in view.events if recorded.rollout == view.status.rollout)
    assert events[0].seq == 1
    await player.close()


# -- files that are not as we wrote them


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.slow
async def test_a_recording_whose_console_was_killed_plays_to_its_last_whole_line(folder: Path) -> None:
    path, _ = await rolled_out(folder)
    lines = lines_of(path)
    assert json.loads(lines[-1]).keys() == {"at", "ended"}
    assert read(path)[0].cut == ""
    for end, why in ((b"", "did not close it"), (lines[-2][:20], f"line {len(lines) - 1} is cut short")):
        path.write_bytes(b"".join(lines[:-2]) + end)
        player = paused(path)
        assert len(read(path)[1]) == len(lines) - 3
        await player.seek(player.position.ends)
        assert f"it ends here: {'the console that wrote it ' if not end else ''}{why}" in player.position.missing
        await player.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (b"\xff\xfe\n", "not JSON"),
        (b'{"region":"us"}\n', "None is not a time"),
        (b'{"at":1e400,"region":"us"}\n', "inf is not a time"),
        (b'{"at":5,"region":"us"}\n', "its time is before that of the line above"),
        (b'{"at":99999999999999,"region":"us"}\n', "between 1970 and 9999"),
        (b"[]\n", "not an entry"),
        (b"{}{}\n", "not JSON"),
    ],
)
async def test_a_damaged_line_is_named_when_the_file_is_opened(folder: Path, spoilt: bytes, why: str) -> None:
    path, _ = await rolled_out(folder)
    lines = lines_of(path)
    path.write_bytes(b"".join([*lines[:9], spoilt, *lines[9:]]))
    with pytest.raises(DataError, match=why) as raised:
        open_recording(path)
    assert str(raised.value).startswith(f"{path}:10: ")
    assert f"head -n 9 {path}" in raised.value.hint
    assert raised.value.code == "E_RECORDING"


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoilt",
    [
        {"region": "mars", "view": {}},
        {"region": "us", "view": {"link": "gone"}},
        {"region": "us", "view": {"status": {"seq": "x"}}},
        {"region": "us", "view": {"heard": 10**15}},
        {
            "region": "us",
            "event": {"rollout": "web-1", "seq": 1, "at": 1e300, "event": {"type": "StepDone", "step": ""}},
        },
        {"region": "us", "samples": [{"at": 1e300, "feed": "", "rows": 1.0, "lag": 1.0, "behind": 1}]},
    ],
)
async def test_what_cannot_be_read_ends_the_playback_before_it_and_is_reported(folder: Path, spoilt: object) -> None:
    path, seen = await rolled_out(folder)
    lines = lines_of(path)
    at = json.loads(lines[20])["at"]
    path.write_bytes(
        b"".join([*lines[:20], json.dumps({"at": at, **spoilt}, separators=(",", ":")).encode() + b"\n", *lines[20:]])
    )
    player = paused(path)
    await player.seek(player.position.ends)
    position = player.position
    assert f"it ends here: {path}:21: " in position.missing
    assert position.at == position.ends < at
    shown = [views for when, views in seen if when <= position.ends][-1]
    assert all(player.views[name] == view for name, view in shown.items())
    await player.close()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "not JSON"),
        (b"hello\n", "not JSON"),
        (b"[]\n", "this is not a recording of console"),
        (b'{"format":"console recording","format_version":1}\n', "is missing"),
        (b"\x00" * 99, "not JSON"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: bytes, why: str) -> None:
    (tmp_path / "x").write_bytes(text)
    with pytest.raises(DataError, match=why):
        open_recording(tmp_path / "x")
    with pytest.raises(DataError, match="No such file"):
        open_recording(tmp_path / "nothing")
    with pytest.raises(DataError, match="directory"):
        open_recording(tmp_path)


@pytest.mark.slow
async def test_unknown_keys_are_passed_over_and_a_newer_format_is_refused(folder: Path) -> None:
    path, seen = await rolled_out(folder)
    lines = [json.loads(line) for line in lines_of(path)]
    later = [{**line, "weather": "fog"} for line in lines]
    later.insert(9, {"at": later[8]["at"], "region": "us", "mood": {"type": "Fine"}})
    newer = {"type": "Recorded", "rollout": "web-2", "seq": 0, "at": BEGAN, "event": {"type": "Hum", "pitch": 440}}
    later.insert(9, {"at": later[8]["at"], "region": "us", "event": newer})
    path.write_text("".join(json.dumps(line) + "\n" for line in later))
    player = paused(path)
    shown = await views_at(player, seen[-1][0])
    assert all(shown[name] == view for name, view in seen[-1][1].items())
    await player.close()
    path.write_text(json.dumps({**lines[0], "format_version": 2, "tool": "console 9\x1b[2J"}) + "\n")
    with pytest.raises(NewerFormat, match="format 2, written by 'console 9") as raised:
        open_recording(path)
    assert "\x1b" not in str(raised.value)


# -- writing


def a_board(**more: object) -> RegionBoard:
    return RegionBoard("web", [replace(region("eu"), **more)])


def record(board: RegionBoard, writer: RecordingWriter) -> None:
    writer.open(board.pipeline, [view.region for view in board.views.values()])
    board.observe(writer)


def logged(text: str) -> Recorded:
    return Recorded("web-1", 0, BEGAN, Logged(text))


def read(path: Path) -> tuple[RecordingReader, list[Entry]]:
    """A recording, closed, and its entries."""
    with closing(open_recording(path)) as reader:
        return reader, [reader.entry(number) for number in range(len(reader))]


def test_what_is_hidden_on_screens_is_hidden_in_the_file(tmp_path: Path) -> None:
    conf = (("spark.hadoop.fs.s3a.secret.key", "hunter2hunter2"),)
    hide(conf)
    board = a_board(spark=Spark(conf=conf), transport=Ssh(host="10.1.2.3", key="/home/ada/.ssh/id"))
    record(board, RecordingWriter(tmp_path / "r"))
    board.happened("eu", logged("GET https://ada:pass@host/x?sig=abcdef12345"))
    board.set("eu", note="hunter2hunter2", link_why="password=verysecret")
    board.close()
    text = (tmp_path / "r").read_text()
    for secret in ("hunter2hunter2", "pass@", "abcdef12345", "verysecret", "10.1.2.3", "id_rsa", "/home/ada"):
        assert secret not in text, secret
    assert (tmp_path / "r").stat().st_mode & 0o777 == 0o600
    assert len(read(tmp_path / "r")[1]) == 3


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("precious")
    with pytest.raises(UsageError, match="is there already"):
        record(a_board(), RecordingWriter(tmp_path / "r"))
    with pytest.raises(UsageError, match="No such file"):
        record(a_board(), RecordingWriter(tmp_path / "no" / "r"))
    assert (tmp_path / "r").read_text() == "precious"


def test_a_full_disk_ends_the_recording_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board, recorder = a_board(), RecordingWriter(tmp_path / "r")
    record(board, recorder)

    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    board.happened("eu", logged("one"))
    with monkeypatch.context() as patched:
        patched.setattr("console.runner.recording.writer.os.write", full)
        board.happened("eu", logged("two"))
    board.happened("eu", logged("three"))
    board.close()
    assert isinstance(recorder.error, ConsoleError)
    assert "recording ended: No space left on device" in str(recorder.error)
    reader, entries = read(tmp_path / "r")
    assert (len(entries), reader.cut) == (1, "the console that wrote it did not close it")
    assert len(board["eu"].status.log) == 3


def test_an_event_that_arrives_after_the_state_that_holds_it_is_listed_once(tmp_path: Path) -> None:
    """A state may be adopted between an event's arrival and its turn; the region's memory may list it meanwhile, too."""
    accepted = Accepted(release="r1", was="", plan="p", by="ana", host="ops1", steps=())
    done = Recorded("web-1", 3, BEGAN + 3, StepDone("create/requests"))
    past = (Recorded("web-1", 1, BEGAN + 1, accepted), Recorded("web-1", 2, BEGAN + 2, Paused("ana")))
    board = a_board()
    record(board, RecordingWriter(tmp_path / "r"))
    board.set("eu", status=replay((*past, done)))
    board.happened("eu", past[1])
    board.put(with_history(board["eu"], (*past, done)))
    board.happened("eu", past[0])
    board.close()
    assert board["eu"].events == (*past, done)
    assert [entry.decision for entry in read(tmp_path / "r")[1]] == [True, False, False, False]


def test_a_clock_that_goes_back_does_not_spoil_the_recording(tmp_path: Path) -> None:
    times = iter((BEGAN, BEGAN, BEGAN + 5, BEGAN - 100, BEGAN + 6, BEGAN + 7))
    board = a_board()
    record(board, RecordingWriter(tmp_path / "r", clock=lambda: next(times)))
    for text in ("one", "two", "three"):
        board.happened("eu", logged(text))
    board.close()
    assert list(read(tmp_path / "r")[0].times) == [BEGAN + at for at in (5, 5, 6, 7)]


@pytest.mark.slow
def test_a_day_of_lag_at_rest_is_of_a_size_that_the_page_tells(tmp_path: Path) -> None:
    """An agent at rest tells its lag once a second, and samples of the pipeline and of two feeds every ten."""
    board = a_board()
    ticks = itertools.count()
    record(board, RecordingWriter(tmp_path / "r", clock=lambda: BEGAN + next(ticks)))
    for second in range(600):
        at = BEGAN + second
        samples = tuple(
            FeedSample(at=at, feed=feed, rows=201.5, lag=1.25, behind=61) for feed in ("", "parse", "hourly")
        )
        lag = Lagging(commits=1, rows=second, seconds=1.25, samples=samples if second % 10 == 0 else ())
        board.happened("eu", Recorded("web-1", 0, at, lag))
    board.close()
    a_day = (tmp_path / "r").stat().st_size * 144
    assert 10e6 < a_day < 30e6, a_day
