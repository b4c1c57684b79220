"""Names of what a managed landing table stores besides the columns that its file declares, and of its later versions."""

import re

# the second column of a wider type, `n@bigint`, and the column of a name that another one has taken, `ip@2`
_RESERVED = re.compile(
    r"@(?:\d+|(?:tinyint|smallint|int|bigint|float|double|string|date|timestamp(?:_ntz)?|decimal-\d+-\d+)(?:@\d+)?)$"
)
_VERSIONS = ".versions"
RELAY = "relay"  # names the feeds between two versions, in the place of a materialization


def wider_name(stored: str, type: str) -> str:
    """The column for values of `stored` that only the wider type holds."""
    return f"{stored}@{re.sub(r'[^a-z0-9_]+', '-', type).strip('-')}"


def numbered_name(name: str, number: int) -> str:
    """The column of a name whose own column keeps the values of another."""
    return f"{name}@{number}"


def is_reserved(name: str) -> bool:
    """Whether a name is built like these, so that no file may declare it."""
    return _RESERVED.search(name) is not None


def version_folder(table: str) -> str:
    """The folder of a landing table's later versions: not its own, in which VACUUM deletes what its log does not name."""
    return f"{table}{_VERSIONS}"


def is_later_version(path: str) -> bool:
    """Whether a version path is one of these: console made that folder, and nobody else knows it."""
    return path.rpartition("/")[0].endswith(_VERSIONS)
