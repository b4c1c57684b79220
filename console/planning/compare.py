"""What an edit of a query changes: its rows, and what stands in each of its columns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from console.planning.sql.compile import Known
from console.planning.sql.meaning import meaning
from console.planning.sql.relation import Relation, Value, physical
from console.planning.sql.tree import Tables, Text, parse, qualified

Verdict = Literal["same", "changed", "unknown"]


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """Old and new, compared by what they mean.

    rows     `unknown` where it cannot be told, which counts as changed
    same …   columns by name, in the order of the query that has them; a renamed one, old → new, stands in no other list
    why      one sentence: what differs, or what could not be understood
    """

    rows: Verdict
    same: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    why: str = ""

    @property
    def equal(self) -> bool:
        return self.rows == "same" and not (self.changed or self.added or self.removed or self.renamed)

    @property
    def additive(self) -> bool:
        """Only columns more: whoever reads the old ones reads the same."""
        return self.rows == "same" and not (self.changed or self.removed or self.renamed)

    def document(self) -> dict[str, Any]:
        """As `console compare --output json` prints it."""
        return {
            "rows": self.rows,
            "columns": {
                "same": list(self.same),
                "changed": list(self.changed),
                "added": list(self.added),
                "removed": list(self.removed),
                "renamed": dict(self.renamed),
            },
            "why": self.why,
        }


def compare(old_sql: str, new_sql: str, schema: Tables | None = None) -> QueryDifference:
    """Compare two queries by what they mean; neither is run.

    schema  table → column → Spark type; None where it is not known
    returns  `unknown` with the reason, never an error, where one of them cannot be understood
    """
    texts = [Text(old_sql, "", "the old query"), Text(new_sql, "", "the new query")]
    known = Known(schema or {}, {name: _source(name, columns) for name, columns in (schema or {}).items()})
    old, new = (_evaluate(text, known) for text in texts)
    for text, found in zip(texts, (old, new), strict=True):
        if found is None:
            return QueryDifference("unknown", why=f"{text.node}: {text.problems[0].message}")
    assert old is not None
    assert new is not None
    return difference(old, new)


def difference(old: Relation, new: Relation) -> QueryDifference:
    """The same for two queries that are already evaluated."""
    added = [name for name in new.columns if name not in old.columns]
    removed = [name for name in old.columns if name not in new.columns]
    renamed = _renamed(old, new, removed, added)
    both = [name for name in new.columns if name in old.columns]
    same = [name for name in both if old.columns[name].hash == new.columns[name].hash]
    changed = [name for name in both if name not in same]
    rows: Verdict = "same" if old.rows == new.rows else "changed"
    why = "the rows come about in another way" if rows == "changed" else "the rows are the same"
    return QueryDifference(
        rows,
        tuple(same),
        tuple(changed),
        tuple(name for name in added if name not in renamed.values()),
        tuple(name for name in removed if name not in renamed),
        renamed,
        why,
    )


def _renamed(old: Relation, new: Relation, removed: Iterable[str], added: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for was in removed:
        match = next(
            (now for now in added if now not in found.values() and _is(old.columns[was], new.columns[now])), None
        )
        if match is not None:
            found[was] = match
    return found


def _is(one: Value, other: Value) -> bool:
    return one.hash == other.hash


def _source(name: str, columns: Mapping[str, str]) -> Relation:
    return physical(name.lower(), "", {column: f"{column.lower()}:{kind}" for column, kind in columns.items()})


def _evaluate(text: Text, known: Known) -> Relation | None:
    tree = parse(text)
    done = qualified(tree, text, known.tables, known.mapping()) if tree is not None else None
    return meaning(done, known.relations) if done is not None and not text.problems else None
