"""What `console doctor` looks at: this machine, and the project if there is one."""

import locale
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from console import paths
from console.cli.figures import size
from console.cli.flags import Flags
from console.errors import ConsoleError, Problems

_ENOUGH = 2 * 1024**3
_LITTLE = 200 * 1024**2
_SOCKET = 107  # bytes of a unix socket's path


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ok None: works, but mind it. fix: what to type."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""


def examine(flags: Flags) -> list[Finding]:
    """Look at everything; a check that breaks is itself a finding."""
    looks: tuple[Callable[[], Finding], ...] = (_python, java, _jars, _state, _sockets, _journal, _terminal)
    findings = []
    for look in looks:
        try:
            findings.append(look())
        except (OSError, ValueError, ConsoleError) as error:
            findings.append(Finding(look.__name__.lstrip("_"), False, str(error), getattr(error, "hint", "")))
    return [*findings, *_project(flags)]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "python", sys.version_info >= (3, 11), version, "" if sys.version_info >= (3, 11) else "use 3.11 or later"
    )


def java() -> Finding:
    """The `java` that Spark would start: from JAVA_HOME, else from PATH; it must be 17 or 21."""
    fix = "apt-get install openjdk-17-jre-headless, or set JAVA_HOME"
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not program:
        return Finding("java", False, "none on PATH and no JAVA_HOME", fix)
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("java", False, f"{program}: {error}", fix)
    found = re.search(r'version "(\d+)[^"]*"', done.stderr + done.stdout)
    if not found:
        return Finding("java", False, f"{program}: gives no version", fix)
    good = found[1] in ("17", "21")
    return Finding("java", good, f"{found[0].removeprefix('version ')} {program}", "" if good else fix)


def _jars() -> Finding:
    folder = paths.jars_dir()
    jars = sorted(path.name for path in folder.glob("*.jar")) if folder.is_dir() else []
    delta = [name for name in jars if name.startswith(("delta-spark", "io.delta_delta-spark"))]
    if not delta:
        return Finding("jars", False, f"{folder}: Delta's jars are not there", "make setup")
    return Finding("jars", True, f"{delta[0]} and {len(jars) - 1} more in {folder}")


def _state() -> Finding:
    folder = paths.state_dir()
    probe = folder / f".probe-{os.getpid()}"
    probe.write_bytes(b"\0" * 4096)
    probe.unlink()
    return _space("disk of journal and logs", folder)


def _space(name: str, folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    ok = True if free > _ENOUGH else None if free > _LITTLE else False
    return Finding(name, ok, f"{size(free)} free at {folder}", "" if ok else "make room there")


def _logs(region: str, warehouse: Path) -> Finding:
    """Commits that a power loss left empty or cut short: readers pass over the former without a word."""
    name, looked = f"logs of {region}", 0
    for table in ("*", "*/*", "_console/*/*"):
        for log in sorted(warehouse.glob(f"{table}/_delta_log")):
            looked += 1
            if bad := _damaged(log):
                where = f"{log.parent.relative_to(warehouse)}: version {int(bad.stem)} is {'cut short' if bad.stat().st_size else 'empty'}"
                return Finding(name, False, where, f"restore {bad} from a copy, or the table to the version before it")
    return Finding(name, True, f"{looked} tables")


def _damaged(log: Path) -> Path | None:
    """The first commit since the last checkpoint that is empty or does not end as a commit does."""
    last = max((file.name[:20] for file in log.glob("*.checkpoint*")), default="")
    for file in sorted(log.glob("*.json")):
        if file.stem.isdigit() and file.stem > last and not file.read_bytes().rstrip().endswith(b"}"):
            return file
    return None


def _sockets() -> Finding:
    path = paths.socket_path("/any")
    long = len(os.fsencode(path)) > _SOCKET
    return Finding("sockets", not long, str(path.parent), "set XDG_RUNTIME_DIR to a shorter path" if long else "")


def _journal() -> Finding:
    """A damaged journal is put aside: the regions hold all that is needed, and it only stands in the way."""
    from console.runner.journal import Journal

    journal = Journal()
    if not journal.path.exists():
        return Finding("journal", True, "none yet")
    try:
        journal.check()
    except ConsoleError as error:
        if error.code != "E_JOURNAL_DAMAGED":
            return Finding("journal", False, str(error), error.hint)
        aside = journal.set_aside()
        fix = "console status shows how the regions stand; they hold all that is needed"
        return Finding("journal", None, f"it was damaged and lies aside as {aside}; a new one begins", fix)
    finally:
        journal.close()
    return Finding("journal", True, str(journal.path))


def _terminal() -> Finding:
    if not sys.stdout.isatty():
        return Finding("terminal", None, "stdout is none: no screen here", "console --headless works everywhere")
    columns, lines = shutil.get_terminal_size()
    name = os.environ.get("TERM", "")
    coding = locale.getpreferredencoding(False)
    detail = f"{name or 'TERM is unset'}, {columns}×{lines}, {coding}"
    if not name or name == "dumb" or columns < 80 or lines < 24 or "UTF" not in coding.upper():
        return Finding("terminal", None, detail, "the screen wants 80×24, a TERM other than dumb, and UTF-8")
    return Finding("terminal", True, detail)


def _project(flags: Flags) -> Iterator[Finding]:
    from console.cli.wiring import root_of
    from console.project import load

    try:
        root = root_of(flags)
    except ConsoleError as error:
        yield Finding("project", None, str(error), error.hint)
        return
    try:
        project = load(root)
    except Problems as error:
        for problem in error.problems:
            yield Finding("project", False, str(problem), problem.hint)
        return
    except ConsoleError as error:
        yield Finding("project", False, str(error), error.hint)
        return
    yield Finding("project", True, f"{root}: {', '.join(region.name for region in project.regions) or 'no regions'}")
    for region in project.regions:
        place = region.warehouse.removeprefix("file://")
        if "://" in place or region.transport:
            continue
        if Path(place).is_dir():
            yield _space(f"warehouse of {region.name}", Path(place))
            yield _logs(region.name, Path(place))
        else:
            yield Finding(
                f"warehouse of {region.name}", False, f"{place} is no directory", "create it, or mend warehouse:"
            )
