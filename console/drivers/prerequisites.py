"""Prerequisites for running an agent: checked on this machine for `console doctor`, and on the host of an SSH region."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from console import paths, spark_versions
from console.errors import installing
from console.model.spark_master import SparkMaster

_ENOUGH = 2 * 1024**3
_LITTLE = 200 * 1024**2
_SOCKET = 107  # maximum bytes of a unix socket's path
_ANSWER_SECONDS = 2.0
_LIBRARIES = ("pyspark", "deltalake")


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """Result of one check. ok: None for a warning. fix: the command to type."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""


def needed() -> tuple[Prerequisite, ...]:
    """Python, its libraries, Java, Delta's jars, the set of their versions, and a place for sockets."""
    return python(), libraries(), java(), jars(), versions(), sockets()


def python() -> Prerequisite:
    version = ".".join(map(str, sys.version_info[:3]))
    return Prerequisite(
        "python", sys.version_info >= (3, 11), version, "" if sys.version_info >= (3, 11) else "use 3.11 or later"
    )


def libraries() -> Prerequisite:
    """The agent's libraries, by their declared versions: nothing is imported."""
    names, lacking = [], []
    for name in _LIBRARIES:
        try:
            names.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lacking.append(name)
    if lacking:
        detail = f"{sys.executable} has no {' and no '.join(lacking)}"
        return Prerequisite("libraries", False, detail, installing("agent"))
    return Prerequisite("libraries", True, ", ".join(names))


def java() -> Prerequisite:
    """The `java` that Spark would start: from JAVA_HOME, else from PATH; it must be 17 or 21."""
    fix = "apt-get install openjdk-17-jre-headless, or set JAVA_HOME"
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not program:
        return Prerequisite("java", False, "none on PATH and no JAVA_HOME", fix)
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Prerequisite("java", False, f"{program}: {error}", fix)
    version = re.search(r'version "(\d+)[^"]*"', done.stderr + done.stdout)
    if not version:
        return Prerequisite("java", False, f"{program}: prints no version", fix)
    good = version[1] in ("17", "21")
    return Prerequisite("java", good, f"{version[0].removeprefix('version ')} {program}", "" if good else fix)


def jars() -> Prerequisite:
    folder = paths.jars_dir()
    names = sorted(path.name for path in folder.glob("*.jar")) if folder.is_dir() else []
    delta = [name for name in names if name.startswith(("delta-spark", "io.delta_delta-spark"))]
    if not delta:
        fix = "console setup; or name the folder that holds them in CONSOLE_JARS"
        return Prerequisite("jars", False, f"{folder}: Delta's jars are not there", fix)
    return Prerequisite("jars", True, f"{delta[0]} and {len(names) - 1} more in {folder}")


def versions() -> Prerequisite:
    """The versions that work together here, and whether that very set was tested."""
    here, tested = spark_versions.installed(paths.jars_dir()), spark_versions.tested()
    if here in tested:
        return Prerequisite("versions", True, f"{here}: tested by {tested[here]}")
    sets = "; ".join(map(str, tested))
    return Prerequisite("versions", None, f"{here}: this set was not tested", f"tested: {sets}")


def sockets() -> Prerequisite:
    try:
        path = paths.socket_path("/any")
    except OSError as error:
        return Prerequisite("sockets", False, str(error), "set XDG_RUNTIME_DIR to a directory of your own")
    long = len(os.fsencode(path)) > _SOCKET
    return Prerequisite("sockets", not long, str(path.parent), "set XDG_RUNTIME_DIR to a shorter path" if long else "")


def warehouse(path: Path) -> Iterator[Prerequisite]:
    """Checks of a region's directory: it exists, is writable, has free space, and its logs are complete."""
    if not path.is_dir():
        yield Prerequisite("warehouse", False, f"{path} is not a directory", "create it, or correct warehouse:")
        return
    if not os.access(path, os.W_OK | os.X_OK):
        yield Prerequisite(
            "warehouse", False, f"{path} cannot be written by this user", f"let the agent's user write {path}"
        )
        return
    try:
        yield space("warehouse", path)
        yield logs(path)
    except OSError as error:
        yield Prerequisite("warehouse", False, f"{error.filename or path}: {error.strerror}", "look at that disk")


def bucket(*, jars: bool = True) -> Iterator[Prerequisite]:
    """What an agent of a region in a bucket needs besides; whether the bucket answers, its survey shows.

    jars  whether a Spark of its own reaches the bucket
    """
    try:
        yield Prerequisite("bucket", True, f"obstore {metadata.version('obstore')}")
    except metadata.PackageNotFoundError:
        yield Prerequisite("bucket", False, f"{sys.executable} has no obstore", installing("s3"))
    if not jars:
        return
    folder = paths.jars_dir() / "s3"
    count = len(list(folder.glob("*.jar")))
    yield Prerequisite(
        "bucket jars", bool(count), f"{count} jars in {folder}", "" if count else "console setup --with s3"
    )


def cluster(master: SparkMaster, defaults: str) -> Iterator[Prerequisite]:
    """What an agent on this machine needs to reach its region's cluster. Nothing is started there."""
    if defaults:
        there = Path(defaults).is_file()
        fix = "" if there else "correct spark.defaults in the region's file"
        yield Prerequisite("spark defaults", there, defaults if there else f"{defaults} is not a file", fix)
    if master.kind == "standalone":
        yield from map(_answers, master.text.removeprefix("spark://").split(","))
    elif master.kind == "yarn":
        folder = os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR", "")
        there = bool(folder) and Path(folder).is_dir()
        detail = folder if there else f"HADOOP_CONF_DIR is {folder or 'not set'}: Spark does not find YARN by it"
        yield Prerequisite("yarn", there, detail, "" if there else "set it where the agent is started")


def _answers(place: str) -> Prerequisite:
    """Whether something listens at HOST:PORT; one of several masters is enough, so a silent one is a warning."""
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        return Prerequisite("spark master", None, f"{place}: {error}", "start it, or correct spark.master")
    return Prerequisite("spark master", True, f"{place} answers")


def space(name: str, folder: Path) -> Prerequisite:
    free = shutil.disk_usage(folder).free
    ok = True if free > _ENOUGH else None if free > _LITTLE else False
    return Prerequisite(name, ok, f"{free / 1024**3:,.1f} GiB free at {folder}", "" if ok else "make room there")


def logs(path: Path) -> Prerequisite:
    """Commits that a power loss left empty or truncated: readers silently skip empty ones."""
    tables = 0
    for table in ("*", "*/*", "_console/*/*"):
        for log in sorted(path.glob(f"{table}/_delta_log")):
            tables += 1
            if bad := _damaged(log):
                where = f"{log.parent.relative_to(path)}: version {int(bad.stem)} is {'cut short' if bad.stat().st_size else 'empty'}"
                return Prerequisite(
                    "logs", False, where, f"restore {bad} from a copy, or the table to the version before it"
                )
    return Prerequisite("logs", True, f"{tables} tables")


def _damaged(log: Path) -> Path | None:
    """The first commit since the last checkpoint that is empty or truncated."""
    last = max((file.name[:20] for file in log.glob("*.checkpoint*")), default="")
    for file in sorted(log.glob("*.json")):
        if file.stem.isdigit() and file.stem > last and not file.read_bytes().rstrip().endswith(b"}"):
            return file
    return None
