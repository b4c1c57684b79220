"""The ring of samples: bounded, whole after a death at any byte, a full disk, a clock that is set; drawn page by page."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from console.agent.store import samples
from console.agent.store.samples import PAGE_SAMPLES, RECORD_BYTES, SampleRing
from console.model import codec
from console.model.measured import FeedSample, SamplePage

pytestmark = pytest.mark.slow

FRAME = 1 << 20


def sample(at: float, feed: str = "", **figures: float) -> FeedSample:
    known = {"rows": 12.5, "lag": 0.9, "backfill": 0.0, **figures}
    return FeedSample(at=at, feed=feed, behind=int(at) % 7, **known)


def filled(place: Path, count: int, capacity: int = 16) -> SampleRing:
    ring = SampleRing(place, capacity)
    for at in range(count):
        ring.append("web", [sample(float(at))])
    return ring


def times(page: SamplePage) -> list[float]:
    return [item.at for item in page.samples]


def test_what_is_appended_is_read_by_this_agent_the_next_and_anybody_without_one(tmp_path: Path) -> None:
    ring = SampleRing(tmp_path)
    ring.append("web", [sample(10.0), sample(10.0, "parse", lag=3.25)])
    ring.append("other", [sample(10.0)])
    for reader in (ring, SampleRing(tmp_path)):
        assert reader.page("web", 0.0).samples == (sample(10.0), sample(10.0, "parse", lag=3.25))
        assert reader.page("web", 0.0, "").samples == (sample(10.0),)
        assert reader.page("web", 0.0, "parse").samples == (sample(10.0, "parse", lag=3.25),)
        assert reader.page("web", 10.5).samples == ()
        assert reader.last_at == 10.0
    assert ring.path.stat().st_mode & 0o777 == 0o600
    assert SampleRing(tmp_path / "nowhere").page("web", 0.0) == SamplePage(samples=())


@pytest.mark.parametrize("count", [1, 15, 16, 17, 50])
def test_the_file_is_bounded_and_holds_the_newest(count: int, tmp_path: Path) -> None:
    ring = filled(tmp_path, count)
    expected = [float(at) for at in range(max(0, count - 16), count)]
    assert times(ring.page("web", 0.0)) == times(SampleRing(tmp_path, 16).page("web", 0.0)) == expected
    assert ring.path.stat().st_size <= 17 * RECORD_BYTES


def test_several_at_once_go_around_the_end(tmp_path: Path) -> None:
    ring = filled(tmp_path, 14)
    ring.append("web", [sample(14.0 + at) for at in range(5)])
    assert times(SampleRing(tmp_path, 16).page("web", 0.0)) == [float(at) for at in range(3, 19)]


@pytest.mark.parametrize("whole", [False, True])
def test_a_death_at_any_byte_of_a_write_loses_that_record_alone(whole: bool, tmp_path: Path) -> None:
    """whole: the ring has gone around, so that the torn record stands over an old one."""
    count = 37 if whole else 9
    ring = filled(tmp_path, count)
    before, slot = ring.path.read_bytes(), 1 + count % 16
    ring.append("web", [sample(float(count))])
    after = ring.path.read_bytes()[slot * RECORD_BYTES : (slot + 1) * RECORD_BYTES]
    expected = [float(at) for at in range(max(0, count - 15), count)]
    for cut in range(RECORD_BYTES):
        torn = bytearray(before.ljust((slot + 1) * RECORD_BYTES, b"\0") if cut else before)
        torn[slot * RECORD_BYTES : slot * RECORD_BYTES + cut] = after[:cut]
        if torn[slot * RECORD_BYTES :][:RECORD_BYTES] == after:  # only zeros were missing
            continue
        ring.path.write_bytes(bytes(torn))
        following = SampleRing(tmp_path, 16)
        assert times(following.page("web", 0.0))[-len(expected) :] == expected, cut
        following.append("web", [sample(99.0)])
        assert times(SampleRing(tmp_path, 16).page("web", 0.0))[-2:] == [expected[-1], 99.0]


def test_a_damaged_or_foreign_file_is_begun_anew(tmp_path: Path) -> None:
    ring = filled(tmp_path, 5)
    for text in (b"", b"something else", os.urandom(4096)):
        ring.path.write_bytes(text)
        following = SampleRing(tmp_path, 16)
        assert following.page("web", 0.0).samples == ()
        following.append("web", [sample(1.0)])
        assert times(SampleRing(tmp_path, 16).page("web", 0.0)) == [1.0]


def test_any_bytes_over_any_of_it_are_passed_over(tmp_path: Path) -> None:
    draw = random.Random(7)
    ring = filled(tmp_path, 30)
    whole = ring.path.read_bytes()
    for _ in range(200):
        spoiled, at = bytearray(whole), draw.randrange(RECORD_BYTES, len(whole))
        spoiled[at : at + 40] = draw.randbytes(len(spoiled[at : at + 40]))
        ring.path.write_bytes(bytes(spoiled))
        shown = times(SampleRing(tmp_path, 16).page("web", 0.0))
        assert set(shown) <= {float(at) for at in range(14, 30)}
        assert len(shown) >= 14
        assert shown == sorted(shown)


def test_a_clock_that_is_set_back_or_forth_draws_no_time_twice(tmp_path: Path) -> None:
    ring = SampleRing(tmp_path)
    for at in (100.0, 110.0, 120.0, 105.0, 115.0):  # set back by fifteen seconds or more
        ring.append("web", [sample(at)])
    assert times(ring.page("web", 0.0)) == [100.0, 105.0, 115.0]
    for at in (1.0, 2.0, 130.0):  # wrong for a while, then right again
        ring.append("web", [sample(at)])
    assert times(ring.page("web", 50.0))[-1] == 130.0


def test_on_a_full_disk_nothing_older_is_lost_and_the_next_try_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = filled(tmp_path, 5)
    write = os.pwrite
    for room in (0, 1, 70):

        def full(file: int, data: bytes, at: int, room: int = room) -> int:
            if not room:
                raise OSError(28, "No space left on device")
            return write(file, data[:room], at)

        with monkeypatch.context() as patched:
            patched.setattr(samples.os, "pwrite", full)
            with pytest.raises(OSError, match=r"No space left|took a part"):
                ring.append("web", [sample(5.0)])
        assert times(SampleRing(tmp_path, 16).page("web", 0.0)) == [0.0, 1.0, 2.0, 3.0, 4.0]
    ring.append("web", [sample(6.0)])
    assert times(SampleRing(tmp_path, 16).page("web", 0.0)) == [0.0, 1.0, 2.0, 3.0, 4.0, 6.0]


def test_names_that_do_not_fit_are_cut_and_told_apart(tmp_path: Path) -> None:
    ring, long = SampleRing(tmp_path), "x" * 200
    for pipeline in ("p" * 150 + "a", "p" * 150 + "b"):
        ring.append(pipeline, [sample(1.0), sample(1.0, long + "1"), sample(1.0, long + "2")])
    result = ring.page("p" * 150 + "a", 0.0)
    assert len({each.feed for each in result.samples}) == len(result.samples) == 3
    assert len(ring.page("p" * 150 + "b", 0.0, long + "2").samples) == 1


def test_a_figure_that_is_none_is_written_as_zero(tmp_path: Path) -> None:
    ring = SampleRing(tmp_path)
    ring.append("web", [sample(1.0, rows=float("nan"), lag=float("inf"), backfill=1e300)])
    (result,) = ring.page("web", 0.0).samples
    assert (result.rows, result.lag) == (0.0, 0.0)
    assert result.backfill > 1e38


def test_a_day_is_read_in_pages_that_fit_into_messages(tmp_path: Path) -> None:
    ring = SampleRing(tmp_path)
    start, feeds = 1_790_000_000.123456, ["", *(f"materialization_{at}" for at in range(10))]
    for tick in range(8_640):
        ring.append("web", [sample(start + 10 * tick, feed, rows=12_345.678, lag=1_234.567) for feed in feeds])
    pages, before = [], 0
    while True:
        page = ring.page("web", start, before=before)
        pages.append(page)
        assert len(codec.dumps(page)) < FRAME - 200
        if not (before := page.before):
            break
    assert sum(len(page.samples) for page in pages) == 8_640 * 11
    assert len(pages[0].samples) == PAGE_SAMPLES
    assert pages[0].samples[-1].at == start + 10 * 8_639
    assert times(pages[1])[-1] <= times(pages[0])[0]
    began = time.process_time()
    hour = ring.page("web", start + 10 * 8_280, "")
    assert len(hour.samples) == 360
    assert time.process_time() - began < 1.0, "an hour is read from its end, not from the whole file"
    assert codec.decode(SamplePage, json.loads(codec.dumps(hour))) == hour


KILLED = """
import sys
from pathlib import Path
from console.agent.store.samples import SampleRing
from console.model.measured import FeedSample
ring = SampleRing(Path(sys.argv[1]), 64)
at = ring.last_at
print("ready", flush=True)
while True:
    at += 1
    ring.append("web", [FeedSample(at=at, feed=feed, rows=1, lag=1, behind=1) for feed in ("", "parse", "hours")])
"""


def test_killed_while_it_writes_as_fast_as_it_can_the_next_agent_goes_on(tmp_path: Path) -> None:
    last = 0.0
    for _ in range(5):
        command = [sys.executable, "-c", KILLED, str(tmp_path)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        ) as agent:
            assert agent.stdout
            assert agent.stdout.readline() == b"ready\n"
            time.sleep(0.05)
            agent.kill()
        ring = SampleRing(tmp_path, 64)
        shown = times(ring.page("web", 0.0, ""))
        assert shown == sorted(shown)
        assert ring.last_at > last
        assert len(shown) >= min(20, ring.last_at - 1)
        last = ring.last_at
