"""Landing tables drawn at random, and the truth about their rows in plain Python. Imports nothing of console.

A world is one landing table: the type of its partition column and values that hurt, a writer, features of the table, and
what happens to it before and after a rollout's fence. `rows` is what a reader must see of it, by the Delta protocol.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

Writer = Literal["spark", "deltalake", "hand"]
WRITERS: tuple[Writer, ...] = ("spark", "deltalake", "hand")
Row = dict[str, Any]

HIVE = "__HIVE_DEFAULT_PARTITION__"
TEXTS = (
    "Zürich", "", HIVE, "a/b", "a=b", "100%", "%41", "%2F", "w[1]", "{x}*?", " sp ", "ja\nnein", "'\"\\", "日本語", ".x", "_x", "#?&+",
    "null", "NULL", "x" * 60, "\u00e9", "e\u0301", None,
)  # fmt: skip
PARTS: dict[str, Sequence[Any]] = {
    "string": TEXTS,
    "int": (0, -5, 2**31 - 1, -(2**31), None),
    "bigint": (7, -(2**63), 2**63 - 1, None),
    "date": (date(2026, 11, 1), date(1970, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None),
    "timestamp": (datetime(2026, 11, 1, 1, 2, 3, 456789, UTC), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC), None),
    "boolean": (True, False, None),
    "decimal(10,2)": (Decimal("1.50"), Decimal("-0.01"), Decimal("99999999.99"), None),
    "double": (0.5, -1.5, 1e300, math.inf, -math.inf, math.nan, None),
    "binary": (b"ab", "é".encode(), None),
}  # fmt: skip
# deltalake spells negative decimals and large doubles so that nobody reads them, itself included; Hive's word for NULL
# it spells as NULL where the same commit has a NULL as well, and whenever it compacts
SPELLED: dict[str, Sequence[Any]] = {
    "string": tuple(value for value in TEXTS if value != HIVE),
    "decimal(10,2)": (Decimal("1.50"), Decimal("0.05"), None),
    "double": (0.5, -1.5, 1e-7, math.inf, math.nan, None),
}
FEATURES: dict[Writer, tuple[str, ...]] = {
    "spark": (
        "", "name", "id", "vectors", "rows", "in-commit", "v2", "cluster", "widening", "check", "default", "generated", "identity",
        "zoneless", "variant", "void", "name+vectors", "parts", "feed",
    ),
    "deltalake": ("", "checkpoint"),
    "hand": ("", "name", "id", "legacy name", "vectors", "name+vectors", "hidden", "elsewhere", "uncounted", "odd names", "int96"),
}  # fmt: skip
ACTS: dict[Writer, tuple[str, ...]] = {
    "spark": ("", "delete", "optimize", "add column", "checkpoint", "cleanup"),
    "deltalake": ("", "delete", "optimize", "add column", "checkpoint", "cleanup"),
    "hand": ("", "add column"),
}
# of tables with column mapping; `swap` is the usual end of a safe change: k goes under another name, a new k comes
MAPPED = ("rename column", "drop column", "swap")
BEFORE = {
    "spark": ("vacuum",),
    "deltalake": ("vacuum",),
    "hand": (),
}  # live, it takes away files that nobody has read yet
LOST = "lost column"  # a column that is read goes under another name: nobody can follow, and the feed has to say so


@dataclass
class World:
    """seed and number say everything again; `kind` is the partition column's type, "" for a table without partitions."""

    number: int
    writer: Writer
    feature: str
    kind: str
    target: str  # the column by which our own tables are partitioned, "" for none
    days: bool  # whether history is cut by days
    before: str  # what happens to the table between two commits of its history
    after: str  # and between two live ones
    chance: random.Random
    rows: list[Row] = field(default_factory=list)  # that must flow
    written: int = 0
    fence: int = -1  # the last version of its history
    stands: bool = False  # whether nobody can follow any longer
    by_k: bool = False  # partitioned by k as well

    @property
    def by(self) -> list[str]:
        """Its partition columns."""
        return (["p"] if self.kind else []) + (["k"] if self.by_k else [])

    def __str__(self) -> str:
        text = f"by {self.writer}, {self.feature or 'plain'}, partitioned by {self.kind or 'nothing'}{' and k' if self.by_k else ''}, ours by {self.target or 'nothing'}"
        return (
            f"world {self.number}: {text}, before: {self.before or '-'}, after: {self.after or '-'}, days: {self.days}"
        )

    def draw(self, many: int) -> list[Row]:
        """New rows, as they are handed to the writer."""
        return [self._row() for _ in range(many)]

    def _row(self) -> Row:
        pick, self.written = self.chance.choice, self.written + 1
        row: Row = {
            "id": self.written,
            "ts": datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=self.chance.randrange(3 * 86400)),
            "k": pick(SPELLED["string"] if self.by_k and self.writer == "deltalake" else TEXTS),
            "s": pick((None, {"a": self.chance.randrange(9), "b": pick((None, {"c": pick(TEXTS)}))})),
            "l": pick((None, [{"v": pick(TEXTS)}, {"v": None}])),
            "m": pick((None, {"k": pick((None, {"w": self.written}))})),
        }
        if self.kind:
            row["p"] = pick(
                PARTS[self.kind] if self.writer != "deltalake" else SPELLED.get(self.kind, PARTS[self.kind])
            )
        return row

    def lands(self, rows: list[Row]) -> None:
        if not self.stands:
            self.rows += [self.stored(row) for row in rows]

    def rewritten(self, act: str, doomed: list[int]) -> None:
        """What is left of the rows so far for who reads them after this."""
        match act:
            case "delete":
                self.rows = [row for row in self.rows if row["id"] not in doomed]
            case "swap":
                for row in self.rows:
                    row["k"] = None

    def acted(self, act: str) -> None:
        """The rows so far have been appended for good, whatever became of them since."""
        self.stands = act == LOST

    def stored(self, row: Row) -> Row:
        """What a reader of the landing table has to see of a row. A Delta log has no empty text of a partition, and writers
        that name folders as Hive does have no text that is Hive's own word for NULL."""
        empty = ("",) if self.writer == "hand" else ("", HIVE)
        return row | {name: None if row.get(name) in empty else row.get(name) for name in ("p", *self.by)}

    def shown(self, row: Row) -> Row:
        """One row of our own tables: what `SQL` makes of a stored one."""
        s, m = row["s"] or {}, row["m"] or {}
        out: Row = {
            "id": row["id"], "ts": row["ts"], "k": row["k"], "sa": s.get("a"), "sc": (s.get("b") or {}).get("c"),
            "lv": row["l"][0]["v"] if row["l"] else None, "mw": (m.get("k") or {}).get("w"),
        }  # fmt: skip
        if self.kind:
            out["p"] = row["p"]
        if self.target and out[self.target] in ("", HIVE):
            out[self.target] = None  # ours are written as Hive names folders, too
        return out

    @property
    def sql(self) -> str:
        return "SELECT id, ts, k, s.a AS sa, s.b.c AS sc, l[0].v AS lv, m['k'].w AS mw" + (", p" if self.kind else "")

    @property
    def columns(self) -> dict[str, str]:
        own = {"id": "bigint", "ts": "timestamp", "k": "string", "s": "struct<a:int,b:struct<c:string>>",
               "l": "array<struct<v:string>>", "m": "map<string,struct<w:int>>"}  # fmt: skip
        return {**own, "p": self.kind} if self.kind else own

    @property
    def copied(self) -> dict[str, str]:
        own = {
            "id": "bigint",
            "ts": "timestamp",
            "k": "string",
            "sa": "int",
            "sc": "string",
            "lv": "string",
            "mw": "int",
        }
        return {**own, "p": self.kind} if self.kind else own


