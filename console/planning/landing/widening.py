"""Types to which a landing table's column may change while its rows stay: every value has one reading in the new type."""

from console.planning.sql.convert import kept

_TO_TEXT = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp", "timestamp_ntz")


def widened(old: str, new: str) -> bool:
    """old, new: as `tree.kind` spells types"""
    if kept(old, new) == "wider":
        return True
    if new == "string":
        return old in _TO_TEXT or old.startswith("decimal")
    return old == "date" and new in ("timestamp", "timestamp_ntz")
