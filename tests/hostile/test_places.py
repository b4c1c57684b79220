"""S9, S14, S15: files stay where they belong and with whom they belong; a region's agent answers its own user alone."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from console import paths
from console.agent.store.housekeeping import drop_version
from console.drivers.local import LocalDriver
from console.errors import ConsoleError, Problems, RegionError
from console.model.region import Region, Spark
from console.project import load
from tests.cli.conftest import FILES, World
from tests.hostile.mutate import spoilt_json

pytestmark = pytest.mark.slow

# below the test's own folder, all of them: where the code under test is wrong it deletes what it is given
TRAVERSALS = (
    "../outside/x", "a/../../outside/x", "{outside}/x", "{outside}", "../outside", "", ".", "..", "_console", "_console/web/releases",
    "landing", "landing/data/x", "a/b/../..", "~root/x", "file://{outside}/x", "s3://other/x", "C:\\x\\y", "a/b\x00c", "link/x", "a/../_console",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_s09_a_place_in_the_inventory_stays_inside_its_bounds(world: World) -> None:
    (world.root / "out").symlink_to(world.root.parent)
    for place in (
        "../../etc",
        "~root",
        "file:///../etc",
        "file://host/etc",
        "C:\\lake",
        "out/x",
        "/",
        "a/../../b",
        "x\\y",
    ):
        world.write({"regions/eu.yaml": f"warehouse: '{place}'\n"})
        with pytest.raises(Problems, match=r"regions/eu\.yaml:1:\d+: warehouse"):
            load(world.root)
    world.write({"regions/eu.yaml": FILES["regions/eu.yaml"]})
    for place in ("../x", "/etc/x", "a/../../x", "a\\b", "c:/x", "s3://other/x", "file:///x", "_console/x"):
        world.write({"plans/web/sinks/dump.sql": f"/*\npath: '{place}'\n*/\nSELECT id FROM requests\n"})
        with pytest.raises(Problems, match=r"plans/web/sinks/dump\.sql:2:"):
            load(world.root)


def test_s09_dropping_never_leaves_the_warehouse_and_never_takes_what_is_not_ours(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "within"  # so that `..` too stays in the test's own folder
    lake, outside = home / "lake", home / "outside"
    for folder in (lake / "landing" / "data", lake / "_console" / "web" / "releases", lake / "t" / "v1", outside / "x"):
        folder.mkdir(parents=True)
        (folder / "part.parquet").write_text("rows")
    (lake / "link").symlink_to(outside)
    everything = {path for path in tmp_path.rglob("*")}
    dropped = []

    def attack() -> None:
        for name in TRAVERSALS:
            with suppress(RegionError, ValueError):
                dropped.append(drop_version(lake, name.format(outside=outside)))

    attack()
    with pytest.raises(RegionError, match="not a version of ours"):
        drop_version(lake, "t/v1")  # without our marker
    assert {path for path in tmp_path.rglob("*")} == everything
    (lake / "_console" / "marker.json").write_text("{}")
    attack()
    assert not any(dropped)
    assert {path for path in tmp_path.rglob("*")} == everything | {lake / "_console" / "marker.json"}
    assert drop_version(lake, "t/v1")
    assert everything - {path for path in tmp_path.rglob("*")} == {
        lake / "t" / "v1",
        lake / "t" / "v1" / "part.parquet",
    }


def test_s14_a_project_that_others_may_write_is_not_read(world: World) -> None:
    for name in ("regions/eu.yaml", "plans/web/pipeline.yaml", "plans/web/materializations/parse.sql"):
        path = world.root / name
        path.chmod(0o666)
        with pytest.raises(Problems, match=rf"{name}:1:1: everyone on this machine may write it \[P004\]"):
            load(world.root)
        path.chmod(0o664)
        load(world.root)


def test_s14_a_folder_that_others_may_write_is_as_good_as_its_files_and_named_once(world: World) -> None:
    def problems_of() -> list[str]:
        with pytest.raises(Problems) as error:
            load(world.root)
        return [str(problem) for problem in error.value.problems if problem.code == "P004"]

    load(world.root)
    for name in (".", "regions", "plans", "plans/web", "plans/web/tables", "plans/web/materializations"):
        folder = world.root / name
        mode = stat.S_IMODE(folder.stat().st_mode)
        folder.chmod(0o777)
        assert problems_of() == [f"{name}/:1:1: everyone on this machine may write it [P004]"]
        folder.chmod(0o1777)  # others cannot replace what is there, but add to it, which the root does not mind
        assert name == "." or problems_of()
        assert name != "." or load(world.root)
        folder.chmod(0o775)
        load(world.root)
        folder.chmod(mode)
    (world.root / "shared").mkdir()
    (world.root / "regions" / "eu.yaml").rename(world.root / "shared" / "eu.yaml")
    (world.root / "regions" / "eu.yaml").symlink_to("../shared/eu.yaml")
    load(world.root)
    (world.root / "shared").chmod(0o777)
    assert problems_of() == ["shared/:1:1: everyone on this machine may write it [P004]"]


def test_s14_an_older_commit_is_unpacked_for_its_owner_alone_whatever_the_umask(world: World) -> None:
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        ["-c", "user.name=t", "-c", "user.email=t@example.net", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=world.root, check=True)
    old = os.umask(0)
    try:
        done = world.call("check", "--from-git", "main", "--detailed-exitcode")
    finally:
        os.umask(old)
    assert done.exit_code == 0, done.output


def reachable_by_others(root: Path) -> list[str]:
    """Files below `root` that another user could open: no closed directory stands above them."""
    results = []
    for folder, folders, files in os.walk(root):
        if stat.S_IMODE(os.stat(folder).st_mode) & 0o077 == 0:
            folders.clear()
            continue
        results += [
            str(Path(folder) / file) for file in files if stat.S_IMODE((Path(folder) / file).lstat().st_mode) & 0o077
        ]
    return results


async def test_s14_what_is_written_is_its_owners_alone_whatever_the_umask(home: Path) -> None:
    lake = home / "lake"
    lake.mkdir()
    lake.chmod(0o755)
    region = Region(name="eu", warehouse=str(lake), spark=Spark(conf=(("spark.my.secret", "very secret"),)))
    old = os.umask(0)
    driver = LocalDriver(region)
    try:
        await driver.start_agent()
        await driver.state("web")
        settings, sock = lake / "_console" / "agent.json", paths.socket_path(region.warehouse)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (settings, sock, lake / "_console")}
        (home / "state-of-console").mkdir(mode=0o755)
        script = "from console.runner.journal import Journal; Journal().intent('eu', 'web', 'accept', {})"
        subprocess.run([sys.executable, "-c", script], check=True)
    finally:
        os.umask(old)
        await driver.stop()
        await driver.close()
    assert modes == {"agent.json": 0o600, sock.name: 0o600, "_console": 0o700}
    assert "very secret" in settings.read_text()
    assert stat.S_IMODE((home / "home" / "state").stat().st_mode) == 0o700
    assert reachable_by_others(home) == []


def test_s14_whatever_the_command_line_writes_is_its_owners_alone_whatever_the_umask(
    world: World, tmp_path: Path
) -> None:
    """Every folder that console makes is closed, and every file that it makes in an open one."""
    saved = tmp_path / "open"
    saved.mkdir()
    saved.chmod(0o755)
    before = {path for path in tmp_path.rglob("*")}
    old = os.umask(0)
    try:
        for words in (
            ["plan", "--out", str(saved / "eu.plan"), "--regions", "eu"],
            ["plan", "--out", str(saved / "eu.plan"), "--regions", "eu"],  # over the one that lies there
            ["snapshot", "--out", str(saved / "live.json")],
            ["apply", "--yes"],
            ["status"],
            ["history"],
            ["verify", "--rollout", "web-1"],
            ["info"],
            ["doctor"],
        ):
            done = world.call(*words)
            assert done.exit_code in (0, 1), (words, done.output)
    finally:
        os.umask(old)
    made = {path for path in tmp_path.rglob("*")} - before
    assert {path.name for path in made} >= {"eu.plan", "live.json", "journal.db", "state"}
    folders = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()}
    assert {name: mode for name, mode in folders.items() if mode != 0o700} == {}
    assert reachable_by_others(saved) == []


def test_s14_a_link_or_a_folder_of_others_in_the_place_of_ours_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    ours = tmp_path / "console"
    ours.symlink_to("/tmp")
    with pytest.raises(PermissionError):
        paths.runtime_dir()
    ours.unlink()
    ours.mkdir(mode=0o755)
    with pytest.raises(PermissionError):
        paths.runtime_dir()
    ours.chmod(0o700)
    os.chown(ours, 65534, 65534)
    with pytest.raises(PermissionError):
        paths.runtime_dir()
    os.chown(ours, os.getuid(), os.getgid())
    assert paths.runtime_dir() == ours


_KNOCK = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
end = socket.socket(socket.AF_UNIX)
end.settimeout(10)
try:
    end.connect(sys.argv[1])
    end.sendall(b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1}}\\n')
    print("answered" if end.recv(1000) else "hung up")
except (PermissionError, FileNotFoundError, ConnectionResetError, BrokenPipeError) as error:
    print(type(error).__name__)
"""


