"""For all tests: no time limit on a single example, since the machine is shared with real Sparks; the same examples in
every run, unless `HYPOTHESIS_PROFILE=drawn` asks for others."""

import os
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("drawn", deadline=None)
settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))

SLOW = (
    "tests/agent/",
    "tests/cli/test_behind",
    "tests/cli/test_change",
    "tests/cli/test_first_steps",
    "tests/cli/test_ground",
    "tests/cli/test_review",
    "tests/cli/test_terminal",
    "tests/days/",
    "tests/demo/",
    "tests/faults/",
    "tests/hostile/",
    "tests/pages/",
    "tests/planning/property/",
    "tests/planning/test_aggregates",
    "tests/planning/test_calls",
    "tests/planning/test_compare_cases",
    "tests/planning/test_evolution",
    "tests/planning/test_faithful",
    "tests/planning/test_filters",
    "tests/planning/test_fleet",
    "tests/planning/test_golden",
    "tests/planning/test_named",
    "tests/planning/test_narrowing",
    "tests/planning/oracle/",
    "tests/planning/test_operators",
    "tests/planning/test_other_rules",
    "tests/planning/test_patience",
    "tests/planning/test_problems",
    "tests/planning/test_rebind",
    "tests/planning/test_rewrites",
    "tests/planning/test_routes",
    "tests/planning/test_states",
    "tests/project/test_hostile_yaml",
    "tests/project/test_remembered",
    "tests/propagation/test_migrations",
    "tests/propagation/test_reading",
    "tests/runner/test_resume",
    "tests/screens/",
    "tests/ssh/",
    "tests/stores/",
    "tests/versions/",
    "tests/witness/",
)
UNDER_FIRE = tuple(f"tests/faults/test_{act}.py" for act in ("points", "outside", "around"))


# `make check` does not even import them
collect_ignore_glob = [f"{place.removeprefix('tests/')}*" for place in SLOW] if "QUICK" in os.environ else []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out of `make check` whatever takes seconds: screens, terminals, tables, whole plans; `make test` runs it all."""
    for item in items:
        place = item.path.relative_to(item.config.rootpath).as_posix()
        if place.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadscope`, what shares a region or a Spark stays together: a file's tests, those of a feed's rules, and
    the acts of the one region under fire."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            place = nodeid.partition("::")[0]
            if place in UNDER_FIRE:
                return "under fire"
            return "rules" if place.startswith("tests/faults/rules/") else place

    return Together(config, log) if config.getoption("dist") == "loadscope" else None
