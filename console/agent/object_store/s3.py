"""Objects of an S3 bucket, through the client library that deltalake is built on."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from console.agent.errors import ObjectExists, StoreUnreachable
from console.errors import RegionError, installing

_T = TypeVar("_T")

# A renewal that takes longer than this comes too late anyway; the lease repeats it, and knows what a lost answer means.
TIMEOUT_SECONDS = 5.0
DELETED_AT_ONCE = 1000  # keys in one request, S3's limit


class ClientRetries(Enum):
    """How long a request is repeated by the client itself."""

    NONE = 0  # its caller knows what a lost answer means, and how much time is left
    SOME = 3  # reads, and writes that may be repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Access:
    """How a bucket is reached. What is empty comes from the environment (`AWS_…`) or from the instance.

    endpoint  of an S3 server that is not Amazon's: http://… or https://…
    """

    endpoint: str = ""
    region: str = ""
    key_id: str = ""
    secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "S3Access":
        """As the environment has it, where console puts the keys of a profile too (`aws_profile.of_profile`)."""
        return cls(
            endpoint=environment.get("AWS_ENDPOINT_URL", ""),
            region=environment.get("AWS_REGION", ""),
            key_id=environment.get("AWS_ACCESS_KEY_ID", ""),
            secret=environment.get("AWS_SECRET_ACCESS_KEY", ""),
            token=environment.get("AWS_SESSION_TOKEN", ""),
        )

    def storage_options(self) -> dict[str, str]:
        """As deltalake takes them. Its puts are not repeated by themselves for long: the log says whether one landed."""
        given = {
            "aws_endpoint_url": self.endpoint,
            "aws_region": self.region,
            "aws_access_key_id": self.key_id,
            "aws_secret_access_key": self.secret,
            "aws_session_token": self.token,
            "aws_conditional_put": "etag",
            "aws_allow_http": "true" if self.endpoint.startswith("http://") else "",
            "timeout": f"{TIMEOUT_SECONDS:.0f}s",
            "connect_timeout": f"{TIMEOUT_SECONDS:.0f}s",
            "max_retries": "2",
        }
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class Listed:
    """An object in a list. tag: another one for each content"""

    key: str
    bytes: int
    tag: str


class S3Objects:
    """raises  RegionError E_EXTRA if the library is not installed"""

    def __init__(self, bucket: str, prefix: str, access: S3Access, retries: ClientRetries = ClientRetries.NONE) -> None:
        try:
            from obstore.store import S3Store
        except ImportError:
            raise RegionError(
                f"s3://{bucket}: the library that reaches it is not installed", hint=installing("s3"), code="E_EXTRA"
            ) from None

        self.address = "/".join(filter(None, (f"s3://{bucket}", prefix)))
        given = {
            "endpoint": access.endpoint,
            "region": access.region,
            "access_key_id": access.key_id,
            "secret_access_key": access.secret,
            "session_token": access.token,
        }
        seconds = timedelta(seconds=TIMEOUT_SECONDS * (1 + retries.value))
        client: dict[str, Any] = {"timeout": seconds, "connect_timeout": seconds}
        if access.endpoint.startswith("http://"):
            client["allow_http"] = True
        self._store = S3Store(
            bucket,
            prefix=prefix or None,
            conditional_put="etag",
            client_options=client,
            retry_config={"max_retries": retries.value},
            **{name: value for name, value in given.items() if value},
        )

    def put_if_absent(self, key: str, data: bytes) -> None:
        from obstore import put

        self._answered(key, lambda: put(self._store, key, data, mode="create", use_multipart=False))

    def put(self, key: str, data: bytes) -> None:
        from obstore import put

        self._answered(key, lambda: put(self._store, key, data, use_multipart=False))

    def copy(self, key: str, to: str) -> None:
        """Copy an object within the bucket in one request, which S3 takes for up to 5 GiB."""
        from obstore import copy

        self._answered(to, lambda: copy(self._store, key, to))

    def read(self, key: str) -> bytes | None:
        from obstore import get

        try:
            return self._answered(key, lambda: bytes(get(self._store, key).bytes()))
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        from obstore import list_with_delimiter

        found = self._answered(folder, lambda: list_with_delimiter(self._store, folder))
        return sorted(entry["path"].rpartition("/")[2] for entry in found["objects"])

    def listed(self, prefix: str, after: str = "") -> list[Listed]:
        """The objects below a folder, in the order of their keys. after: a key; only those behind it"""
        from obstore import list as list_objects

        def ask() -> list[Any]:
            return list(list_objects(self._store, prefix, offset=after or None).collect())

        found = self._answered(prefix, ask)
        listed = [Listed(entry["path"], int(entry["size"]), str(entry["e_tag"] or "")) for entry in found]
        return sorted(listed, key=lambda entry: entry.key)

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly in a folder, in order."""
        from obstore import list_with_delimiter

        found = self._answered(folder, lambda: list_with_delimiter(self._store, folder or None))
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"])

    def head(self, key: str) -> Listed | None:
        """None if there is no such object."""
        from obstore import head

        try:
            found = self._answered(key, lambda: head(self._store, key))
        except FileNotFoundError:
            return None
        return Listed(key, int(found["size"]), str(found["e_tag"] or ""))

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """raises  FileNotFoundError"""
        from obstore import get_range

        return self._answered(key, lambda: bytes(get_range(self._store, key, start=start, length=length)))

    def delete(self, keys: Iterable[str], check: Callable[[], None] = lambda: None) -> None:
        """Delete objects; those that are not there count as deleted. check: called before each request"""
        from obstore import delete

        remaining = iter(keys)
        while some := list(islice(remaining, DELETED_AT_ONCE)):
            check()
            self._answered(some[0], partial(delete, self._store, some))

    def _answered(self, key: str, call: Callable[[], _T]) -> _T:
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        try:
            return call()
        except (AlreadyExistsError, PreconditionError):
            raise ObjectExists(f"{self.address}/{key} exists") from None
        except BaseError as error:
            reason = str(error).partition("\n")[0]
            raise StoreUnreachable(f"{self.address}/{key}: {reason}") from None
