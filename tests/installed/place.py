"""The wheel, built from a copy of the sources and installed into an environment that holds only what it asks for.

No network: the distributions that its metadata names, and those that these name, are linked from the tests' own environment.
"""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SOURCES = ("console", "regions", "plans", "pyproject.toml", "README.md", "LICENSE", "NOTICE")
# without any network but the process's own loopback
OFFLINE = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
KEPT = ("PATH", "HOME", "LANG", "JAVA_HOME", "TMPDIR")


def build(folder: Path) -> Path:
    """The wheel, made as `pip wheel .` makes it."""
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        if (path := ROOT / name).is_dir():
            shutil.copytree(path, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "saved"))
        else:
            shutil.copy(path, source / name)
    words = ("wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder), str(source))
    _pip(*words)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Place:
    """An environment, and an empty folder in which a person works. offline: commands there reach no network"""

    environment: Path
    folder: Path
    offline: bool = False

    @classmethod
    def of(cls, wheel: Path, home: Path, *extras: str) -> "Place":
        """The wheel installed, and linked beside it what it asks for with these extras."""
        place = cls(home / "env", home / "work")
        place.folder.mkdir(parents=True)
        venv.create(place.environment, with_pip=False, symlinks=True)
        _pip("--python", str(place.python), "install", "-q", "--no-deps", "--no-index", str(wheel))
        (site,) = place.environment.glob("lib/python*/site-packages")
        (own,) = site.glob("pipeline_console-*.dist-info")
        for needed in _closure(PathDistribution(own), extras):
            for entry in {file.parts[0] for file in needed.files or ()} - {"..", "__pycache__"}:
                if not (site / entry).exists():
                    (site / entry).symlink_to(needed.locate_file(entry))
        return place

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"

    def run(self, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """`console WORDS` as a person calls it there."""
        env = {name: os.environ[name] for name in KEPT if name in os.environ}
        env |= {"CONSOLE_HOME": str(self.folder.parent / "home"), **more}
        command = [*(OFFLINE if self.offline else ()), str(self.environment / "bin" / "console"), *words]
        return subprocess.run(
            command, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=240,
        )  # fmt: skip


def texts(wheel: Path) -> Iterator[tuple[str, str]]:
    """Names and contents of the modules in the wheel."""
    with zipfile.ZipFile(wheel) as file:
        for name in file.namelist():
            if name.endswith(".py"):
                yield name, file.read(name).decode()


def _pip(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _closure(first: Distribution, extras: tuple[str, ...]) -> list[Distribution]:
    """All distributions that one asks for, directly or not."""
    results: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(first, extra) for extra in ("", *extras)]
    while waiting:
        asking, extra = waiting.pop()
        for text in asking.requires or ():
            wanted = Requirement(text)
            if wanted.marker and not wanted.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(wanted.name)
            results[name] = distribution(name)
            assert wanted.specifier.contains(results[name].version, prereleases=True), text
            fresh = {(name, more) for more in ("", *wanted.extras)} - seen
            seen |= fresh
            waiting += [(results[name], more) for _, more in fresh]
    return list(results.values())
