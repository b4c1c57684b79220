"""The fake region is part of the package, and code for real regions cannot reach it."""

from pathlib import Path

import pytest

import console
from console.drivers import fake
from console.drivers.fake import FakeDriver, FakeRegion
from console.drivers.fake.disk import FakeDisk
from console.drivers.protocol import Driver, Who
from console.model.live import ReleaseRow
from console.model.plan import numbered
from tests.planning.edits import AGENT
from tests.planning.world import live, pipeline, planned
from tests.runner.worlds import region, survey

HOUSE = Path(console.__file__).parent


@pytest.mark.slow
def test_no_room_of_the_house_imports_the_fake() -> None:
    own = Path(fake.__file__).parent
    rooms = [path for path in HOUSE.rglob("*.py") if own not in path.parents]
    assert len(rooms) > 30
    for path in rooms:
        text = path.read_text()
        for way in ("drivers.fake", "drivers import fake", "FakeRegion", "FakeDriver"):
            assert way not in text, f"{path}: {way}"


def test_the_fake_answers_the_whole_protocol() -> None:
    driver: Driver = FakeDriver(FakeRegion(region("eu"), survey("eu")))
    calls = {name for name in vars(Driver) if not name.startswith("_")} - {"region"}
    assert all(callable(getattr(driver, name)) for name in calls)


@pytest.mark.slow
def test_a_table_that_both_releases_share_is_fed_by_the_one_that_is_live() -> None:
    was, ada = live(), Who("ada", "laptop")
    disk = FakeDisk(was, [ReleaseRow(id="r1", state="live")], lambda: 0.0, lambda _: None)
    new = numbered(planned(AGENT(pipeline()), was), 2)
    shared = {s.table.name: s.version.path for s in new.release.tables}
    old = {stats.name: stats.path for stats in was.stats}
    assert shared["requests_by_hour"] == old["requests_by_hour"]
    disk.propose(new, ada)
    seen = []
    for live_, to in (("r1", "r2"), ("r2", "r1")):
        disk.swap(live_, to, ada)
        seen.append(disk.fed[shared["requests_by_hour"]])
    assert seen == [(shared["requests"],), (old["requests"],)]
    assert shared["requests"] != old["requests"]