def is_mapped(feature: str) -> bool:
    return "name" in feature.replace("odd names", "") or feature == "id"


def acts(writer: Writer, feature: str, *, after: bool) -> tuple[str, ...]:
    """What may happen between two commits of such a table, to its history or after it."""
    own = (*ACTS[writer], *(MAPPED if is_mapped(feature) else ()))
    return (*own, *((LOST,) if is_mapped(feature) else ())) if after else (*own, *BEFORE[writer])


def drawn(number: int, writer: Writer, feature: str, chance: random.Random) -> World:
    kinds = [kind for kind in PARTS if writer == "spark" or kind != "binary"]
    kind = "" if feature == "cluster" else chance.choice(["", "string", "string", *kinds])
    ours = ["", "k"] + (["p"] if kind else [])
    return World(
        number,
        writer,
        feature,
        kind,
        chance.choice(ours),
        chance.random() < 0.5,
        chance.choice(acts(writer, feature, after=False)),
        chance.choice(acts(writer, feature, after=True)),
        random.Random(chance.random()),
        by_k=not is_mapped(feature) and feature != "cluster" and chance.random() < 0.3,
    )


def worlds(seed: int, many: int) -> list[World]:
    """The worlds of one seed; each writer in turn, so that a few of them already know all three."""
    chance = random.Random(seed)
    turns = [WRITERS[number % len(WRITERS)] for number in range(many)]
    return [drawn(number, writer, chance.choice(FEATURES[writer]), chance) for number, writer in enumerate(turns)]


def form(value: Any) -> Any:
    """A value in one form whoever read it."""
    match value:
        case datetime():
            at = value if value.tzinfo else value.replace(tzinfo=UTC)
            return f"@{(at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)}"
        case Decimal():
            return f"{value:f}"
        case float():
            return repr(value)
        case bytes():
            return value.hex()
        case date():
            return value.isoformat()
    return value
