"""Delta's jars as `jars.lock` has them, wherever they come from; anything else is refused and leaves the existing files alone."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from console import paths
from console.setup import jars

JARS = {"a-1.jar": b"first", "b-2.jar": b"second"}
LOCK = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in JARS.items())


@pytest.fixture(autouse=True)
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of two small files; whoever would ask a registry fails."""
    file = tmp_path / "jars.lock"
    file.write_text(LOCK)
    monkeypatch.setattr(jars, "LOCK", file)
    monkeypatch.setattr(jars, "_fetch", lambda ivy: pytest.fail("a registry was asked"))
    return file


def folder(place: Path, files: dict[str, bytes]) -> Path:
    place.mkdir()
    for name, data in files.items():
        (place / name).write_bytes(data)
    return place


def test_a_folder_gives_them_by_what_they_hold_whatever_they_are_called(tmp_path: Path) -> None:
    source = folder(tmp_path / "from", {"delta.jar": b"first", "b-2.jar": b"second", "more.jar": b"third"})
    target = tmp_path / "home" / "jars"
    assert jars.install(target, source)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == JARS
    assert not jars.install(target, source), "twice"


@pytest.mark.parametrize("files", [{"a-1.jar": b"first"}, {"a-1.jar": b"first", "b-2.jar": b"spoilt"}, {}])
def test_what_is_not_what_the_lock_says_is_named_and_nothing_is_taken(files: dict[str, bytes], tmp_path: Path) -> None:
    source, target = folder(tmp_path / "from", files), tmp_path / "jars"
    with pytest.raises(jars.JarsMissing, match=r"b-2\.jar") as error:
        jars.install(target, source)
    assert "console setup --pack" in error.value.hint
    assert not target.exists()


def test_a_spoilt_jar_of_an_installation_is_replaced(tmp_path: Path) -> None:
    target = folder(tmp_path / "jars", {"a-1.jar": b"first", "b-2.jar": b"cut off"})
    assert jars.wrong(target) == ("b-2.jar",)
    assert jars.install(target, folder(tmp_path / "from", JARS))
    assert jars.wrong(target) == ()


def test_what_is_packed_is_taken_over_there_and_checked_by_sha256sum(tmp_path: Path) -> None:
    target, packed = folder(tmp_path / "jars", JARS), tmp_path / "stick"
    jars.pack(packed, target)
    assert sorted(path.name for path in packed.iterdir()) == ["a-1.jar", "b-2.jar", "jars.lock"]
    done = subprocess.run(["sha256sum", "-c", "jars.lock"], cwd=packed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert jars.install(tmp_path / "there", packed)


def test_a_registry_that_gives_other_bytes_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(ivy: Path) -> Path:
        return folder(ivy / "jars", {"a-1.jar": b"first", "b-2.jar": b"other"})

    monkeypatch.setattr(jars, "_fetch", fetched)
    with pytest.raises(jars.JarsMissing, match=r"b-2\.jar"):
        jars.install(tmp_path / "jars", None)
    assert not (tmp_path / "jars").exists()


@pytest.mark.parametrize(
    ("env", "place"),
    [
        ({"CONSOLE_JARS": "/opt/jars", "CONSOLE_HOME": "/h"}, "/opt/jars"),
        ({"CONSOLE_HOME": "/h", "XDG_DATA_HOME": "/data"}, "/h/jars"),
        ({"XDG_DATA_HOME": "/data"}, "/data/console/jars"),
        ({"HOME": "/home/a"}, "/home/a/.local/share/console/jars"),
    ],
)
def test_an_installed_console_looks_for_them_where_its_set_up_puts_them(
    env: dict[str, str], place: str, tmp_path: Path
) -> None:
    assert _jars_dir(tmp_path, env) == place


@pytest.mark.slow
def test_jars_that_lie_where_version_0_1_0_looked_are_still_found(tmp_path: Path) -> None:
    older = tmp_path / ".cache" / "console" / "jars"
    older.mkdir(parents=True)
    assert _jars_dir(tmp_path / "installed", {"HOME": str(tmp_path)}) == str(older)
    assert _jars_dir(tmp_path / "again", {"HOME": str(tmp_path), "CONSOLE_HOME": "/h"}) == "/h/jars"


def _jars_dir(place: Path, env: dict[str, str]) -> str:
    """As a copy of the package without a checkout around it finds it."""
    package = place / "console"
    package.mkdir(parents=True)
    for name in ("__init__.py", "paths.py"):
        (package / name).write_bytes((Path(paths.__file__).parent / name).read_bytes())
    code = "from console import paths; print(paths.jars_dir())"
    outside = {"PATH": os.environ["PATH"], **env}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=place, env=outside, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
