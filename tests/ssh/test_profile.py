"""`console profile` of a region behind SSH: the files are read where they are."""

import json
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from console.drivers.ssh.driver import SshDriver
from console.drivers.survey import Sample
from console.errors import ConsoleError, DataError, Protocol, RegionError
from tests.agent.test_profile import DAYS, landing
from tests.ssh.host import BIN, QUICK, Host

pytestmark = pytest.mark.ssh
SAMPLE = Sample(table="landing", column="payload", time="ts", bytes=1 << 30, seconds=60)


def test_the_program_lists_the_keys_of_a_table_that_only_its_host_can_read(host: Host, home: Path) -> None:
    landing(host.folder / "lake" / "landing")
    facts = {"host": host.address, "user": "root", "key": f"file:{host.folder}/key", "known_hosts": "hosts"}
    project = home / "project"
    for name, text in {
        "regions/eu.yaml": f"warehouse: {host.folder}/lake\ntransport: {json.dumps({'ssh': facts})}\n",
        "hosts": (host.folder / "known_hosts").read_text(),
        "plans/web/pipeline.yaml": "name: web\n",
        "plans/web/tables/landing.yaml": "kind: landing\ntime: ts\ncolumns: {ts: timestamp, payload: string}\n",
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    command = [str(BIN / "console"), "profile", "landing", "--project", str(project), "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert {key["key"]: key["first_seen"] for key in data["keys"]} == {
        "ip": "2026-11-01", "note": "2026-11-01", "user_agent": "2026-11-09", "geo": "2026-11-01", "geo.country": "2026-11-01", "rare": "2026-11-06",
    }  # fmt: skip
    assert (data["region"], data["rows"]) == ("eu", DAYS * 40)
    assert host.processes("serve") == []


async def test_s09_a_table_to_profile_is_one_folder_of_the_warehouse_and_nothing_else(host: Host) -> None:
    landing(host.folder / "landing")
    driver = SshDriver(host.region(), timeouts=QUICK)
    for table in ("../landing", "/etc", "_console/web/releases", "a\0b"):
        with pytest.raises(DataError, match="is not a table of a warehouse"):
            await driver.profile(replace(SAMPLE, table=table))
    await driver.close()


async def test_what_is_no_profile_is_an_error_that_names_the_region(host: Host) -> None:
    driver = SshDriver(host.region(), timeouts=QUICK)
    with pytest.raises(RegionError, match="is not a Delta table"):
        await driver.profile(SAMPLE)
    await driver.close()
    whole = {"rows": 1, "files": 1, "files_whole": 1, "sampled": 1, "null": 0, "not_json": 0, "bytes_read": 9}
    whole |= {"first_day": "", "last_day": "", "keys": [{"key": "a", "share": 1.0, "first_seen": "", "sure": True}]}
    for item, kind in (
        ("Welcome", Protocol),
        ("{}", Protocol),
        (json.dumps({**whole, "rows": "1"}), Protocol),
        (json.dumps({**whole, "keys": [{"key": 7}]}), Protocol),
        (json.dumps({"error": {"message": 7}}), Protocol),
        (json.dumps({"error": {"message": "do: expected one of dial", "type": "DataError"}}), DataError),
    ):
        host.extra = f"ForceCommand echo {shlex.quote(item)}\n"
        host.restart()
        driver = SshDriver(host.region(), timeouts=QUICK)
        with pytest.raises(kind) as caught:
            await driver.profile(SAMPLE)
        assert isinstance(caught.value, ConsoleError)
        await driver.close()
