"""Names of the columns that a managed landing table stores besides those that its file declares."""

import re

# the second column of a wider type, `n@bigint`, and the column of a name that another one has taken, `ip@2`
_RESERVED = re.compile(
    r"@(?:\d+|(?:tinyint|smallint|int|bigint|float|double|string|date|timestamp(?:_ntz)?|decimal-\d+-\d+)(?:@\d+)?)$"
)


def wider_name(stored: str, type: str) -> str:
    """The column for values of `stored` that only the wider type holds."""
    return f"{stored}@{re.sub(r'[^a-z0-9_]+', '-', type).strip('-')}"


def numbered_name(name: str, number: int) -> str:
    """The column of a name whose own column keeps the values of another."""
    return f"{name}@{number}"


def is_reserved(name: str) -> bool:
    """Whether a name is built like these, so that no file may declare it."""
    return _RESERVED.search(name) is not None
