"""Whose credentials reach an object store: the environment's, a profile's, or the instance's."""

import os
from pathlib import Path

import pytest

from console.agent.object_store.s3 import S3Access
from console.aws_profile import export, of_profile
from console.errors import RegionError

KEYS = "[{name}]\naws_access_key_id = AKIA{name}\naws_secret_access_key = s3%cret/{name}\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".aws").mkdir()
    return tmp_path


def write(home: Path, file: str, text: str) -> None:
    (home / ".aws" / file).write_text(text)


def test_a_named_profile_gives_its_keys_and_its_region(home: Path) -> None:
    write(home, "credentials", KEYS.format(name="default") + KEYS.format(name="lake") + "aws_session_token = t\n")
    write(home, "config", "[default]\nregion = us-east-1\n[profile lake]\nregion = eu-south-2\n")
    assert of_profile({"HOME": str(home), "AWS_PROFILE": "lake"}) == {
        "aws_access_key_id": "AKIAlake",
        "aws_secret_access_key": "s3%cret/lake",
        "aws_session_token": "t",
        "aws_region": "eu-south-2",
    }


def test_a_process_has_a_profiles_keys_in_its_environment_where_its_libraries_and_its_jvm_look(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, "credentials", KEYS.format(name="lake") + "aws_session_token = t\nregion = eu-south-2\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_PROFILE", "lake")
    export()
    assert S3Access.of(os.environ) == S3Access(region="eu-south-2", key_id="AKIAlake", secret="s3%cret/lake", token="t")
    export()  # now from the environment
    assert S3Access.of(os.environ).key_id == "AKIAlake"


def test_the_default_profile_counts_where_none_is_named(home: Path) -> None:
    write(home, "credentials", KEYS.format(name="default"))
    assert of_profile({"HOME": str(home)})["aws_access_key_id"] == "AKIAdefault"


def test_files_elsewhere_and_the_region_of_the_environment_count(home: Path) -> None:
    write(home, "mine", KEYS.format(name="lake") + "region = eu-south-2\n")
    environment = {
        "AWS_SHARED_CREDENTIALS_FILE": str(home / ".aws" / "mine"),
        "AWS_PROFILE": "lake",
        "HOME": "/nowhere",
    }
    assert of_profile(environment)["aws_region"] == "eu-south-2"
    assert "aws_region" not in of_profile({**environment, "AWS_REGION": "us-west-2"})


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"])
def test_the_environments_own_credentials_come_first(home: Path, name: str) -> None:
    write(home, "credentials", KEYS.format(name="lake"))
    assert of_profile({"HOME": str(home), "AWS_PROFILE": "lake", name: "x"}) == {}


def test_without_any_profile_the_instance_is_asked(home: Path) -> None:
    assert of_profile({"HOME": str(home)}) == {}
    write(home, "config", "[default]\nregion = eu-south-2\n")
    assert of_profile({"HOME": str(home)}) == {}


def test_a_profile_that_is_not_there_is_named_with_its_files(home: Path) -> None:
    with pytest.raises(RegionError, match=r"credentials nor .*config has a profile lake"):
        of_profile({"HOME": str(home), "AWS_PROFILE": "lake"})


def test_a_profile_of_a_role_is_refused_with_the_command_that_gives_its_keys(home: Path) -> None:
    write(home, "config", "[profile lake]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = default\n")
    with pytest.raises(RegionError, match="no keys of its own") as error:
        of_profile({"HOME": str(home), "AWS_PROFILE": "lake"})
    assert error.value.hint == 'eval "$(aws configure export-credentials --profile lake --format env)"'


@pytest.mark.parametrize("text", ["aws_secret_access_key = secret-text\n", "[a]\nsecret-text\n", "\udcff"])
def test_a_file_that_cannot_be_read_is_named_without_its_text(home: Path, text: str) -> None:
    (home / ".aws" / "credentials").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RegionError, match="cannot be read") as error:
        of_profile({"HOME": str(home), "AWS_PROFILE": "lake"})
    assert "secret-text" not in str(error.value)
