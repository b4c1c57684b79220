"""Delta's jars: fetched through Spark's own Ivy or taken from a folder, and accepted only with the hashes in `jars.lock`."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from console import paths
from console.errors import ConsoleError

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
LOCK = Path(__file__).with_name("jars.lock")  # lines of sha256sum: digest and name
_RESOLVE = f"""
from pyspark.sql import SparkSession
import sys
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
builder.config("spark.jars.packages", "{PACKAGE}").config("spark.jars.ivy", sys.argv[1]).getOrCreate().stop()
"""


@dataclass(eq=False)
class JarsMissing(ConsoleError):
    """Jars that the set-up could not get, or whose hashes differ from the lock."""

    code: str = "E_JARS"


def locked() -> dict[str, str]:
    """Name → SHA-256 of each jar."""
    lines = (line.split() for line in LOCK.read_text().splitlines() if line)
    return {name: digest for digest, name in lines}


def wrong(folder: Path) -> tuple[str, ...]:
    """Names of jars that are missing there, or whose hashes differ from the lock."""
    return tuple(name for name, digest in locked().items() if _digest(folder / name) != digest)


def install(target: Path, source: Path | None) -> bool:
    """Install the jars into `target`; without effect if they are all there.

    source   a folder with them, under any names; None: from a registry, which needs a network and Java
    returns  False if they were all there
    raises   JarsMissing, without having changed anything
    """
    if not wrong(target):
        return False
    if source is not None:
        _copy(_matching(source.glob("*.jar"), str(source)), target)
        return True
    with tempfile.TemporaryDirectory(prefix="console-ivy-") as ivy:
        fetched = _fetch(Path(ivy))
        _copy(_matching(fetched.glob("*.jar"), "the registry's jars"), target)
    return True


def pack(folder: Path, stored: Path) -> None:
    """Fill a folder for `install` on a machine without a network; `sha256sum -c jars.lock` checks it there.

    stored  folder of this machine's jars; a registry is used only if some are missing there
    raises  JarsMissing
    """
    install(folder, None if wrong(stored) else stored)
    shutil.copyfile(LOCK, folder / LOCK.name)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _matching(files: Iterable[Path], place: str) -> dict[str, Path]:
    """Each jar of the lock, and the file that holds it."""
    by_digest = {_digest(path): path for path in files}
    present = {name: by_digest[digest] for name, digest in locked().items() if digest in by_digest}
    if lacking := [name for name in locked() if name not in present]:
        hint = (
            "console setup --pack DIR, on a machine with a network and the same version of console, fills such a folder"
        )
        raise JarsMissing(f"{place}: missing, or different from jars.lock: {', '.join(lacking)}", hint=hint)
    return present


def _copy(files: dict[str, Path], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, path in files.items():
        part = target / f"{name}.{os.getpid()}.part"
        shutil.copyfile(path, part)
        part.replace(target / name)


def _fetch(ivy: Path) -> Path:
    """Resolve Delta through Spark's own Ivy; returns the folder with the jars that Spark itself lacks."""
    log = paths.log_dir() / "setup.log"
    with log.open("wb") as out:
        command = [sys.executable, "-P", "-c", _RESOLVE, str(ivy)]
        code = subprocess.run(
            command, cwd=ivy, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        ).returncode
    if code:
        hint = f"its log: {log}; without a network: console setup --from DIR"
        raise JarsMissing(f"{PACKAGE} could not be fetched: exit code {code}", hint=hint)
    return ivy / "jars"
