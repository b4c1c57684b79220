"""Environments of other tools, each in a folder of its own: its packages by its lock, beside the very files of this Spark and Delta.

A lock has versions and hashes alone; where packages come from is what pip is configured for. PySpark, Py4J and delta-spark are
links to this environment's own, so that both run the same Spark.
"""

import hashlib
import os
import subprocess
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from console import paths

ROOT = Path(__file__).resolve().parents[3]
SHARED = ("pyspark", "py4j", "delta")
KEPT = ("PATH", "HOME", "LANG", "JAVA_HOME", "TMPDIR")


class NotInstalled(Exception):
    """pip refused; its last words."""


@dataclass(frozen=True, slots=True)
class ToolEnvironment:
    """name: of its lock and folder;  package: the distribution whose version names the tool"""

    name: str
    package: str

    @property
    def folder(self) -> Path:
        return ROOT / ".console" / "bench" / self.name

    @property
    def python(self) -> Path:
        return self.folder / "env" / "bin" / "python"

    @property
    def lock(self) -> Path:
        return Path(__file__).parent / "locks" / f"{self.name}.lock"

    @property
    def version(self) -> str:
        """As locked."""
        return next(v for name, v in locked(self.lock.read_text()) if name == self.package)

    def prepare(self) -> None:
        """Install what is missing: takes minutes and a network the first time. raises NotInstalled"""
        here = Path(sysconfig.get_path("purelib"))
        wanted = hashlib.sha256(self.lock.read_bytes() + str(here).encode()).hexdigest()
        stamp = self.folder / "stamp"
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        venv.create(self.folder / "env", with_pip=True, clear=True)
        words = ("-q", "--disable-pip-version-check", "install", "--require-hashes", "--no-deps", "-r", str(self.lock))
        done = subprocess.run([str(self.python), "-m", "pip", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotInstalled(f"{self.package} {self.version}: {done.stderr[-2000:]}")
        (site,) = self.folder.glob("env/lib/python*/site-packages")
        for name in SHARED:
            (site / name).symlink_to(here / name)
        stamp.write_text(wanted)

    def command(self, module: str, *words: str) -> list[str]:
        """The line that runs one of our modules by its Python."""
        return [str(self.python), "-P", "-m", module, *words]


def environment(home: Path) -> dict[str, str]:
    """Variables of whatever is measured. home: of the console's own files"""
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    return env | {
        "CONSOLE_JARS": str(paths.jars_dir()), "CONSOLE_HOME": str(home), "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONDONTWRITEBYTECODE": "",
    }  # fmt: skip


def locked(text: str) -> list[tuple[str, str]]:
    """Names and versions of a lock."""
    lines = (line.split(" ")[0] for line in text.splitlines() if line and not line.startswith((" ", "#")))
    return [(name, version) for name, _, version in (line.partition("==") for line in lines)]


SQLMESH = ToolEnvironment("sqlmesh", "sqlmesh")
DBT = ToolEnvironment("dbt", "dbt-spark")
TOOLS = (SQLMESH, DBT)
