"""For all tests: no time limit on a single example, since the machine is shared with real Sparks; the same examples in
every run, unless `HYPOTHESIS_PROFILE=drawn` asks for others."""

import os

import pytest
from hypothesis import settings

settings.register_profile("drawn", deadline=None)
settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))

SLOW = (
    "tests/screens/",
    "tests/demo/",
    "tests/agent/",
    "tests/hostile/",
    "tests/cli/test_terminal",
    "tests/cli/test_change",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out of `make check` what opens screens, terminals and tables by the dozen; `make test` runs it all."""
    for item in items:
        place = item.path.relative_to(item.config.rootpath).as_posix()
        if place.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
