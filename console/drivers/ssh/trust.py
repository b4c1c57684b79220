"""Trust and authentication: host keys from files that only their owner may write, our key by reference."""

import os
import shlex
import stat
from pathlib import Path
from typing import Any

import asyncssh

from console.errors import DataError, RegionError
from console.text import hide

_USUAL = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
_MOST_BYTES = 4 << 20


class HostKeys(asyncssh.SSHClient):
    """The host keys against which one hop is checked; any other key is recorded and refused.

    files    as named in the inventory, or the usual two of OpenSSH
    offered  the refused key, "" if none: `SHA256:… (ssh-ed25519)`

    raises  DataError for a file that cannot be used
    """

    def __init__(self, region: str, named: str) -> None:
        self.files = [Path(place).expanduser() for place in ([named] if named else _USUAL)]
        self.offered = ""
        texts = [_read(region, "known_hosts", path, 0o002) for path in self.files if named or path.exists()]
        try:
            self.known = asyncssh.import_known_hosts("\n".join(texts))
        except ValueError as error:
            raise DataError(
                f"{region}: known_hosts: {self.files[0]}: {error}",
                region=region,
                hint="remove that line",
                code="E_KNOWN_HOSTS",
            ) from None

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.offered = f"{key.get_fingerprint()} ({key.get_algorithm()})"
        return False

    def trusts(self, host: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Whether the files have this key for this host; records it if they do not."""
        keys, authorities, revoked, *_ = self.known.match(host, "", port)
        return (
            bool(authorities)
            or (key in keys and key not in revoked)
            or self.validate_host_public_key(host, "", port, key)
        )

    def knows(self, host: str, port: int) -> bool:
        """Whether the files have any key for this host."""
        keys, authorities, *_ = self.known.match(host, "", port)
        return bool(keys or authorities)


def refused(region: str, keys: HostKeys, host: str, port: int, reason: str) -> RegionError:
    """The error for a host that failed authentication, with the fingerprint and the command to type."""
    file = shlex.quote(str(keys.files[0]))
    place = host if port == 22 else f"[{host}]:{port}"
    shown = keys.offered or reason
    if keys.knows(host, port):
        return RegionError(
            f"{region}: the host key of {place} is not the one in {keys.files[0]}: it is {shown}",
            region=region,
            hint=f"the host was reinstalled, or somebody intercepts the connection: ask its owner before "
            f"ssh-keygen -R {shlex.quote(place)} -f {file}",
            code="E_HOST_KEY",
        )
    return RegionError(
        f"{region}: the host key of {place} is not known: {shown}",
        region=region,
        hint=f"compare it with `ssh-keygen -lf` on the host, then: ssh-keyscan -p {port} {shlex.quote(host)} >> {file}",
        code="E_HOST_KEY",
    )


def signing(region: str, reference: str) -> dict[str, Any]:
    """Our authentication as asyncssh options: only the named key, else the default ones and the ssh-agent's.

    raises  DataError for a key that is missing, open to others, or locked by a passphrase
    """
    if not reference:
        return {}
    kind, _, place = reference.partition(":")
    if kind == "env":
        if place not in os.environ:
            raise DataError(
                f"{region}: transport.ssh.key: {place} is not set in the environment", region=region, code="E_KEY"
            )
        text = os.environ[place]
        hide([("private_key", text)])
    elif kind == "file":
        text = _read(region, "key", Path(place).expanduser(), 0o077)
    else:
        raise DataError(
            f"{region}: transport.ssh.key: a `{kind}:` reference holds no SSH key",
            region=region,
            hint="file:PATH or env:NAME; or leave it out and ssh-add the key",
            code="E_KEY",
        )
    try:
        key = asyncssh.import_private_key(text)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        locked = "passphrase" in str(error).lower() or isinstance(error, asyncssh.KeyEncryptionError)
        why = "is protected by a passphrase" if locked else "is not a private key in a supported format"
        hint = (
            "ssh-add it and leave `key` out: a passphrase is never asked for" if locked else "make one with ssh-keygen"
        )
        raise DataError(
            f"{region}: transport.ssh.key: {kind}:{place} {why}", region=region, hint=hint, code="E_KEY"
        ) from None
    return {"client_keys": [key], "agent_path": None}


def _read(region: str, what: str, path: Path, closed: int) -> str:
    """Content of a small regular file whose mode lacks these bits.

    raises  DataError
    """

    def wrong(why: str, hint: str = "") -> DataError:
        return DataError(
            f"{region}: transport.ssh.{what}: {path} {why}", region=region, hint=hint, code=f"E_{what.upper()}"
        )

    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MOST_BYTES:
                raise wrong("is not a file of keys")
            if facts.st_mode & closed:
                who = "read" if closed & 0o040 else "write"
                raise wrong(f"is one that others may {who}", f"chmod go-rwx {shlex.quote(str(path))}")
            return file.read().decode("utf-8")
    except OSError as error:
        raise wrong(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise wrong("is not text") from None
