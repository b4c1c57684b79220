"""`secrets:` of a region: its own credentials reach its bucket, in its processes alone, and are shown nowhere. No Java."""

import datetime
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.drivers import store_secrets
from console.drivers.store_secrets import environment, of_region
from console.errors import RegionError
from console.model.region import Region
from tests.objects.region import FILES
from tests.objects.server import BUCKET, OWNED, options, owner

pytestmark = pytest.mark.s3

KEYS = "aws_access_key_id: 'env:{0}_KEY', aws_secret_access_key: 'cmd:printenv {0}_SECRET'"


def landing(server: str, name: str) -> None:
    noon = datetime.datetime(2026, 11, 1, 12, tzinfo=datetime.UTC)
    rows = pa.table({"id": ["a"], "ts": pa.array([noon], pa.timestamp("us", "UTC")), "payload": ["{}"]})
    write_deltalake(f"s3://{BUCKET}/{OWNED}{name}/landing", rows, storage_options={**options(server), **owner(name)})


def project(home: Path, secrets: Mapping[str, str]) -> Path:
    root = home / "project"
    files = {
        f"regions/{name}.yaml": f"warehouse: s3://{BUCKET}/{OWNED}{name}\n{text}" for name, text in secrets.items()
    }
    for name, text in {**FILES, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def console(root: Path, server: str, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    home = {"CONSOLE_HOME": str(root.parent), "PYTHONPATH": os.pathsep.join(sys.path)}
    own = {**kept, **options(server), **home, "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9", **more}
    return subprocess.run(
        [sys.executable, "-m", "console.main", *words], cwd=root, env=own, capture_output=True, text=True, check=False, timeout=120
    )  # fmt: skip


def test_two_regions_reach_their_buckets_each_by_its_own_secrets(server: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("TOKEN-west\n")
    token.chmod(0o600)
    more = {
        f"{name}_{what}": f"{what}-{name.lower()}" for name in ("EAST", "WEST") for what in ("KEY", "SECRET", "TOKEN")
    }
    for name in ("east", "west"):
        landing(server, name)
    root = project(
        tmp_path,
        {
            "east": f"secrets: {{{KEYS.format('EAST')}, aws_session_token: 'env:EAST_TOKEN'}}\n",
            "west": f"secrets: {{{KEYS.format('WEST')}, aws_session_token: 'file:{token}'}}\n",
        },
    )
    done = console(root, server, "plan", "--output", "json", **more)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count('"create"') >= 2
    assert "P050" not in said
    for value in ("SECRET-east", "SECRET-west", "TOKEN-east", "TOKEN-west"):
        assert value not in said
        assert not [
            path
            for path in tmp_path.rglob("*")
            if path.is_file() and path != token and value in path.read_text(errors="ignore")
        ]
    shown = console(root, server, "lock", "show", "--region", "east", **more)
    assert (shown.returncode, "east: free" in shown.stdout) == (0, True), shown.stderr
    wrong = console(root, server, "plan", **{**more, "EAST_TOKEN": "TOKEN-west"})
    assert wrong.returncode == 5, wrong.stdout + wrong.stderr
    assert "east" in wrong.stderr
    assert "TOKEN-west" not in wrong.stdout + wrong.stderr


def test_a_reference_that_leads_to_nothing_is_named_and_the_other_regions_answer(server: str, tmp_path: Path) -> None:
    landing(server, "south")
    root = project(tmp_path, {"south": f"secrets: {{{KEYS.format('SOUTH')}, aws_session_token: 'env:NOBODY'}}\n"})
    done = console(root, server, "plan", SOUTH_KEY="KEY-south", SOUTH_SECRET="SECRET-south")
    assert done.returncode != 0
    assert "south: secrets.aws_session_token leads to nothing: NOBODY is not set in the environment" in done.stderr


def region(**secrets: str) -> Region:
    return Region(name="eu", warehouse="s3://lake/eu", secrets=tuple(sorted(secrets.items())))


PAIR = {"aws_access_key_id": "env:EU_KEY", "aws_secret_access_key": "env:EU_SECRET"}


@pytest.mark.parametrize(
    ("secrets", "why"),
    [
        ({"aws_access_key_id": "env:EU_KEY"}, "aws_secret_access_key is missing beside aws_access_key_id"),
        ({"aws_session_token": "env:EU_KEY"}, "aws_access_key_id is missing beside aws_session_token"),
        ({**PAIR, "aws_profile": "env:EU_KEY"}, "aws_profile excludes keys"),
        (
            {**PAIR, "aws_session_token": "cmd:false"},
            "secrets.aws_session_token leads to nothing: the command ended with exit code 1",
        ),
        (
            {**PAIR, "aws_session_token": "cmd:/nowhere/pass aws"},
            "nothing: the command cannot be run: FileNotFoundError",
        ),
        ({**PAIR, "aws_session_token": "cmd:true"}, "nothing: the command printed nothing"),
        ({**PAIR, "aws_session_token": "cmd:printf 'one\\ntwo'"}, "leads to more than one line"),
        ({**PAIR, "aws_session_token": "file:/nowhere"}, "nothing: /nowhere cannot be read: No such file or directory"),
        ({**PAIR, "aws_session_token": "keyring:lake/eu"}, "nothing: the package `keyring` is not installed"),
    ],
)
def test_what_is_wrong_with_secrets_is_said_without_a_value(
    monkeypatch: pytest.MonkeyPatch, secrets: dict[str, str], why: str
) -> None:
    monkeypatch.setenv("EU_KEY", "KEY-eu")
    monkeypatch.setenv("EU_SECRET", "SECRET-eu")
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(RegionError, match=why) as error:
        of_region(region(**secrets))
    assert error.value.code == "E_CREDENTIALS"
    assert "SECRET-eu" not in str(error.value)


def test_a_file_that_others_may_read_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("TOKEN-eu")
    file.chmod(0o640)
    monkeypatch.setenv("EU_KEY", "KEY-eu")
    monkeypatch.setenv("EU_SECRET", "SECRET-eu")
    with pytest.raises(RegionError, match="is one that others may read: chmod go-rwx"):
        of_region(region(**PAIR, aws_session_token=f"file:{file}"))


def test_a_regions_own_credentials_leave_nothing_of_ours_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_secrets, "_looked_up", {})
    monkeypatch.setenv("EU_PROFILE", "acme-eu")
    ours = {
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "t",
        "AWS_REGION": "eu-south-2",
        "A": "b",
    }
    own = of_region(region(aws_profile="env:EU_PROFILE"))
    assert environment(ours, own) == {"AWS_PROFILE": "acme-eu", "AWS_REGION": "eu-south-2", "A": "b"}
    assert environment(ours, of_region(region())) == ours
    on_a_disk = Region(name="eu", warehouse="/srv/eu", secrets=(("aws_profile", "env:EU_PROFILE"),))
    assert of_region(on_a_disk) == {}
