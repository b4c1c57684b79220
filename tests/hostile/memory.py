"""The peak memory of a piece of work, regardless of earlier allocations."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PROCESS = Path("/proc/self")


@contextmanager
def lean(case: str, megabytes: int = 200) -> Iterator[None]:
    """raises AssertionError naming the case, where its work took that much"""
    # the kernel's highest mark never falls by itself: one large case would hide all smaller ones after it
    with suppress(OSError):
        (_PROCESS / "clear_refs").write_text("5")
    before = _highest()
    yield
    taken = (_highest() - before) >> 10
    assert taken < megabytes, f"{case}: took {taken} MB of memory"


def _highest() -> int:
    """The process's highest resident size in KiB: since its mark was lowered, or where that is not known, ever."""
    try:
        return int((_PROCESS / "status").read_text().split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