async def test_s15_another_user_of_the_machine_gets_no_answer_even_with_every_door_open(home: Path) -> None:
    lake = home / "lake"
    lake.mkdir()
    region = Region(name="eu", warehouse=str(lake))
    driver = LocalDriver(region)
    await driver.start_agent()
    sock = paths.socket_path(region.warehouse)

    def knock() -> str:
        words = [sys.executable, "-c", _KNOCK, str(sock)]
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60, cwd="/").stdout.strip()

    try:
        closed = await asyncio.to_thread(knock)
        temporary = Path(tempfile.gettempdir()).resolve()
        inside = [
            folder for folder in sock.resolve().parents if folder.is_relative_to(temporary) and folder != temporary
        ]
        doors = {path: path.stat().st_mode for path in (sock, *inside)}  # only what pytest made for this test run
        for path, mode in doors.items():
            path.chmod(mode | 0o777)
        opened = await asyncio.to_thread(knock)
        for path, mode in doors.items():
            path.chmod(mode)
        assert (await driver.state("web")).live == ""
    finally:
        await driver.stop()
        await driver.close()
    assert closed == "PermissionError"
    assert opened in ("hung up", "ConnectionResetError", "BrokenPipeError")


async def test_s10_an_agent_survives_whatever_a_client_says_and_answers_the_next(home: Path) -> None:
    """Requests spoilt by their grammar, through the real agent; Spark cannot be started here."""

    lake = home / "lake"
    lake.mkdir()
    region = Region(name="eu", warehouse=str(lake))
    os.environ["CONSOLE_JARS"] = str(home / "no-jars")
    driver = LocalDriver(region)
    try:
        await driver.start_agent()
        run = {"load": "a", "first": "00", "after": 0, "before": "00", "at": [[1, 1]]}
        wholes = [
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            for method, params in {
                "hello": {"protocol": 1},
                "survey": {"pipeline": "web", "landing": ["landing"]},
                "state": {"pipeline": "web"},
                "control": {"pipeline": "web", "verb": "pause", "by": "a", "host": "h"},
                "promote": {"pipeline": "web", "rollout": "web-1", "live": "r1", "by": "a", "host": "h"},
                "rollback": {"pipeline": "web", "live": "r1", "by": "a", "host": "h"},
                "cleanup": {"pipeline": "web", "by": "a", "host": "h", "dry_run": True, "previous": False},
                "query": {"pipeline": "web", "sql": "SELECT 1", "tables": [], "args": {"a": ["1", "int"]}, "limit": 1},
                "run": {"pipeline": "web", "kind": "sink", "name": "x", "by": "a", "host": "h"},
                "ingest": {"pipeline": "web", "table": "landing", "batch": "b", "lines": ["{}"], "run": run},
                "check": {"pipeline": "web", "table": "landing", "lines": ["{}"], "at": [[1, 1]]},
                "landed": {
                    "pipeline": "web",
                    "table": "landing",
                    "load": "a",
                    "first": "00",
                    "named": False,
                    "batch": "",
                    "after": 0,
                },
                "marks": {"pipeline": "web", "table": "landing", "load": "a", "rows": 1},
                "accept": {"plan": {"format_version": 1}, "by": "a", "host": "h", "attached": False},
            }.items()
        ]
        bugs = await asyncio.to_thread(
            _asked, paths.socket_path(region.warehouse), wholes, Random("agent"), spoilt_json
        )
        pid = json.loads((lake / "_console" / "agent.lock").read_text())["pid"]
        peak = int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0])
        assert (await driver.state("web")).live == ""
    finally:
        del os.environ["CONSOLE_JARS"]
        await driver.stop()
        await driver.close()
    assert bugs == []
    assert peak < 400 << 10
    assert not [path for path in home.rglob("*") if "passwd" in path.name]


