"""Host keys, authentication, and the data that a host receives, against a real OpenSSH server."""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from console.drivers.ssh.connection import Connection
from console.drivers.ssh.driver import SshDriver
from console.drivers.ssh.pack import packed
from console.errors import ConsoleError, DataError, Protocol, RegionError, Unreachable
from console.model.region import Region, Spark
from tests.ssh.host import BIN, QUICK, Host, sh

pytestmark = pytest.mark.ssh
CALM = replace(QUICK, beat=10.0)  # nothing is cut here, and a busy machine is no lost link


async def looked(region: Region) -> str:
    """The live release, "" where there is none; raises what keeps us from it."""
    driver = SshDriver(region, timeouts=CALM)
    try:
        return (await driver.state("web")).live
    finally:
        await driver.close()


async def refusal(region: Region) -> ConsoleError:
    with pytest.raises(ConsoleError) as caught:
        await looked(region)
    return caught.value


def written(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def _loose_config(host: Host, home: Path) -> str:
    """The user's own OpenSSH settings switch the check off: they must not be ours."""
    (home / ".ssh").mkdir()
    text = f"Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile none\n  ProxyCommand touch {home}/ran\n"
    (home / ".ssh" / "config").write_text(text)
    return ""


def _other_hosts(host: Host, home: Path) -> str:
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / "k"))
    key = " ".join((home / "k.pub").read_text().split()[:2])
    return written(home / "kh", f"elsewhere.example.net {key}\n10.9.9.9 {key}\n")


def _changed(host: Host, home: Path) -> str:
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / "k"))
    return written(home / "kh", f"{host.address} {' '.join((home / 'k.pub').read_text().split()[:2])}\n")


def _changed_kind(host: Host, home: Path) -> str:
    sh("ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(home / "k"))
    return written(home / "kh", f"{host.address} {' '.join((home / 'k.pub').read_text().split()[:2])}\n")


def _revoked(host: Host, home: Path) -> str:
    text = (host.folder / "known_hosts").read_text()
    return written(home / "kh", f"{text}@revoked {text}")


UNPROVEN: dict[str, tuple[Callable[[Host, Path], str], str]] = {
    "no file at all": (lambda host, home: "", "is not known: SHA256:"),
    "a loose ~/.ssh/config": (_loose_config, "is not known: SHA256:"),
    "an empty file": (lambda host, home: written(home / "kh", ""), "is not known: SHA256:"),
    "the keys of other hosts": (_other_hosts, "is not known: SHA256:"),
    "another key of this host": (_changed, "is not the one in"),
    "another kind of key of this host": (_changed_kind, "is not the one in"),
    "a revoked key": (_revoked, "is not the one in"),
}


@pytest.mark.parametrize("name", UNPROVEN)
async def test_s11_a_host_that_does_not_prove_who_it_is_is_not_talked_to(host: Host, home: Path, name: str) -> None:
    spoil, says = UNPROVEN[name]
    error = await refusal(host.region(known_hosts=spoil(host, home)))
    assert isinstance(error, RegionError)
    assert (error.code, error.exit_code) == ("E_HOST_KEY", 1)
    assert says in str(error)
    assert re.search(r"ssh-keyscan -p 22 10\.|ssh-keygen -R 10\.", error.hint)
    assert "Accepted" not in host.log
    assert not (home / "ran").exists()


@pytest.mark.parametrize(
    ("place", "says"),
    [("none", "none cannot be read"), ("/dev/null", "is not a file of keys"), ("/dev/zero", "is not a file of keys")],
)
async def test_s11_a_known_hosts_that_is_no_file_is_refused(host: Host, place: str, says: str) -> None:
    error = await refusal(host.region(known_hosts=place))
    assert isinstance(error, DataError)
    assert says in str(error)


async def test_s11_a_hashed_file_and_a_certificate_authority_are_believed_where_they_are_right(
    host: Host, home: Path
) -> None:
    hashed = written(home / "kh", (host.folder / "known_hosts").read_text())
    sh("ssh-keygen", "-q", "-H", "-f", hashed)
    assert host.address not in Path(hashed).read_text()
    assert await looked(host.region(known_hosts=hashed)) == ""
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / "ca"))
    public = str(host.folder / "host_key.pub")
    sh("ssh-keygen", "-q", "-s", str(home / "ca"), "-I", "eu", "-h", "-n", host.address, public)
    config = host.folder / "sshd_config"
    host.extra = f"HostCertificate {host.folder}/host_key-cert.pub\n"
    host.restart()
    assert "HostCertificate" in config.read_text()
    authority = (home / "ca.pub").read_text()
    assert (
        await looked(host.region(known_hosts=written(home / "kh", f"@cert-authority {host.address} {authority}"))) == ""
    )
    error = await refusal(host.region(known_hosts=written(home / "kh", f"@cert-authority 10.9.9.9 {authority}")))
    assert error.code == "E_HOST_KEY"


