"""A folder that follows a warehouse in a bucket, for those who know a region by its files alone.

One listing is one moment of the bucket; of several pages the later ones are younger, and the files of a table come behind
its log. Imports nothing of the program whose region it copies.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from obstore.store import S3Store

TRIES = 20  # an object that was listed may be deleted before it is read
UNNAMED = "_last_checkpoint"  # overwritten in place: without it a reader looks for checkpoints by itself


class Mirror:
    """address  `s3://bucket/folder`;  folder: where its objects lie here;  store: as deltalake's storage options"""

    def __init__(self, address: str, folder: Path, store: Mapping[str, str]) -> None:
        bucket, _, self._prefix = address.removeprefix("s3://").partition("/")
        account = {
            "access_key_id": store["AWS_ACCESS_KEY_ID"],
            "secret_access_key": store["AWS_SECRET_ACCESS_KEY"],
            "region": store["AWS_REGION"],
        }
        self._client: Any = S3Store(
            bucket, endpoint=store["AWS_ENDPOINT_URL"], client_options={"allow_http": True}, **account
        )
        self._folder = folder
        self._copied: dict[str, str] = {}

    def sync(self) -> None:
        """Bring the folder to what the bucket holds now."""
        for _ in range(TRIES):
            listed = {item["path"]: str(item["e_tag"]) for item in self._client.list(f"{self._prefix}/").collect()}
            listed = {path: tag for path, tag in listed.items() if not path.endswith(UNNAMED)}
            for path in self._copied.keys() - listed.keys():
                self._place(path).unlink()
                del self._copied[path]
            try:
                for path, tag in sorted(listed.items(), reverse=True):  # files before the log that names them
                    if self._copied.get(path) != tag:
                        self._copy(path, tag)
            except FileNotFoundError:
                continue
            return
        raise RuntimeError(f"{self._prefix}: objects vanish while they are copied")

    def newest(self, folder: str, suffix: str) -> bytes:
        """The content of the last object of a folder by name, b"" where there is none."""
        paths = [item["path"] for item in self._client.list(f"{self._prefix}/{folder}/").collect()]
        last = max((path for path in paths if path.endswith(suffix)), default="")
        return bytes(self._client.get(last).bytes()) if last else b""

    def _copy(self, path: str, tag: str) -> None:
        place = self._place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{place.name}.part")
        part.write_bytes(bytes(self._client.get(path).bytes()))
        os.replace(part, place)
        self._copied[path] = tag

    def _place(self, path: str) -> Path:
        return self._folder / path.removeprefix(f"{self._prefix}/")
