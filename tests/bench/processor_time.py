"""Processor time of this process and its JVM. `against.py` also brings this file to older commits, so it imports nothing of ours."""

import resource
from contextlib import suppress
from pathlib import Path

_compilers: dict[str, int] = {}  # thread of a compiler → its ticks when last looked at


def spent(jvm: int) -> float:
    """Processor seconds so far, without those of the JVM's compilers, which take up to half of a short run and differ by a third
    between two runs of one commit."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    for task in Path(f"/proc/{jvm}/task").iterdir():
        with suppress(OSError):  # ended meanwhile; what it had taken when last looked at stays counted
            stat = (task / "stat").read_text()
            if "CompilerThre" in stat:  # C1 and C2
                _compilers[task.name] = ticks(stat)
    jvm_ticks = ticks(Path(f"/proc/{jvm}/stat").read_text()) - sum(_compilers.values())
    return own.ru_utime + own.ru_stime + jvm_ticks / 100


def ticks(stat: str) -> int:
    """Processor time of a process or thread, in hundredths of a second."""
    fields = stat.rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])


def of_tree() -> float:
    """Processor seconds so far of this process and of all below it, those that have ended and were waited for included."""
    return of_process(Path("/proc/self").resolve().name)


def of_process(pid: int | str) -> float:
    """As `of_tree`, of another process and of all below it."""
    return sum(map(_with_ended, (top := Path("/proc") / str(pid), *_below(top)))) / 100


def _with_ended(process: Path) -> int:
    try:
        fields = (process / "stat").read_text().rpartition(") ")[2].split()
    except OSError:  # ended meanwhile: its parent has its ticks
        return 0
    return sum(map(int, fields[11:15]))


def _below(process: Path) -> list[Path]:
    found: list[Path] = []
    with suppress(OSError):
        for task in (process / "task").iterdir():
            for child in (task / "children").read_text().split():
                found += (process.with_name(child), *_below(process.with_name(child)))
    return found
