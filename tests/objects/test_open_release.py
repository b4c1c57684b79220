"""`open_release` of a region whose agent is on another host: from a bucket by the reader's own credentials, and not from a disk. No Java."""

import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from console import open_release
from console.errors import RegionError, Unreachable, UsageError
from tests.hostile.test_release import released
from tests.objects.region import FILES
from tests.objects.server import BUCKET, OWNED, client, options, owner, reader
from tests.ssh.bucket import KEYS, NO_INSTANCE

pytestmark = pytest.mark.s3

# nobody answers there, and on a reader's machine the region's own credentials lead to nothing
ELSEWHERE = (
    "transport: {ssh: {host: nowhere.invalid}}\n"
    "secrets: {aws_access_key_id: 'env:NOBODY', aws_secret_access_key: 'env:NOBODY'}\n"
)
PROMPT_SECONDS = 60.0


@pytest.fixture
def root(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose region has a release in a bucket that only its owner may change; our environment has no keys."""
    released(tmp_path / "lake", "SELECT id, n + 1 AS m FROM stored")
    store = client(server, owner("read"))
    for path in (tmp_path / "lake").rglob("*"):
        if path.is_file():
            store.put(f"{OWNED}read/{path.relative_to(tmp_path / 'lake')}", path.read_bytes())
    project = tmp_path / "project"
    files = {
        **FILES,
        "regions/us.yaml": f"warehouse: s3a://{BUCKET}/{OWNED}read\n{ELSEWHERE}",
        "regions/eu.yaml": f"warehouse: /srv/acme/eu\n{ELSEWHERE.partition('secrets')[0]}",
    }
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    for name, value in {**options(server), **NO_INSTANCE, "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    for name in (*KEYS, "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return project


def profile(home: Path, name: str, account: dict[str, str]) -> None:
    (home / ".aws").mkdir()
    lines = "".join(f"{each.lower()} = {account[each]}\n" for each in KEYS)
    (home / ".aws" / "credentials").write_text(f"[{name}]\n{lines}")


def test_a_release_in_a_bucket_is_read_by_the_profile_of_a_reader_and_without_its_host(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile(tmp_path, "analyst", reader("read"))
    monkeypatch.setenv("AWS_PROFILE", "analyst")
    release = open_release("us", project=root)
    place = f"s3://{BUCKET}/{OWNED}read/requests/v-1"
    assert (release.id, release.path("requests")) == ("r1", place)
    assert release.arrow("requests", "id = 'b'").to_pylist() == [{"id": "b", "m": 3}]
    assert release.refresh().arrow("requests").num_rows == 2
    account = {name: value for name, value in reader("read").items() if name in KEYS}
    with pytest.raises((DeltaError, OSError), match=r"403|Denied|denied"):
        write_deltalake(place, pa.table({"id": ["c"], "n": [3]}), mode="append", storage_options=account)


def test_a_bucket_that_does_not_open_says_so_promptly_and_with_where_credentials_come_from(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    with pytest.raises(Unreachable, match=f"s3://{BUCKET}/{OWNED}read: ") as error:
        open_release("us", project=root)
    assert time.monotonic() - began < PROMPT_SECONDS
    assert "credentials come from the environment" in error.value.hint
    profile(tmp_path, "analyst", reader("read"))
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(RegionError, match="has a profile nobody"):
        open_release("us", project=root)


def test_a_release_on_the_disk_of_another_host_is_refused_with_where_it_can_be_read(root: Path) -> None:
    with pytest.raises(UsageError, match=r"eu is behind SSH: its tables are files of nowhere\.invalid") as error:
        open_release("eu", project=root)
    there = "console.open_release(warehouse='/srv/acme/eu', pipeline='web')"
    assert error.value.hint == f"on that host: {there}; from here: console query --region eu"
