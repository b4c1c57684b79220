"""A region in memory, for tests, benches and replayed fleets; no demo, apply or headless run reaches it."""

from console.drivers.fake.disk import FakeDisk, Write
from console.drivers.fake.driver import FakeDriver
from console.drivers.fake.region import FakeRegion, stored_events
from console.drivers.fake.scenario import Scenario

__all__ = ["FakeDisk", "FakeDriver", "FakeRegion", "Scenario", "Write", "stored_events"]
