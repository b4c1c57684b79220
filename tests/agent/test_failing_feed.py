"""A feed that fails: retries, stops and reports, with the real follower over real logs. No Java."""

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import AnalysisException, NumberFormatException

from console.agent.errors import AgentEnding
from console.agent.feeds import follower
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.health import FIRST_LOOK_SECONDS, LAST_SECONDS, TRIES, Health
from console.agent.feeds.live_feed import LiveFeed
from console.agent.store import log, open_tables
from console.errors import CheckFailed, FeedStopped
from tests.agent.copying import by_arrow
from tests.faults.rules.tables import SCHEMA, column_values, commit_rows, copying_feed, foreign, number, rows

pytestmark = pytest.mark.slow

PARTS = {"partition_by": ["day"]}
CARD = "[CAST_INVALID_INPUT] The value 'c4rd 4111 1111' of the type \"STRING\" cannot be cast. SQLSTATE: 22018"


class FailingFeedSetup:
    """A follower, moved by hand, of one feed from `landing` to `copy`; `meets` is what Spark says of the rows."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = place
        self.landing, self.copy = foreign(place / "landing", rows(0), rows(1), rows(2)), str(place / "copy")
        DeltaTable.create(self.copy, schema=SCHEMA, **PARTS)
        self.check_rows: Callable[[pa.Table], None] = lambda _: None
        self.reports: list[tuple[str, str, str]] = []
        by_arrow(monkeypatch, self._met)
        self.start()

    def _met(self, table: pa.Table) -> None:
        self.check_rows(table)

    def start(self, *more: LiveFeed) -> None:
        """As a fresh agent does: nothing is known but what the logs say."""
        spark = SimpleNamespace(session=object, live_session=object, give_up=lambda _: None)
        self.follower = FeedFollower(cast(Any, spark), 0.01, lambda *each: self.reports.append(each))
        self.feed = copying_feed(self.landing, self.copy, start=-1 if log.latest_version(self.copy) else 0)
        self.follower.follow("web", (self.feed, *more))

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.follower._move_pipeline("web")

    def arrive(self, *numbers: int) -> None:
        write_deltalake(self.landing, rows(*numbers), mode="append", **PARTS)

    def anew(self, *commits: pa.Table) -> None:
        """Somebody drops landing and writes another table in its place."""
        shutil.move(self.landing, self.place / "dropped")
        foreign(self.place / "landing", *commits)

    @property
    def health(self) -> Health:
        return self.feed.health


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailingFeedSetup:
    started = FailingFeedSetup(tmp_path, monkeypatch)
    started.tick(2)
    assert column_values(started.copy) == [1, 2]  # version 0 is where it opened
    return started


# -- a source that is another table now


def test_a_source_that_was_written_anew_and_is_shorter_stops_its_feed_for_good(setup: FailingFeedSetup) -> None:
    setup.anew(rows(100))
    setup.tick()
    assert setup.health.stopped is not None
    assert setup.health.stopped.code == "E_BEHIND"
    for n in range(5):
        setup.arrive(n)
    setup.tick(3)
    assert column_values(setup.copy) == [1, 2]
    assert [level for _, level, _ in setup.reports] == ["error"]


def test_one_that_is_longer_by_now_is_known_by_its_id_when_an_agent_starts(setup: FailingFeedSetup) -> None:
    setup.anew(*(rows(n) for n in range(100, 108)))
    setup.start()
    setup.tick(2)
    assert setup.health.stopped is not None
    assert setup.health.stopped.code == "E_REPLACED"
    assert column_values(setup.copy) == [1, 2]


def test_every_commit_of_a_feed_names_the_table_that_it_read_and_those_that_do_not_are_believed(
    setup: FailingFeedSetup,
) -> None:
    own = [log.commit(setup.copy, version).note for version in range(1, log.latest_version(setup.copy) + 1)]
    assert [(note["kind"], note["source"]) for note in own] == [
        (kind, open_tables.table_id(setup.landing)) for kind in ("take-over", "live")
    ]
    # as an agent wrote before sources were named
    commit_rows(setup.copy, setup.feed.app_id, number(2, 2), rows(), kind="live")
    setup.anew(*(rows(n) for n in range(100, 104)))
    setup.start()
    setup.tick(2)
    assert column_values(setup.copy) == [1, 2, 103]


# -- failures


def test_a_live_row_that_does_not_convert_stops_its_feed_at_once_and_its_value_is_not_told(
    setup: FailingFeedSetup,
) -> None:
    def strict(table: pa.Table) -> None:
        if 13 in table.column("n").to_pylist():
            raise NumberFormatException(CARD)

    setup.check_rows = strict
    setup.arrive(13)
    setup.tick(20)
    why = setup.health.stopped
    assert why is not None
    assert (why.code, "try_cast" in why.hint) == ("C301", True)
    assert setup.reports == [("web", "error", setup.reports[0][2])]
    assert "C301" in setup.reports[0][2]
    assert "4111" not in setup.reports[0][2]
    assert log.latest_version(setup.copy) == 2, "nothing is committed while it stands still"
    assert setup.follower.align("web").done() is False
    request = setup.follower.align("web")
    setup.tick()
    assert request.result(0) == {setup.landing: 3}, "nobody waits for it, and nobody takes it for level"


def test_a_feed_that_fails_is_told_from_its_first_try_and_is_well_once_its_cause_is_gone(
    setup: FailingFeedSetup,
) -> None:
    def full(_: pa.Table) -> None:
        raise OSError(28, "No space left on device")

    def ailing_feeds() -> list[tuple[str, str, str, int, bool, tuple[str, ...]]]:
        ailing = setup.follower.lag("web").ailing
        return [(ill.feed, ill.target, ill.path, ill.tries, ill.standing, ill.below) for ill in ailing]

    place = str(setup.place / "below")
    DeltaTable.create(place, schema=SCHEMA, **PARTS)
    below = copying_feed(setup.copy, place)
    below.spec = replace(below.spec, source="copy", target="below")
    setup.start(below)
    setup.tick(4)
    assert ailing_feeds() == []
    setup.check_rows = full
    setup.arrive(13)
    for tries in range(1, 10):
        setup.health._paused_until = 0.0
        setup.tick()
        assert ailing_feeds() == [("every", "copy", "copy", tries, tries >= TRIES, ("below",))]
    (ill,) = setup.follower.lag("web").ailing
    assert ill.why == "copy: [Errno 28] No space left on device (9 tries)"
    assert (ill.code, ill.hint) == ("E_FEED", "the agent keeps retrying; remove the cause")
    setup.check_rows, setup.health._paused_until = (lambda _: None), 0.0
    setup.tick()
    assert ailing_feeds() == []


def test_what_may_pass_is_tried_again_after_ever_longer_rests_and_told_after_some(setup: FailingFeedSetup) -> None:
    def full(_: pa.Table) -> None:
        raise OSError(28, "No space left on device")

    setup.check_rows = full
    setup.arrive(3)
    request = setup.follower.align("web")
    rests = []
    for tries in range(1, 12):
        setup.tick(10)
        assert setup.health.tries == tries, "not before its rest is over"
        assert (setup.health.standing is not None) == (tries >= TRIES) == request.done()
        rests.append(setup.health._paused_until - time.monotonic())
        setup.health._paused_until = 0.0
    assert max(rests[:2]) < 2.1
    assert LAST_SECONDS / 2 - 5 < rests[-1] <= LAST_SECONDS
    standing = setup.health.standing
    assert standing is not None
    assert (standing.code, "No space left" in str(standing)) == ("E_FEED", True)
    setup.check_rows = lambda _: None
    setup.tick()
    assert (setup.health.tries, column_values(setup.copy)) == (0, [1, 2, 3])


def test_a_change_that_spark_met_once_is_tried_again_and_one_that_stays_stops_the_feed(setup: FailingFeedSetup) -> None:
    """Columns that are added beside a commit of ours read like a table that was altered."""

    def altered(_: pa.Table) -> None:
        raise AnalysisException("[DELTA_METADATA_CHANGED] MetadataChangedException: changed by a concurrent update")

    setup.check_rows = altered
    setup.arrive(3)
    for tries in (1, 2):
        setup.tick()
        assert (setup.health.tries, setup.health.stopped) == (tries, None)
        setup.health._paused_until = 0.0
    setup.tick()
    assert setup.health.stopped is not None
    assert (setup.health.stopped.code, setup.health._paused_until) == ("E_DRIFT", inf)


def test_a_feed_that_a_rival_overtook_is_taken_over_again_after_a_while(setup: FailingFeedSetup) -> None:
    setup.arrive(3)
    setup.arrive(4)
    commit_rows(setup.copy, setup.feed.app_id, number(9, 3), rows(3))
    setup.tick(5)
    assert setup.health.stopped is not None
    assert (setup.health.stopped.code, setup.health.due()) == ("E_SKIPPED", False)
    assert setup.health._paused_until - time.monotonic() <= FIRST_LOOK_SECONDS
    setup.health._paused_until = 0.0
    setup.tick()
    assert setup.health.stopped is None
    assert column_values(setup.copy) == [1, 2, 3, 4]
    assert setup.reports[-1] == ("web", "info", "every continues")


def test_a_landing_table_that_is_missing_holds_up_its_own_feeds_alone(setup: FailingFeedSetup) -> None:
    other, target = foreign(setup.place / "other", rows(7)), str(setup.place / "target")
    DeltaTable.create(target, schema=SCHEMA, **PARTS)
    setup.start(copying_feed(other, target))
    setup.tick()
    shutil.move(setup.landing, setup.place / "away")
    write_deltalake(other, rows(8), mode="append", **PARTS)
    setup.tick(3)
    assert column_values(target) == [8]
    assert (setup.health.stopped, setup.health.tries) == (None, 1)
    shutil.move(setup.place / "away", setup.landing)
    setup.health._paused_until = 0.0
    setup.tick()
    assert setup.health.tries == 0


def test_what_hangs_below_a_feed_that_stands_still_is_not_taken_for_level(setup: FailingFeedSetup) -> None:
    below = str(setup.place / "below")
    DeltaTable.create(below, schema=SCHEMA, **PARTS)
    setup.start(copying_feed(setup.copy, below, start=0))
    setup.tick(2)
    setup.health.stop(FeedStopped("somebody deleted rows", code="E_REWRITE"))
    request = setup.follower.align("web")
    setup.tick()
    assert request.result(0) == {setup.landing: 2}


def test_a_feed_that_goes_on_is_not_taken_for_level_before_it_has_moved(setup: FailingFeedSetup) -> None:
    setup.arrive(3)
    setup.health.stop(FeedStopped("somebody deleted rows", code="E_REWRITE"))
    setup.tick()
    assert setup.follower.is_aligned("web")
    setup.health.reset()
    assert not setup.follower.is_aligned("web")
    setup.tick()
    assert (setup.follower.is_aligned("web"), column_values(setup.copy)) == (True, [1, 2, 3])


# -- who waits


def test_who_needs_a_feed_that_stands_still_is_told_its_own_reason_at_once(setup: FailingFeedSetup) -> None:
    setup.health.stop(FeedStopped("somebody deleted rows", hint="on_rewrite: ignore", code="E_REWRITE"))
    setup.tick()
    for _ in range(2):
        with pytest.raises(FeedStopped, match="deleted") as refused, setup.follower.hold("web", 600):
            pass
        assert (refused.value.code, refused.value.hint) == ("E_REWRITE", "on_rewrite: ignore")
        assert refused.value is not setup.health.stopped
    with setup.follower.hold("web", 600, needed=lambda _: False):
        pass


def test_nobody_waits_for_a_follower_that_ends(setup: FailingFeedSetup) -> None:
    setup.start()  # nothing is level before the first tick, and there is none
    met: list[CheckFailed] = []

    def drain() -> None:
        try:
            with setup.follower.hold("web", 600):
                pass
        except CheckFailed as error:
            met.append(error)

    waiting = threading.Thread(target=drain, daemon=True)
    waiting.start()
    while waiting.is_alive() and not setup.follower._requests:
        waiting.join(0.01)
    setup.follower.stop()
    waiting.join(30)
    assert [type(error) for error in met] == [AgentEnding]
    assert isinstance(setup.follower.align("web").exception(0), CheckFailed)


def test_a_wish_that_was_being_granted_when_the_follower_ended_is_not_forgotten(setup: FailingFeedSetup) -> None:
    setup.arrive(3)
    setup.check_rows = lambda _: setup.follower.stop()
    below = str(setup.place / "below")
    DeltaTable.create(below, schema=SCHEMA, **PARTS)
    setup.follower.follow("web", (setup.feed, copying_feed(setup.copy, below)))
    request = setup.follower.align("web")
    setup.tick()
    assert isinstance(request.exception(0), CheckFailed)


def test_a_failure_of_the_follower_itself_does_not_end_it(
    setup: FailingFeedSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(setup.follower, "_move_feed", broken)
        request = setup.follower.align("web")
        setup.follower.start()
        while setup.follower.is_alive() and not setup.reports:
            setup.follower.join(0.01)
    setup.arrive(3)
    assert request.result(30)[setup.landing] >= 2, "nor is who waits for it forgotten"
    assert setup.follower.align("web").result(30)[setup.landing] == 3
    setup.follower.stop()
    setup.follower.join(30)
    assert column_values(setup.copy) == [1, 2, 3]


def test_a_lag_is_that_of_now_and_not_of_the_last_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("LAG_SECONDS", "LAG_SHARE"):
        monkeypatch.setattr(follower, limit, 0.0)
    here = FailingFeedSetup(tmp_path, monkeypatch)
    here.tick(3)
    assert here.follower.lag("web").commits == 0
    here.arrive(7, 8)
    assert (here.follower.lag("web").commits, here.follower.lag("web").rows) == (1, 2)
    here.tick(2)
    assert here.follower.lag("web").commits == 0
