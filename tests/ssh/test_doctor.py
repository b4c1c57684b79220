"""`console doctor` looks at a region's host through SSH: the way in, console there, and what an agent needs."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from console.drivers.ssh.driver import SshDriver
from console.errors import ConsoleError
from tests.ssh.host import BIN, QUICK, Host
from tests.ssh.test_trust import written

pytestmark = pytest.mark.ssh
NEEDED = ("console", "python", "libraries", "java", "jars", "versions", "sockets", "warehouse", "logs", "agent")


def doctor(host: Host, home: Path, **ssh: object) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and what was found of the region, by name."""
    facts = {"host": host.address, "user": "root", "key": f"file:{host.folder}/key", "known_hosts": "hosts", **ssh}
    project = home / "project"
    for name, text in {
        "regions/eu.yaml": f"warehouse: {host.folder}/lake\ntransport: {json.dumps({'ssh': facts})}\n",
        "plans/web/pipeline.yaml": "name: web\n",
        "plans/web/tables/landing.yaml": "kind: landing\nmanaged: true\ncolumns: {id: string}\n",
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    if not (project / "hosts").exists():
        (project / "hosts").write_text((host.folder / "known_hosts").read_text())
    command = [str(BIN / "console"), "doctor", "--project", str(project), "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=os.environ)
    checks = json.loads(done.stdout)["checks"]
    return done.returncode, {check["name"]: check for check in checks if check["name"].endswith(" eu")}


async def test_a_sound_host_is_shown_with_all_that_an_agent_needs_and_with_the_agent(host: Host, home: Path) -> None:
    _, output = doctor(host, home)
    assert list(output) == ["ssh to eu", *(f"{name} of eu" for name in NEEDED)]
    assert {name for name, check in output.items() if check["ok"] is False} == set(), output
    assert "pyspark" in output["libraries of eu"]["detail"]
    assert "none runs" in output["agent of eu"]["detail"]
    assert (host.processes("serve"), (host.folder / "lake" / "_console").exists()) == ([], False), "it only looks"
    driver = SshDriver(host.region(), timeouts=QUICK)
    await driver.start_agent()
    _, output = doctor(host, home)
    assert f"process {host.agent()}" in output["agent of eu"]["detail"]
    await driver.stop()
    await driver.close()


def test_a_host_that_lacks_what_an_agent_needs_says_each_thing_with_its_remedy(host: Host, home: Path) -> None:
    """Bootstrapped, by a Python without the libraries; no Java, no jars, and a log that a power loss cut short."""
    programs = host.folder / "bin"
    programs.mkdir()
    python = BIN / "python"
    written(programs / "python3", f'#!/bin/sh\nexport JAVA_HOME=/nowhere\nexec {python} -S "$@"\n', 0o755)
    host.path = f"{programs}:/usr/bin:/bin"
    host.restart()
    log = host.folder / "lake" / "landing" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text('{"commitInfo": ')
    code, output = doctor(host, home, bootstrap=True)
    bad = {name.removesuffix(" of eu"): check for name, check in output.items() if check["ok"] is False}
    assert (code, set(bad)) == (1, {"libraries", "java", "jars", "logs"}), output
    assert "no pyspark and no deltalake" in bad["libraries"]["detail"]
    assert "landing: version 0 is cut short" in bad["logs"]["detail"]
    assert all(check["fix"] for check in bad.values())
    (host.folder / "lake").rename(host.folder / "moved")
    assert "is not a directory" in doctor(host, home, bootstrap=True)[1]["warehouse of eu"]["detail"]


def test_a_host_that_cannot_be_entered_is_one_finding_with_what_to_type(host: Host, home: Path) -> None:
    code, output = doctor(host, home, user="nobody")
    assert (code, list(output)) == (1, ["ssh to eu"])
    assert output["ssh to eu"]["ok"] is False
    assert "does not accept nobody's public key" in output["ssh to eu"]["detail"]
    (home / "project" / "hosts").write_text("")
    code, output = doctor(host, home)
    assert (code, list(output)) == (1, ["ssh to eu"])
    assert "ssh-keyscan" in output["ssh to eu"]["fix"]


async def test_a_host_that_answers_something_else_is_named_with_what_it_said(host: Host) -> None:
    old = {"error": {"message": "do: expected one of dial, survey", "type": "DataError"}}
    odd = {"tool": "1", "found": [{"name": "java", "ok": "yes", "detail": ""}]}
    for far, says in (
        ("echo Welcome", "its host says"),
        (f"echo {shlex.quote(json.dumps({'tool': 1, 'found': []}))}", "answers with"),
        (f"echo {shlex.quote(json.dumps(odd))}", "invalid answer of the agent"),
        (f"echo {shlex.quote(json.dumps(old))}", "expected one of"),
        ("exit 127", "there is no `console` on the PATH"),
        ("exit 0", "ended with exit code 0"),
    ):
        host.extra = f"ForceCommand {far}\n"
        host.restart()
        driver = SshDriver(host.region(), timeouts=QUICK)
        with pytest.raises(ConsoleError, match=f"^(eu: )?.*{says}"):
            await driver.look()
        await driver.close()
