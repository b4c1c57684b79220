"""An answer longer than a line of the protocol, in parts: its JSON, compressed."""

import base64
import binascii
import zlib
from collections.abc import Sequence

from console.errors import DataError

CHARACTERS = 700_000  # of a part; a line of the protocol is at most 1 MiB
BYTES = 1 << 28  # of an answer, at most
_FAST = 1


def packed(text: str) -> tuple[str, ...]:
    """The parts of a text; at least one."""
    data = base64.b64encode(zlib.compress(text.encode(), _FAST)).decode()
    return tuple(data[at : at + CHARACTERS] for at in range(0, len(data), CHARACTERS))


def unpacked(parts: Sequence[str]) -> str:
    """The text of its parts, in order. raises  DataError for anything else than such parts, or a text above the limit"""
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode("".join(parts), validate=True), BYTES)
        if not unpacking.eof:
            raise DataError(f"an answer in parts that is not complete, or longer than {BYTES:,} bytes")
        return data.decode()
    except (binascii.Error, zlib.error, UnicodeError, ValueError) as error:
        raise DataError(f"an answer in parts that cannot be unpacked: {error}") from None
