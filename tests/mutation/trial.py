"""Mutants tried: in a copy of the tree, each in a fork of a process that has read already whatever the mutants leave as it is."""

import compileall
import json
import os
import py_compile
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from functools import cache
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

import grimp
import pytest

from console import paths
from tests.mutation.mutants import ROOT, Mutant

MEMORY = (
    6 << 30
)  # bytes of address space that tests without Java may take: a loop without an end may take it without one
SPARE_SECONDS = 10.0  # that they may compute beyond three times what all of them take: more is a loop without an end
SECONDS, JAVA_SECONDS = 300.0, 900.0  # by the clock
PARTS = ("console", "tests", "docs", "plans", "regions")
IN_PROCESS = (
    "tests/faults/rules/"  # whose tests start their Spark in the process of the tests, unless they start others
)


class Outcome(Enum):
    """What the tests of a mutant say."""

    KILLED = "killed"
    ENDLESS = "endless"  # killed as well, by the clock
    SURVIVED = "survived"


class Copy:
    """A copy of the tree in which one of `files` at a time is another."""

    def __init__(self, place: Path, files: Sequence[str], tests: Sequence[str]) -> None:
        """raises  SystemExit where the tests fail on the files as they are"""
        self.place = place
        self._kills: Counter[str] = Counter()
        self._runs = 0
        self._java: Any = None
        self._reached: dict[str, str] = {}
        for part in PARTS:
            shutil.copytree(ROOT / part, place / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", place)
        compileall.compile_dir(place, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        _forget()
        sys.path.insert(0, str(place))
        sys.dont_write_bytecode = False
        before = _computed()
        self.control(tests)
        self._cpu = int(SPARE_SECONDS + 3 * (_computed() - before))
        sys.dont_write_bytecode = True  # pytest's own form of the tests is kept from here on, and nothing of a mutant
        self._read(files)

    def control(self, tests: Sequence[str]) -> None:
        """raises  SystemExit where tests fail on the files as they are: what they say of a mutant says nothing then"""
        for some in (self._quick(tests), self._slow(tests)):
            if some and self._run(some, limited=False) is not Outcome.SURVIVED:
                raise SystemExit("the tests fail in the copy, on the files as they are")

    def judged(self, mutant: Mutant, tests: Sequence[str]) -> Outcome:
        """Those tests first that killed most; those that start Spark last, and only where no other notices."""
        target = self.place / mutant.file
        whole = target.read_text()
        quick = self._quick(tests)
        best = [test for test in quick if quick and test.partition("::")[0] == quick[0].partition("::")[0]]
        try:
            target.write_text(mutant.text)
            for some in (best, [test for test in quick if test not in best], self._slow(tests)):
                if some and (outcome := self._run(some)) is not Outcome.SURVIVED:
                    return outcome
            return Outcome.SURVIVED
        finally:
            target.write_text(whole)

    @property
    def shared(self) -> bool:
        """Whether mutants were tried in one JVM after the other, where one may leave something behind."""
        return self._java is not None

    def close(self) -> None:
        self._end_java()
        sys.path.remove(str(self.place))
        _forget()

    def _quick(self, tests: Sequence[str]) -> list[str]:
        return sorted((test for test in tests if not _needs_java(test)), key=lambda test: -self._kills[test])

    def _slow(self, tests: Sequence[str]) -> list[str]:
        return sorted((test for test in tests if _needs_java(test)), key=lambda test: -self._kills[test])

    def _read(self, files: Sequence[str]) -> None:
        """Import what no mutant of these files can be seen in."""
        graph = grimp.build_graph("console", cache_dir=None)
        seen = set[str]()
        for file in files:
            module = ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")
            seen |= {module, *graph.find_downstream_modules(module)}
        for name in sorted(set((self.place / "modules").read_text().split())):
            room = name.partition(".")[0]
            above = {name[:at] for at, letter in enumerate(name) if letter == "."}  # which an import reads first
            if room not in ("tests", "conftest", "__main__") and not seen & {name, *above}:
                with suppress(ImportError):
                    import_module(name)
        if read := seen & set(sys.modules):
            raise AssertionError(f"read before any mutant: {sorted(read)}")

    def _run(self, tests: Sequence[str], limited: bool = True) -> Outcome:
        self._runs += 1
        java = _needs_java(tests[0])
        warm = java and all(_in_process(test) for test in tests)
        env = self._gateway() if warm else {}
        base = (
            self.place / f"run{self._runs}"
        )  # never the same twice: a JVM that lives on remembers tables by their paths
        child = os.fork()
        if not child:
            code = 2
            try:
                os.setsid()
                os.chdir(self.place)
                if limited and not java:
                    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                    resource.setrlimit(resource.RLIMIT_CPU, (self._cpu, self._cpu))
                quiet = os.open(os.devnull, os.O_RDWR)
                for number in (0, 1, 2):
                    os.dup2(quiet, number)
                os.environ |= {"PYTHONPATH": str(self.place), "CONSOLE_JARS": str(paths.jars_dir()), **env}
                words = ["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
                code = int(pytest.main([*words, f"--basetemp={base}", *tests], plugins=[Telling(self.place)]))
            finally:
                os._exit(code)
        outcome = self._waited(child, (JAVA_SECONDS if java else SECONDS) if limited else inf)
        shutil.rmtree(base, ignore_errors=True)
        if outcome is Outcome.KILLED and (failed := self.place / "failed").exists():
            self._kills[failed.read_text()] += 1
            failed.unlink()
        if warm and outcome is Outcome.ENDLESS:
            self._end_java()
        return outcome

    def _waited(self, child: int, seconds: float) -> Outcome:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                endless = code in (-signal.SIGXCPU, -signal.SIGKILL)
                return Outcome.SURVIVED if code == 0 else Outcome.ENDLESS if endless else Outcome.KILLED
            time.sleep(0.01)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return Outcome.ENDLESS

    def _gateway(self) -> dict[str, str]:
        """What reaches a JVM that outlives the forks, each of which starts and stops a context of its own in it."""
        if self._java is None:
            command = [sys.executable, "-m", "tests.mutation.jvm"]
            self._java = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._reached = json.loads(self._java.stdout.readline())
        return self._reached

    def _end_java(self) -> None:
        if self._java is not None:
            self._java.communicate()
            self._java = None


class Telling:
    """What a run of tests leaves for the process that began it: the modules that it read, and the test that failed."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            (self._place / "failed").write_text(report.nodeid.partition("[")[0])

    def pytest_sessionfinish(self) -> None:
        if not sys.dont_write_bytecode:
            with (self._place / "modules").open("a") as out:
                out.writelines(f"{name}\n" for name in sys.modules)


def _computed() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("console", "tests")]:
        del sys.modules[name]


@cache
def _text(test: str) -> str:
    return (ROOT / test.partition("::")[0]).read_text()


def _needs_java(test: str) -> bool:
    return "mark.spark" in _text(test)


def _in_process(test: str) -> bool:
    return test.startswith(IN_PROCESS) and not any(word in _text(test) for word in ("subprocess", "Popen", "Region("))
