"""Names of a managed landing table's stored columns beyond the declared ones, and of its later versions."""

import re

# the second column of a widened type, `n@bigint`, and a column whose name was already taken, `ip@2`
_RESERVED = re.compile(
    r"@(?:\d+|(?:tinyint|smallint|int|bigint|float|double|string|date|timestamp(?:_ntz)?|decimal-\d+-\d+)(?:@\d+)?)$"
)
_VERSIONS = ".versions"
RELAY = "relay"  # names the feeds between two versions, instead of a materialization


def wider_name(stored: str, type: str) -> str:
    """The column for values of `stored` that fit only the wider type."""
    return f"{stored}@{re.sub(r'[^a-z0-9_]+', '-', type).strip('-')}"


def numbered_name(name: str, number: int) -> str:
    """The column for a name whose own column stores the values of another."""
    return f"{name}@{number}"


def is_reserved(name: str) -> bool:
    """Whether a name has one of these forms, which no file may declare."""
    return _RESERVED.search(name) is not None


def version_folder(table: str) -> str:
    """The folder of a landing table's later versions: not its own, where VACUUM deletes everything that its log does not name."""
    return f"{table}{_VERSIONS}"


def is_later_version(path: str) -> bool:
    """Whether a version path is in such a folder, which console created and only console uses."""
    return path.rpartition("/")[0].endswith(_VERSIONS)
