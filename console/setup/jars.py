"""Delta's jars, and those of extras: fetched through Spark's own Ivy or taken from a folder, and accepted only with the hashes
in `jars.lock` or the extra's own lock.
"""

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
_RESOLVE = """
from pyspark.sql import SparkSession
import sys
ivy, packages, excludes = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.jars.packages", packages).config("spark.jars.excludes", excludes)
builder.config("spark.jars.ivy", ivy).getOrCreate().stop()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Jars that only some regions need, in a folder of that name beside Delta's.

    packages, excludes  Maven coordinates; what Spark itself has is excluded
    """

    name: str
    packages: tuple[str, ...]
    excludes: tuple[str, ...]

    @property
    def lock(self) -> Path:
        return LOCK.with_name(f"jars-{self.name}.lock")


# Hadoop's connector, of the Hadoop in PySpark's jars, wants the AWS SDK's bundle of all services: these modules are what it uses.
_SDK = "2.35.4"
S3 = Extra(
    name="s3",
    packages=(
        "org.apache.hadoop:hadoop-aws:3.5.0",
        *(f"software.amazon.awssdk:{module}:{_SDK}" for module in ("s3", "s3-transfer-manager", "sts")),
    ),
    excludes=(
        "software.amazon.awssdk:bundle", "software.amazon.awssdk:aws-crt-client", "software.amazon.awssdk.crt:*", "org.wildfly.openssl:*", "io.netty:*",
        "org.slf4j:*", "commons-codec:*", "commons-logging:*", "org.apache.httpcomponents:*",
    ),
)  # fmt: skip
EXTRAS = {extra.name: extra for extra in (S3,)}


@dataclass(eq=False)
class JarsMissing(ConsoleError):
    """Jars that the set-up could not get, or whose hashes differ from the lock."""

    code: str = "E_JARS"


def locked(extra: Extra | None = None) -> dict[str, str]:
    """Name → SHA-256 of each jar, of Delta's or of an extra's."""
    lines = (line.split() for line in (extra.lock if extra else LOCK).read_text().splitlines() if line)
    return {name: digest for digest, name in lines}


def wrong(folder: Path, extra: Extra | None = None) -> tuple[str, ...]:
    """Names of jars that are missing there, or whose hashes differ from the lock. folder: Delta's, for an extra too"""
    own = folder / extra.name if extra else folder
    return tuple(name for name, digest in locked(extra).items() if _digest(own / name) != digest)


def install(target: Path, source: Path | None, extra: Extra | None = None) -> bool:
    """Install the jars into `target`, those of an extra into a folder in it; without effect if they are all there.

    source   a folder with them, under any names; None: from a registry, which needs a network and Java
    returns  False if they were all there
    raises   JarsMissing, without having changed anything
    """
    if not wrong(target, extra):
        return False
    own = target / extra.name if extra else target
    if source is not None:
        _copy(_matching(_jars_in(source, extra), str(source), extra), own)
        return True
    with tempfile.TemporaryDirectory(prefix="console-ivy-") as ivy:
        fetched = _fetch(Path(ivy), extra) if extra else _fetch(Path(ivy))
        _copy(_matching(fetched.glob("*.jar"), "the registry's jars", extra), own)
    return True


def pack(folder: Path, stored: Path, extra: Extra | None = None) -> None:
    """Fill a folder for `install` on a machine without a network; `sha256sum -c jars.lock` checks it there.

    stored  folder of this machine's jars; a registry is used only if some are missing there
    raises  JarsMissing
    """
    install(folder, None if wrong(stored, extra) else stored, extra)
    lock = extra.lock if extra else LOCK
    shutil.copyfile(lock, (folder / extra.name if extra else folder) / lock.name)


def _jars_in(source: Path, extra: Extra | None) -> Iterable[Path]:
    return (*source.glob("*.jar"), *(source / extra.name).glob("*.jar")) if extra else source.glob("*.jar")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _matching(files: Iterable[Path], place: str, extra: Extra | None) -> dict[str, Path]:
    """Each jar of the lock, and the file that holds it."""
    by_digest = {_digest(path): path for path in files}
    wanted = locked(extra)
    present = {name: by_digest[digest] for name, digest in wanted.items() if digest in by_digest}
    if lacking := [name for name in wanted if name not in present]:
        asked = f"--with {extra.name} --pack DIR" if extra else "--pack DIR"
        hint = (
            f"console setup {asked}, on a machine with a network and the same version of console, fills such a folder"
        )
        lock = (extra.lock if extra else LOCK).name
        raise JarsMissing(f"{place}: missing, or different from {lock}: {', '.join(lacking)}", hint=hint)
    return present


def _copy(files: dict[str, Path], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, path in files.items():
        part = target / f"{name}.{os.getpid()}.part"
        shutil.copyfile(path, part)
        part.replace(target / name)


def _fetch(ivy: Path, extra: Extra | None = None) -> Path:
    """Resolve Delta, or an extra, through Spark's own Ivy; returns the folder with the jars that Spark itself lacks."""
    log = paths.log_dir() / "setup.log"
    packages, excludes = (",".join(extra.packages), ",".join(extra.excludes)) if extra else (PACKAGE, "")
    with log.open("wb") as out:
        command = [sys.executable, "-P", "-c", _RESOLVE, str(ivy), packages, excludes]
        code = subprocess.run(
            command, cwd=ivy, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        ).returncode
    if code:
        hint = f"its log: {log}; without a network: console setup --from DIR"
        raise JarsMissing(f"{packages} could not be fetched: exit code {code}", hint=hint)
    return ivy / "jars"
