"""The record of measurements, docs/benchmarks.jsonl: each figure with commit, time, load and machine of its own run.

A line is a machine, a part that ran to its end, or a row. A row takes the place of the one that measured the same.
"""

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import Any

from console import paths, spark_versions
from tests.bench.parts import ROOT

RECORD, PAGE = ROOT / "docs" / "benchmarks.jsonl", ROOT / "docs" / "benchmarks.md"
# written by a run, so that they make no other tree of it
WRITTEN = (
    "docs/benchmarks.jsonl", "docs/benchmarks.md", "console/planning/review/parsing_gain.py", "docs/scale-costs.json", "docs/scale-hour.json",
    "docs/scale.md",
)  # fmt: skip
TIME = "%Y-%m-%d %H:%MZ"
CHANGED = "+"  # behind the commit of a tree that differs from it


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure.

    part     that it was measured in
    what     was measured, with its size; one row each
    text     the figure with its unit, and what it was compared with
    figure   None for one of before figures were kept
    limit    that the figure must not exceed, or must reach if `at_least`; None for a figure without a goal
    met      None without a goal
    commit   short hash, with `CHANGED` if the tree differed; "" if unknown
    machine  name of a `Machine`; "" if unknown
    at       as of `TIME`
    load     of the machine's last minute
    """

    part: str
    what: str
    text: str
    figure: float | None
    limit: float | None
    at_least: bool
    met: bool | None
    commit: str
    machine: str
    at: str
    load: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A part that ran to its end, without a wrong result."""

    part: str
    commit: str
    machine: str
    at: str
    minutes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine and what ran on it. memory: GiB"""

    name: str
    cores: int
    memory: float
    cpu: str
    java: str
    python: str
    spark: str
    delta: str


@dataclass(slots=True)
class Record:
    """All rows by what they measured, parts by name, machines in their order."""

    rows: dict[str, Row] = field(default_factory=dict)
    ended: dict[str, Ended] = field(default_factory=dict)
    machines: list[Machine] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Record":
        """An empty one where there is no file."""
        record = cls()
        for line in path.read_text().splitlines() if path.exists() else ():
            match json.loads(line):
                case {"machine": entries}:
                    record.machines.append(Machine(**entries))
                case {"ended": entries}:
                    record.ended[entries["part"]] = Ended(**entries)
                case {"row": entries}:
                    record.rows[entries["what"]] = Row(**entries)
                case _:
                    raise ValueError(f"{path}: neither a machine, a part nor a row: {line}")
        return record

    def write(self, path: Path) -> None:
        """In a fixed order, a line each, so that two runs change the lines of their own figures."""
        part = path.with_suffix(".part")
        part.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self._lines()))
        part.replace(path)

    def _lines(self) -> Iterator[dict[str, Any]]:
        yield from ({"machine": asdict(machine)} for machine in self.machines)
        yield from ({"ended": asdict(self.ended[part])} for part in sorted(self.ended))
        yield from ({"row": asdict(row)} for row in sorted(self.rows.values(), key=lambda row: (row.part, row.what)))

    def on(self, machine: Machine) -> str:
        """The name of that machine, which is known from now on."""
        known = next((each for each in self.machines if replace(each, name="") == machine), None)
        if known is None:
            known = replace(machine, name=chr(ord("A") + len(self.machines)))
            self.machines.append(known)
        return known.name

    def forget_unmeasured(self, part: str, measured: frozenset[str]) -> None:
        """Drop the rows of a part that its last run, which came to its end, did not measure any more."""
        self.rows = {what: row for what, row in self.rows.items() if row.part != part or what in measured}


def now() -> str:
    return f"{datetime.now(UTC):{TIME}}"


def commit() -> str:
    """The last commit that changed more than what a run writes, with `CHANGED` if the tree differs from it; "" without git."""
    if which("git") is None or not (ROOT / ".git").exists():
        return ""
    beside = ["--", ".", *(f":(exclude){name}" for name in WRITTEN)]
    changed = _git("status", "--porcelain", *beside)
    return _git("log", "-1", "--format=%h", *beside) + (CHANGED if changed else "")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def this_machine() -> Machine:
    """Without a name, which `Record.on` gives."""
    versions = spark_versions.installed(paths.jars_dir())
    return Machine(
        name="",
        cores=os.cpu_count() or 0,
        memory=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        cpu=_cpu(),
        java=_java(),
        python=platform.python_version(),
        spark=versions.spark,
        delta=versions.delta,
    )


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _java() -> str:
    """From the release file of the Java that Spark starts; "" if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = Path(home, "bin", "java") if home else Path(which("java") or "/")
    release = program.resolve().parents[1] / "release" if program.is_file() else None
    lines = release.read_text().splitlines() if release and release.is_file() else ()
    return next((line.partition("=")[2].strip('"') for line in lines if line.startswith("JAVA_VERSION=")), "")
