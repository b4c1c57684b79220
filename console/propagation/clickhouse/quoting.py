"""Names and texts quoted so that ClickHouse accepts every character."""

import re
from typing import Final

_NAME: Final = r"`(?:[^`\\]|\\.)*`"
_HEAD: Final = re.compile(
    r"(?:ALTER TABLE|CREATE (?:OR REPLACE |MATERIALIZED )?VIEW|DROP (?:VIEW|TABLE|DATABASE) IF EXISTS"
    rf"|CREATE (?:TABLE|DATABASE)(?: IF NOT EXISTS)?) {_NAME}(?:\.{_NAME})?",
    re.DOTALL,
)


def quoted(name: str) -> str:
    """An identifier."""
    return "`" + _escaped(name, "`") + "`"


def qualified(name: str) -> str:
    """`database.table` with each part quoted."""
    return ".".join(quoted(part) for part in name.split(".", 1))


def literal(text: str) -> str:
    """A text."""
    return "'" + _escaped(text, "'") + "'"


def on_cluster(sql: str, cluster: str) -> str:
    """A statement for every host of a cluster; unchanged without one."""
    if not cluster:
        return sql
    clause = f"ON CLUSTER {quoted(cluster)}"
    if sql.startswith("EXCHANGE "):
        return f"{sql} {clause}"
    head = _HEAD.match(sql)
    assert head is not None, "statements are made here"
    return f"{sql[: head.end()]} {clause}{sql[head.end() :]}"


def _escaped(text: str, quote: str) -> str:
    return text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
