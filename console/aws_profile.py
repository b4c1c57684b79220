"""Credentials of a profile, which deltalake does not read by itself; it does read the environment and the instance's."""

import os
from collections.abc import Mapping
from configparser import ConfigParser, Error
from pathlib import Path

from console.errors import RegionError

SOURCES = "credentials come from the environment (AWS_PROFILE, AWS_ACCESS_KEY_ID …, AWS_ENDPOINT_URL) or the instance"
_KEYS = {
    "aws_access_key_id": "aws_access_key_id",
    "aws_secret_access_key": "aws_secret_access_key",
    "aws_session_token": "aws_session_token",
    "region": "aws_region",
}
_BY_ITSELF = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")


def of_profile(environment: Mapping[str, str]) -> dict[str, str]:
    """deltalake's options for the profile of an environment; {} if the environment or the instance has the credentials.

    A profile is that named by AWS_PROFILE, else `default` where a file has it.

    raises  RegionError E_CREDENTIALS for a profile that is not there or has no keys of its own
    """
    if any(environment.get(name) for name in _BY_ITSELF):
        return {}
    name = environment.get("AWS_PROFILE", "")
    home = Path(environment.get("HOME") or "~").expanduser() / ".aws"
    keys = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials")
    config = Path(environment.get("AWS_CONFIG_FILE") or home / "config")
    found = {**_section(config, f"profile {name}" if name else "default"), **_section(keys, name or "default")}
    if not found and not name:
        return {}
    if not found:
        raise RegionError(
            f"AWS_PROFILE: neither {keys} nor {config} has a profile {name}",
            hint="correct AWS_PROFILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            code="E_CREDENTIALS",
        )
    if not (found.get("aws_access_key_id") and found.get("aws_secret_access_key")):
        if not name:
            return {}
        raise RegionError(
            f"AWS_PROFILE: the profile {name} has no keys of its own, as one of a role or of single sign-on",
            hint=f'eval "$(aws configure export-credentials --profile {name} --format env)"',
            code="E_CREDENTIALS",
        )
    region = "" if environment.get("AWS_REGION") else found.get("region", "")
    return {option: value for key, option in _KEYS.items() if (value := {**found, "region": region}.get(key))}


def export() -> None:
    """Put a profile's keys into this process's environment, where deltalake, the client of a bucket and a JVM look for them.

    raises  as `of_profile`
    """
    os.environ.update({option.upper(): value for option, value in of_profile(os.environ).items()})


def _section(file: Path, name: str) -> dict[str, str]:
    """raises  RegionError E_CREDENTIALS if the file cannot be read"""
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, Error) as error:
        # its text would show keys
        raise RegionError(
            f"{file} cannot be read: {type(error).__name__}", hint="correct the file", code="E_CREDENTIALS"
        ) from None
    return dict(parser[name]) if parser.has_section(name) else {}
