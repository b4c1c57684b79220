"""A wall clock that is stepped under running processes: the Python and the JVM of agents and consoles read it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIBRARY = "libfaketimeMT.so.1"  # of the package libfaketime, which `tools/setup.py clocks` installs
DAY = 86_400
NOTICED = 1  # seconds until a process looks again how far its clock is off
PYTHON = f"""
import time
_time, _ns, _steady = time.time, time.time_ns, time.monotonic
_off, _looked = 0, 0.0
def _ahead():
    global _off, _looked
    if _steady() - _looked > {NOTICED}:
        with open({{place!r}}) as file:
            _off, _looked = int(file.read()), _steady()
    return _off
time.time = lambda: _time() + _ahead()
time.time_ns = lambda: _ns() + _ahead() * 10**9
"""
JAVA = f"""#!/bin/sh
export LD_PRELOAD={{library}} FAKETIME_TIMESTAMP_FILE={{place}} FAKETIME_CACHE_DURATION={NOTICED}
export FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_FORCE_MONOTONIC_FIX=0 NO_FAKE_STAT=1
exec {{java}} "$@"
"""


class Clock:
    """As far ahead of the machine's as it was stepped. The monotonic clock stays, and what a disk says of its files.

    In Java by libfaketime; in Python by hand, where that breaks `time.sleep` and Delta's own library (as of Debian 12): what
    that library, in Rust, takes for the time is the machine's.
    """

    def __init__(self, place: Path) -> None:
        """place  a directory of its own"""
        place.mkdir()
        self._off = place / "off"
        self.step(0)
        (place / "sitecustomize.py").write_text(PYTHON.format(place=str(self._off)))
        home = os.environ.get("JAVA_HOME")
        java = f"{home}/bin/java" if home else shutil.which("java")
        library = next(Path("/usr/lib").glob(f"*/faketime/{LIBRARY}"))
        (place / "bin").mkdir()
        (place / "bin" / "java").write_text(JAVA.format(library=library, place=self._off, java=java))
        (place / "bin" / "java").chmod(0o700)
        path = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH", "")]))
        self.environment = {"JAVA_HOME": str(place), "PYTHONPATH": path}

    def around(self) -> dict[str, str]:
        """The environment of a process that reads this clock."""
        return {**os.environ, **self.environment}

    def step(self, seconds: int) -> None:
        """Set it; every process has noticed after `2 * NOTICED` seconds."""
        fresh = self._off.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}")
        fresh.replace(self._off)


@contextmanager
def read_from(clock: Clock) -> Iterator[None]:
    """Whatever is started meanwhile reads this clock."""
    before = {name: os.environ.get(name) for name in clock.environment}
    os.environ.update(clock.environment)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
