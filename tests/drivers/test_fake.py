"""The fake region ships, and nothing that touches real regions can reach it."""

from pathlib import Path

import console
from console.drivers import fake
from console.drivers.fake import FakeDriver, FakeRegion
from console.drivers.protocol import Driver
from tests.runner.worlds import region, survey

HOUSE = Path(console.__file__).parent


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
