"""`console setup` of an installed console; no registry is contacted."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from console import paths
from console.setup import jars

JAVA = "#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n"


def call(home: Path, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    outside = {**os.environ, "CONSOLE_HOME": str(home), "CONSOLE_JARS": str(home / "jars"), **env}
    command = [sys.executable, "-P", "-m", "console.main", "setup", *words]
    return subprocess.run(command, env=outside, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def java(tmp_path: Path) -> str:
    """A home of Java 17 whose program says so and does nothing else."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(JAVA)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(tmp_path / "java")


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A folder that the jars of this checkout fill."""
    folder = tmp_path / "packed"
    done = call(tmp_path / "packer", "--pack", str(folder), CONSOLE_JARS=str(paths.jars_dir()))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.spark
def test_what_one_machine_packs_another_takes_without_a_network(tmp_path: Path, packed: Path, java: str) -> None:
    home = tmp_path / "home"
    done = call(home, "--from", str(packed), "--no-archive", "--output", "json", JAVA_HOME=java)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "format_version": 1, "folder": str(home / "jars"), "jars": list(jars.locked()), "archive": False,
    }  # fmt: skip
    assert jars.wrong(home / "jars") == ()
    again = call(home, "--no-archive", JAVA_HOME=java)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == f"{home / 'jars'}: 8 jars, as listed in jars.lock\n"


@pytest.mark.slow
def test_without_java_it_says_which_one_and_touches_nothing(tmp_path: Path) -> None:
    done = call(tmp_path / "home", JAVA_HOME=str(tmp_path / "none"))
    assert done.returncode == 1
    error, hint = done.stderr.splitlines()
    assert error.startswith("error: java: ")
    assert "JAVA_HOME" in hint
    assert not (tmp_path / "home" / "jars").exists()


@pytest.mark.slow
def test_a_folder_without_the_jars_is_refused_by_their_names(tmp_path: Path, java: str) -> None:
    (tmp_path / "empty").mkdir()
    done = call(tmp_path / "home", "--from", str(tmp_path / "empty"), JAVA_HOME=java)
    assert done.returncode == 1
    assert "io.delta_delta-spark_4.2_2.13-4.4.0.jar" in done.stderr
    assert "hint: console setup --pack DIR" in done.stderr


def test_two_ways_at_once_are_a_usage_error(tmp_path: Path) -> None:
    done = call(tmp_path / "home", "--from", str(tmp_path), "--pack", str(tmp_path))
    assert done.returncode == 64
    assert done.stderr.startswith("error: --from and --pack exclude each other")
