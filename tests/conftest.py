"""For all tests: no time limit on a single example, since the machine is shared with real Sparks; the same examples in
every run, unless `HYPOTHESIS_PROFILE=drawn` asks for others."""

import gc
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("drawn", deadline=None)
settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))

# Syntax trees are many small objects that live long: with the collector's own thresholds it took a third of the quick loop.
gc.set_threshold(100_000, 20, 50)

# files whose tests share something: a Spark, or the parsed source. All rules on one Spark, and all that goes through one Connect
# server, took longer than the rest of their areas.
GROUPS = {
    "rules a-j": re.compile(r"tests/faults/rules/test_[a-j]"),
    "rules k-z": re.compile(r"tests/faults/rules/test_[k-z]"),
    "rollouts on connect": re.compile(r"tests/objects/test_rollout_on_connect"),
    "connect": re.compile(r"tests/objects/test_\w+_on_connect"),
    "walls": re.compile(r"tests/walls/"),
}
UNDER_FIRE = tuple(f"tests/faults/test_{act}.py" for act in ("points", "outside", "cleanup_killed"))

# Scopes of more than a minute, longest first. They start first, so that no area ends with one worker that waits for the other.
LONGEST = (
    "under fire",
    "rules a-j",
    "rules k-z",
    "tests/objects/test_region_uses.py",
    "connect",
    "rollouts on connect",
    "tests/cluster/test_rollout.py",
    "tests/agent/test_watch_spark.py",
    "tests/agent/test_resilience.py",
    "tests/life/test_life.py",
    "tests/pages/test_pages.py",
    "tests/versions/test_carried.py",
    "tests/agent/test_receipts.py",
    "tests/closure/test_carried.py",
    "tests/worlds/test_worlds.py",
    "tests/life/test_landing_conversions.py",
    "tests/life/test_from_now.py",
    "tests/life/test_preview.py",
    "tests/pages/test_walkthrough.py",
    "tests/days/test_far_days.py",
    "tests/life/test_landing_changes.py",
    "tests/life/test_aggregates.py",
    "tests/agent/test_asleep.py",
    "tests/agent/test_way_back_spark.py",
    "tests/installed/test_wheel.py",
    "tests/stores/test_end_to_end.py",
    "tests/propagation/worlds/test_worlds.py",
    "tests/faults/rivals/test_rivals.py",
    "tests/faults/test_memory.py",
    "walls",  # the longest of the quick loop, by far
)


# the marks of a whole file that `make check` leaves out: screens, terminals, tables, regions, servers
LEFT_OUT = re.compile(r"^pytestmark = .*\bmark\.(slow|stores|spark|faults|ssh|s3|cluster|bench|soak)\b", re.MULTILINE)


# the marks of which each has an area of `make test`, beside `pure`
AREAS = ("stores", "ssh", "s3", "cluster", "spark", "faults")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """For `make check`, and for an area that is named by MARKED in the environment, what has no test to run is not even
    imported, nor the conftest of a folder with nothing else: that takes longer than the tests."""
    if collection_path.is_dir():
        files = tuple(collection_path.rglob("test_*.py"))
        return (bool(files) and all(map(has_no_test, files))) or None
    is_test = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    return (is_test and has_no_test(collection_path)) or None


@cache
def has_no_test(path: Path) -> bool:
    if area := os.environ.get("MARKED"):
        return area not in written_marks(path)
    return "QUICK" in os.environ and bool(LEFT_OUT.search(path.read_text(encoding="utf-8")))


@cache
def written_marks(path: Path) -> frozenset[str]:
    """The names behind `mark.` in a file."""
    return frozenset(re.findall(r"\bmark\.(\w+)", path.read_text(encoding="utf-8")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest first; and a test of an area whose file does not have the mark in its text would run nowhere."""
    items.sort(key=lambda item: turn(item.nodeid))
    hidden = [
        f"{item.nodeid}: its file does not say mark.{area}"
        for item in items
        for area in AREAS
        if item.get_closest_marker(area) and area not in written_marks(item.path)
    ]
    if hidden:
        raise pytest.UsageError("\n".join(hidden))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Collect once: pytest and the interpreter do it another eight times before they end."""
    gc.collect()
    gc.freeze()


def scope_of(nodeid: str) -> str:
    """What shares a region, a Spark or what was read: a file's tests, those of the files of a group, and the acts of the
    one region under fire."""
    place = nodeid.partition("::")[0]
    if place in UNDER_FIRE:
        return "under fire"
    group = next((name for name, files in GROUPS.items() if files.match(place)), "")
    return group or place


def turn(nodeid: str) -> int:
    scope = scope_of(nodeid)
    return LONGEST.index(scope) if scope in LONGEST else len(LONGEST)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadscope`, what shares something stays together, in the order of collection; by itself the scheduler begins
    with the scopes of most tests, and ends with lives of one test and minutes each."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

        def _reschedule(self, node: Any) -> None:
            """A worker has to know one test beside the one that it runs. By itself it is given one more, which may be a life of
            minutes that the other worker, with nothing left, could have begun."""
            if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
                super()._reschedule(node)

    if config.getoption("dist") != "loadscope":
        return None
    config.option.loadscopereorder = False
    return Together(config, log)
