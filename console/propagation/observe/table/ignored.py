"""Actions of ALTER TABLE that change no column, by their first words.

source  PostgreSQL 15 documentation, ALTER TABLE
"""

from collections.abc import Callable
from typing import Final

OF_THE_DATABASE: Final = "it concerns PostgreSQL alone"
KEY: Final = "the stores keep the order that they have: console schema verify compares it with PostgreSQL's key"
# the first words of an action → its kind; none of them changes a column; longer beginnings first
IGNORED: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("drop", "constraint"), "drop_constraint"),
    (("validate", "constraint"), "add_constraint"),
    (("alter", "constraint"), "alter_constraint"),
    (("rename", "constraint"), "rename_constraint"),
    (("owner", "to"), "privilege"),
    (("set", "tablespace"), "storage"),
    (("set", "access", "method"), "storage"),
    (("set", "logged"), "storage"),
    (("set", "unlogged"), "storage"),
    (("set", "without"), "storage"),
    (("set", "with"), "storage"),
    (("set", "("), "storage"),
    (("reset",), "storage"),
    (("cluster",), "storage"),
    (("enable", "row"), "policy"),
    (("disable", "row"), "policy"),
    (("enable",), "trigger"),
    (("disable",), "trigger"),
    (("force",), "policy"),
    (("no", "force"), "policy"),
    (("no", "inherit"), "inherit"),
    (("inherit",), "inherit"),
    (("not", "of"), "inherit"),
    (("of",), "inherit"),
    (("replica", "identity"), "replica_identity"),
    (("attach", "partition"), "partition"),
    (("detach", "partition"), "partition"),
    (("options",), "storage"),
)
COLUMN_IGNORED: Final[tuple[tuple[str, ...], ...]] = (
    ("set", "statistics"), ("set", "storage"), ("set", "compression"), ("set", "("), ("reset",), ("options",),
    ("set", "generated"), ("restart",), ("set", "sequence"), ("set", "increment"), ("set", "cache"), ("set", "start"),
    ("set", "minvalue"), ("set", "maxvalue"), ("set", "no"), ("set", "cycle"), ("add", "generated"),
    ("drop", "identity"), ("drop", "expression"), ("set", "expression"),
)  # fmt: skip
_REASONS: Final = {
    ("drop", "constraint"): f"it changes no column; where it is the primary key, {KEY}",
    (
        "replica",
        "identity",
        "nothing",
    ): "from here on no UPDATE and no DELETE of its rows is published: stores keep what was",
    ("replica", "identity"): "which old values an UPDATE or a DELETE is published with",
}


def reason(begins: Callable[..., bool]) -> str:
    """Why an action that changes no column is ignored. begins: whether it begins with these words"""
    return next((why for words, why in _REASONS.items() if begins(*words)), OF_THE_DATABASE)
