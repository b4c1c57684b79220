"""Environments of older sets of Spark and Delta, each in a folder of its own: Python packages by the locks, jars by Spark's Ivy."""

import hashlib
import os
import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
OWN = ("pyspark", "py4j", "delta-spark")  # of each set its own, in `locks/<name>.lock`
FETCH = """
import sys
from pyspark.sql import SparkSession
ivy, package = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
builder.config("spark.jars.packages", package).config("spark.jars.ivy", ivy).getOrCreate().stop()
"""
KEPT = ("PATH", "HOME", "LANG", "JAVA_HOME", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Environment:
    """A set of versions. package: Maven coordinates of Delta for that Spark"""

    name: str
    package: str

    @property
    def folder(self) -> Path:
        return ROOT / ".console" / "matrix" / self.name

    @property
    def python(self) -> Path:
        return self.folder / "env" / "bin" / "python"

    @property
    def jars(self) -> Path:
        return self.folder / "jars"

    @property
    def lock(self) -> Path:
        return HERE / "locks" / f"{self.name}.lock"

    def prepare(self) -> None:
        """Install what is missing: takes minutes and a network the first time."""
        wanted = hashlib.sha256(self.lock.read_bytes() + (ROOT / "requirements.lock").read_bytes()).hexdigest()
        stamp = self.folder / "stamp"
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        venv.create(self.folder / "env", with_pip=True, clear=True)
        rest = self.folder / "rest.lock"
        rest.write_text(_without(OWN))
        self._pip("--require-hashes", "--no-deps", "-r", str(rest))
        # pyspark comes as source: built with the setuptools that the lock has
        self._pip("--require-hashes", "--no-deps", "--no-build-isolation", "-r", str(self.lock))
        (site,) = self.folder.glob("env/lib/python*/site-packages")
        (site / "console.pth").write_text(f"{ROOT}\n")
        self._fetch_jars()
        stamp.write_text(wanted)

    def run(self, *words: str, timeout: float = 600) -> "subprocess.CompletedProcess[str]":
        """Python with these words in this environment, in the repository's root."""
        env = {name: os.environ[name] for name in KEPT if name in os.environ}
        env |= {"CONSOLE_JARS": str(self.jars), "CONSOLE_HOME": str(self.folder / "home"), "PYTHONPATH": str(ROOT)}
        command = [str(self.python), "-P", *words]
        return subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=timeout,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def _pip(self, *words: str) -> None:
        command = [str(self.python), "-m", "pip", "-q", "--disable-pip-version-check", "install", *words]
        subprocess.run(command, check=True)

    def _fetch_jars(self) -> None:
        ivy = self.folder / "ivy"
        done = self.run("-c", FETCH, str(ivy), self.package)
        if done.returncode:
            sys.exit(f"{self.package}: {done.stderr[-2000:]}")
        self.jars.mkdir(exist_ok=True)
        for jar in (ivy / "jars").glob("*.jar"):
            (self.jars / jar.name).write_bytes(jar.read_bytes())


def _without(names: tuple[str, ...]) -> str:
    """The repository's lock without these requirements."""
    text = (ROOT / "requirements.lock").read_text()
    for name in names:
        text = re.sub(rf"^{re.escape(name)}==.*?(?=^\S|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    return text


OLDER = (
    Environment("3.5", "io.delta:delta-spark_2.12:3.3.2"),
    Environment("4.0", "io.delta:delta-spark_2.13:4.0.0"),
)