def _asked(sock: Path, wholes: list[object], random: Random, spoil: Callable[[Random, object], bytes]) -> list[str]:
    bugs: list[str] = []
    for _ in range(150):
        changed = spoil(random, random.choice(wholes)).replace(b"\n", b" ")
        end = socket.socket(socket.AF_UNIX)
        end.settimeout(30)
        end.connect(str(sock))
        end.sendall(changed + b"\n")
        end.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while chunk := end.recv(1 << 16):
                answer += chunk
        except ConnectionError:
            pass
        end.close()
        if b"E_BUG" in answer:
            bugs.append(f"{changed[:300]!r} → {answer[:300]!r}")
    return bugs


@pytest.mark.parametrize(
    "message", [b"x" * 3_000_000, b"\xff" * 100_000 + b"\n", b"[" * 200_000 + b"\n", b"\n" * 50_000]
)
async def test_s10_a_client_that_is_none_is_hung_up_on_and_the_others_are_served(home: Path, message: bytes) -> None:
    lake = home / "lake"
    lake.mkdir()
    driver = LocalDriver(Region(name="eu", warehouse=str(lake)))
    await driver.start_agent()

    def shout() -> None:
        end = socket.socket(socket.AF_UNIX)
        end.settimeout(20)
        end.connect(str(paths.socket_path(str(lake))))
        try:
            end.sendall(message)
            end.shutdown(socket.SHUT_WR)
            while end.recv(1 << 16):
                pass
        except OSError:
            pass
        end.close()

    try:
        _, state = await asyncio.gather(asyncio.to_thread(shout), driver.state("web"))
        assert state.live == ""
        assert (await driver.state("web")).live == ""
    except ConsoleError as error:
        raise AssertionError(f"a shouting client cost the others their answer: {error}") from error
    finally:
        await driver.stop()
        await driver.close()
