"""The files of a pipeline as written, comments included, for comparison with a later version."""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping

from console.errors import DataError
from console.record import dataclass

_MOST = 64 << 20  # bytes of all texts, far above any real pipeline


@dataclass(frozen=True)
class Sources:
    """Files below a pipeline's folder.

    digest  sha256, in hex, over names and texts
    packed  names and texts as JSON, deflated, in base64: a tenth of their size, since a plan is sent as one line
    """

    digest: str
    packed: str

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> "Sources":
        """texts: name below the folder (`tables/requests.yaml`) → text"""
        data = json.dumps(dict(sorted(texts.items())), separators=(",", ":")).encode()
        return cls(hashlib.sha256(data).hexdigest(), base64.b64encode(zlib.compress(data)).decode())

    def texts(self) -> dict[str, str]:
        """raises  DataError if damaged"""
        try:
            unpacking = zlib.decompressobj()
            data = unpacking.decompress(base64.b64decode(self.packed, validate=True), _MOST)
            if hashlib.sha256(data).hexdigest() != self.digest:
                raise ValueError("another digest")
            return {str(name): str(text) for name, text in json.loads(data).items()}
        except (ValueError, zlib.error, AttributeError) as error:
            raise DataError(f"the files that a release keeps cannot be read: {error}", code="E_SOURCES") from None