async def test_a_key_that_is_not_let_in_is_said_so_and_nothing_is_asked_for(host: Host, home: Path) -> None:
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / "other"))
    error = await refusal(host.region(key=f"file:{home}/other"))
    assert isinstance(error, RegionError)
    assert "does not accept root's public key" in str(error)
    assert "Failed password" not in host.log
    assert "keyboard-interactive" not in host.log


async def test_a_key_open_to_others_or_locked_or_missing_is_refused_before_anything_is_sent(
    host: Host, home: Path
) -> None:
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "secret phrase", "-f", str(home / "locked"))
    open_to_others = written(home / "open", (host.folder / "key").read_text(), 0o644)
    for reference, says in {
        f"file:{open_to_others}": "others may read",
        f"file:{home}/locked": "protected by a passphrase",
        f"file:{home}/gone": "cannot be read",
        f"file:{written(home / 'text', 'hello')}": "not a private key",
        "env:NOT_SET_ANYWHERE": "not set",
        "cmd:cat /etc/shadow": "holds no SSH key",
    }.items():
        error = await refusal(host.region(key=reference))
        assert isinstance(error, DataError), reference
        assert says in str(error)
    assert "Connection from" not in host.log or "Accepted" not in host.log


async def test_a_key_from_the_environment_works(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EU_KEY", (host.folder / "key").read_text())
    assert await looked(host.region(key="env:EU_KEY")) == ""


async def test_s12_the_far_side_gets_no_agent_no_terminal_and_nothing_of_our_environment(
    host: Host, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sock = str(home / "agent.sock")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", sock], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", sock)
        monkeypatch.setenv("LC_SECRET", "canary-5713")
        while not Path(sock).exists():
            await asyncio.sleep(0.02)
        sh("ssh-add", "-q", str(host.folder / "key"))
        connection = Connection(host.region(key=""), CALM)  # the agent signs for us
        channel = await connection.run("env; tty")
        data = b""
        while chunk := await channel.read(1 << 16):
            data += chunk
        channel.close()
        await connection.close()
    finally:
        agent.kill()
        agent.wait()
    assert b"not a tty" in data
    assert b"SSH_AUTH_SOCK" not in data
    assert b"canary-5713" not in data


async def test_s12_names_from_the_inventory_reach_no_shell(host: Host) -> None:
    lake = host.folder / "lake ; touch $(echo pwned) `id` 'x' \"y\""
    lake.mkdir()
    region = replace(host.region(), warehouse=str(lake))
    assert await looked(region) == ""
    assert not list(Path.cwd().glob("pwned*"))
    assert not Path("/root/pwned").exists()
    # and a name that could never have passed the inventory is refused over there as well
    error = await refusal(replace(region, name="../../etc/x"))
    assert "not a region's name" in str(error)


async def test_s13_no_secret_is_on_a_command_line_in_an_environment_or_in_a_log(host: Host, home: Path) -> None:
    canary = "canary-s3-key-88213"
    asked = host.folder / "asked"
    host.extra = f'ForceCommand echo "$SSH_ORIGINAL_COMMAND" >> {asked}; $SSH_ORIGINAL_COMMAND\n'
    host.restart()
    region = replace(host.region(), spark=Spark(conf=(("spark.hadoop.fs.s3a.secret.key", canary),)))
    driver = SshDriver(region, timeouts=CALM)
    await driver.start_agent()
    lines = b"".join(
        Path(f"/proc/{pid}/{part}").read_bytes()
        for pid in sh("ip", "netns", "pids", host.space).split()
        for part in ("cmdline", "environ")
        if Path(f"/proc/{pid}").exists()
    )
    await driver.stop()
    await driver.close()
    assert b"serve" in lines
    assert canary.encode() not in lines
    assert set(asked.read_text().splitlines()) == {"console agent remote"}
    files = [path for folder in (host.folder, home) for path in folder.rglob("*") if path.is_file()]
    assert [path.name for path in files if canary.encode() in path.read_bytes()] == ["agent.json"]
    kept = host.folder / "lake" / "_console" / "agent.json"
    assert kept.stat().st_mode & 0o777 == 0o600


async def test_through_a_jump_host_both_are_verified(host: Host) -> None:
    """The region's host is the far side's own loopback: nobody but the jump host can reach it."""
    key = (host.folder / "known_hosts").read_text().split(maxsplit=1)[1]
    ssh = host.region().transport
    assert ssh
    inner = replace(ssh, host="127.0.0.1", jump=f"root@{host.address}:22")
    both = replace(host.region(), transport=inner)
    with (host.folder / "known_hosts").open("a") as known:
        known.write(f"127.0.0.1 {key}")
    assert await looked(both) == ""
    assert host.log.count("Accepted publickey") == 2
    for one in (host.address, "127.0.0.1"):
        (host.folder / "known_hosts").write_text(f"{one} {key}")
        error = await refusal(both)
        assert error.code == "E_HOST_KEY"
    assert isinstance(await refusal(replace(both, transport=replace(inner, jump="a b"))), DataError)


async def test_a_host_without_console_says_what_to_install(host: Host) -> None:
    host.path = "/usr/bin:/bin"
    host.restart()
    error = await refusal(host.region())
    assert error.code == "E_NO_CONSOLE"
    assert "bootstrap: true" in error.hint


def bare(host: Host) -> None:
    """A host with Python and the libraries, without console on its PATH."""
    programs = host.folder / "bin"
    programs.mkdir()
    written(programs / "python3", f'#!/bin/sh\nexec {BIN / "python"} "$@"\n', 0o755)
    host.path = f"{programs}:/usr/bin:/bin"
    host.restart()


async def test_bootstrap_brings_the_agent_and_checks_it_by_digest_every_time(host: Host) -> None:
    bare(host)
    region = host.region(bootstrap=True)
    folder = host.folder / "home" / ".cache" / "console"
    data, digest = packed()
    file = folder / f"agent-{digest}.pyz"
    driver = SshDriver(region, timeouts=CALM)
    await driver.start_agent()
    environment = Path(f"/proc/{host.agent()}/environ").read_bytes().split(b"\0")
    await driver.stop()
    await driver.close()
    assert any(word.startswith(f"PYTHONPATH={file}".encode()) for word in environment)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (data, 0o600)
    for harm in (data[:-1], data[:50_000] + b"x" + data[50_001:], b""):
        file.write_bytes(harm)
        assert await looked(region) == ""
        assert file.read_bytes() == data
    file.unlink()
    other = host.folder / "other"
    other.write_text("not ours")
    file.symlink_to(other)
    assert await looked(region) == ""
    assert (file.is_symlink(), other.read_text()) == (False, "not ours")
    assert [path.name for path in folder.iterdir()] == [file.name]


async def test_s10_a_login_that_talks_before_the_agent_is_named_and_kept(host: Host) -> None:
    host.extra = "ForceCommand echo 'Welcome to \x1b]0;eu\x07 eu!'; $SSH_ORIGINAL_COMMAND\n"
    host.restart()
    error = await refusal(host.region())
    assert isinstance(error, Protocol)
    assert str(error).startswith("eu: its host says")
    assert "\x1b" not in str(error)
    assert "login script" in error.hint


@pytest.mark.parametrize(
    ("far", "kind"),
    [
        ("yes | head -c 1000000000 | tr -d '\\n'", Protocol),  # a gigabyte without an end
        ("head -c 3000000 /dev/urandom", Protocol),
        ("printf '\\nhello\\n'", Protocol),  # a login script that prints a blank line has spoken
        ('echo \'{"ready": 1, "warehouse": 7}\'', Protocol),
        ('echo \'{"ready": 2, "warehouse": "/x"}\'', Protocol),
        ('echo \'{"error": {"message": 7}}\'', Protocol),
        ("sleep 100", Unreachable),
        ("exit 3", RegionError),
        ("kill -9 $$", Unreachable),
    ],
)
async def test_s10_a_far_side_that_answers_garbage_or_nothing_is_cut_off_with_its_name(
    host: Host, far: str, kind: type[ConsoleError]
) -> None:
    host.extra = f"ForceCommand {far}\n"
    host.restart()
    driver = SshDriver(host.region(), timeouts=replace(CALM, answer=6, start=2))
    with pytest.raises(kind, match=r"^eu: ") as caught:
        await driver.start_agent() if far.startswith(("sleep", "exit", "kill")) else await driver.state("web")
    await driver.close()
    assert len(str(caught.value)) < 700


async def test_a_forced_command_lets_a_key_reach_one_warehouse_and_nothing_else(host: Host) -> None:
    keys = host.folder / "authorized_keys"
    lake = host.folder / "lake"
    keys.write_text(f'command="console agent remote --only {lake}",restrict {keys.read_text()}')
    assert await looked(host.region()) == ""
    other = host.folder / "other"
    other.mkdir()
    (host.folder / "link").symlink_to(other)
    for place in (other, host.folder / "link", lake / ".." / "other"):
        error = await refusal(replace(host.region(), warehouse=str(place)))
        assert error.code in ("E_ONLY", ""), place
        assert isinstance(error, DataError if ".." in str(place) else RegionError)
    connection = Connection(host.region(), CALM)
    channel = await connection.run("touch /tmp/console-forced-command-was-escaped")
    channel.end_input()
    assert b"no request received" in await channel.line(1 << 16, 10)
    channel.close()
    await channel.wait_closed()
    await connection.close()
    assert not Path("/tmp/console-forced-command-was-escaped").exists()


def test_the_program_plans_a_region_behind_ssh_and_ends_with_the_documented_codes(host: Host, home: Path) -> None:
    project = home / "project"
    for name, text in {
        "regions/eu.yaml": f"warehouse: {host.folder}/lake\ntransport: {{ssh: {{host: {host.address}, user: root, "
        f"key: 'file:{host.folder}/key', known_hosts: hosts}}}}\n",
        "hosts": (host.folder / "known_hosts").read_text(),
        "plans/web/pipeline.yaml": "name: web\n",
        "plans/web/tables/landing.yaml": "kind: landing\nmanaged: true\ncolumns: {id: string}\n",
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    environment = {**os.environ, "CONSOLE_PROJECT": str(project)}

    def console(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [str(BIN / "console"), *words], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, done.stdout, done.stderr

    code, out, err = console("plan")
    assert code == 0, err
    assert "Plan: 1 region, 1 create" in out
    code, out, _ = console("status", "--output", "json")
    assert code == 0
    assert json.loads(out)
    assert console("follow", "--region", "eu")[0] == 64
    (project / "hosts").write_text("")
    code, out, err = console("plan")
    assert (code, out) == (1, "")
    assert "error: eu: the host key of" in err
    assert "ssh-keyscan" in err
    (project / "hosts").write_text((host.folder / "known_hosts").read_text())
    host.cut()
    code, out, err = console("plan")
    assert (code, out) == (5, "")
    assert "error: eu: no SSH" in err
