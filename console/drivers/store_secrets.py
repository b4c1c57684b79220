"""Credentials of a region's bucket, by the references in its `secrets`: looked up here, and handed to its processes in their environment.

A value is never on a command line, in a file of ours, in a message or in a log.
"""

import os
import shlex
import stat
import subprocess
import time
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path

from console.errors import RegionError
from console.model.region import STORE_SECRETS, Region
from console.text import hide

_BUCKETS = ("s3://", "s3a://")
CACHED_SECONDS = 300.0  # temporary keys are looked up again before they can have ended
_COMMAND_SECONDS = 30.0
_MOST_BYTES = 1 << 16
# what the libraries would otherwise take from our own environment, or prefer to keys
_OURS = (
    *(name.upper() for name in STORE_SECRETS),
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)

_looked_up: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[float, dict[str, str]]] = {}


def of_region(region: Region) -> Mapping[str, str]:
    """The region's own credentials as variables of a process's environment; {} if its bucket has none, and ours count.

    raises  RegionError E_CREDENTIALS naming the reference that leads to nothing
    """
    named = tuple((name, reference) for name, reference in region.secrets if name in STORE_SECRETS)
    if not named or not region.warehouse.startswith(_BUCKETS):
        return {}
    known = _looked_up.get((region.name, named))
    if known is not None and time.monotonic() - known[0] < CACHED_SECONDS:
        return known[1]
    _check_complete(region.name, {name for name, _ in named})
    found = {name.upper(): _value(region.name, name, reference) for name, reference in named}
    hide(found.items())
    _looked_up[(region.name, named)] = time.monotonic(), found
    return found


def environment(outside: Mapping[str, str], credentials: Mapping[str, str]) -> dict[str, str]:
    """An environment with these credentials in place of its own; unchanged without any."""
    if not credentials:
        return dict(outside)
    return {**{name: value for name, value in outside.items() if name not in _OURS}, **credentials}


def _check_complete(region: str, names: Iterable[str]) -> None:
    keys = {"aws_access_key_id", "aws_secret_access_key"}
    given = set(names)
    if missing := sorted(keys - given) if given - {"aws_profile"} else []:
        raise RegionError(
            f"{region}: secrets: {missing[0]} is missing beside {', '.join(sorted(given))}",
            region=region,
            hint="name both keys, or aws_profile alone",
            code="E_CREDENTIALS",
        )
    if len(given) > 1 and "aws_profile" in given:
        raise RegionError(
            f"{region}: secrets: aws_profile excludes keys",
            region=region,
            hint="name one of them",
            code="E_CREDENTIALS",
        )


def _value(region: str, name: str, reference: str) -> str:
    kind, _, place = reference.partition(":")
    match kind:
        case "env":
            text = os.environ.get(place, "")
            why = f"{place} is not set in the environment"
        case "file":
            text, why = _file(Path(place).expanduser())
        case "cmd":
            text, why = _printed(place)
        case _:
            text, why = _in_keyring(place)
    value = text.strip()
    if not value or any(ord(char) < 32 for char in value):
        raise RegionError(
            f"{region}: secrets.{name} leads to {'more than one line' if value else f'nothing: {why}'}",
            region=region,
            hint="correct the reference in the region's file, or what it leads to",
            code="E_CREDENTIALS",
        )
    return value


def _file(path: Path) -> tuple[str, str]:
    """The content of a file that only its owner may read; or "", and why."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MOST_BYTES:
                return "", f"{path} is not a file with a secret"
            if facts.st_mode & 0o077:
                return "", f"{path} is one that others may read: chmod go-rwx {shlex.quote(str(path))}"
            return file.read().decode("utf-8"), f"{path} is empty"
    except OSError as error:
        return "", f"{path} cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        return "", f"{path} is not text"


def _printed(command: str) -> tuple[str, str]:
    """What a command prints, without a shell; or "", and why. Its own words are not repeated: they may hold a secret."""
    try:
        words = shlex.split(command)
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_SECONDS, check=False
        )
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return "", f"the command cannot be run: {type(error).__name__}"
    if done.returncode:
        return "", f"the command ended with exit code {done.returncode}"
    return done.stdout.decode("utf-8", "replace"), "the command printed nothing"


def _in_keyring(place: str) -> tuple[str, str]:
    try:
        keyring = import_module("keyring")  # never required
    except ImportError:
        return "", "the package `keyring` is not installed beside console"
    service, _, user = place.partition("/")
    try:
        found: str = keyring.get_password(service, user) or ""
        return found, f"there is no password of {user or 'nobody'} for {service}"
    except Exception as error:  # of its backend, of whatever kind
        return "", f"the keyring cannot be read: {type(error).__name__}"
