"""The address of a Spark Connect server, as Spark's own clients write it."""

import re

from console.record import dataclass
from console.text import secret

PORT = 15002  # Spark's own
FORM = "sc://HOST, sc://HOST:PORT, or with options sc://HOST:PORT/;use_ssl=true"
# Spark's client reads a token from here, and encrypts the connection then
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"

_ADDRESS = re.compile(
    r"sc://(?P<host>[^\s:/;?#@,\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?(?:/(?:;(?P<options>\S*))?)?"
)
_OPTION = re.compile(r"(?P<name>[A-Za-z][\w-]*)=[^;=\s]+")
_OURS = ("token", "session_id")  # a secret has no place in a file, and each use has a session of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectAddress:
    """A server's address. text: as it was written"""

    text: str
    host: str
    port: int = PORT


def connect_address(text: str) -> ConnectAddress:
    """raises  ValueError with the expected form; the text itself is not in it, since it may hold a token"""
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"] or PORT) if found else 0
    if found is None or not 0 < port < 1 << 16:
        raise ValueError(f"expected {FORM}")
    for option in filter(None, (found["options"] or "").split(";")):
        named = _OPTION.fullmatch(option)
        if named is None:
            raise ValueError(f"expected {FORM}")
        if named["name"] in _OURS or secret(named["name"]):
            raise ValueError(
                f"expected an address without {named['name']}; a token is read from the environment, {TOKEN}"
            )
    return ConnectAddress(text=text, host=found["host"], port=port)
