"""The effects of editing a query: on its rows, and on the values of each column."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from console.planning.sql.relation import Relation, physical
from console.planning.sql.semantics import REPEATED, QuerySemantics, Unclear
from console.planning.sql.syntax import lenient
from console.planning.sql.tree import Tables

_SHOWN = 6  # names in a sentence
_IGNORED = ("ORDER BY",)
Verdict = Literal["same", "changed", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDifference:
    """Old and new query, compared by meaning.

    rows     `unknown` if it cannot be determined, which counts as changed
    same …   columns by name, in the order of the query that has them; a renamed one, old → new, is in no other list
    why      one sentence: the difference, or the part that could not be interpreted
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
        """Whether columns were only added, so that readers of the old ones see no change."""
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
    """Compare two queries by meaning; neither is run.

    schema   table → column → Spark type; tables that are not in it are assumed to have any column that is read
    returns  `unknown` with the reason, never an error, if one of them cannot be interpreted
    """
    tables = {name.lower(): _source(name, columns) for name, columns in (schema or {}).items()}
    trees: list[Any] = []
    for what, sql in (("old", old_sql), ("new", new_sql)):
        try:
            trees.append(lenient.parsed(sql))
        except Unclear as reason:
            return QueryDifference(rows="unknown", why=f"the {what} query is not understood: {reason}")
    semantics: list[QuerySemantics] = []
    for what, tree in zip(("old", "new"), trees, strict=True):
        try:
            semantics.append(lenient.understood(tree, tables))
        except Unclear as reason:
            return _by_name(trees, f"the {what} query is not understood: {reason}")
    names = {**lenient.spelled(trees[0]), **lenient.spelled(trees[1])}
    old_names = {**names, **lenient.spelled(trees[0])}
    return difference(semantics[0], semantics[1], names, old_names)


def difference(
    old: QuerySemantics,
    new: QuerySemantics,
    names: Mapping[str, str] | None = None,
    old_names: Mapping[str, str] | None = None,
) -> QueryDifference:
    """The same for two queries that have already been evaluated.

    names, old_names  lower case → spelling in the new and the old query
    """
    was, now = _columns(old.relation), _columns(new.relation)
    added = [name for name in now if name not in was]
    removed = [name for name in was if name not in now]
    renamed: dict[str, str] = {}
    for name in removed:
        alike = (other for other in added if other not in renamed.values() and now[other] == was[name])
        if (match := next(alike, None)) is not None:
            renamed[name] = match
    both = [name for name in now if name in was]
    rows, why = _rows(old, new)
    changed = [name for name in both if now[name] != was[name]]
    result = QueryDifference(
        rows=rows,
        same=tuple(name for name in both if name not in changed),
        changed=tuple(changed),
        added=tuple(name for name in added if name not in renamed.values()),
        removed=tuple(name for name in removed if name not in renamed),
        renamed=renamed,
        why=why,
    )
    result = _with_spelling(result, names or {}, old_names or {})
    return result if rows != "same" else replace(result, why=_column_reason(result, why))


def _columns(relation: Relation) -> dict[str, tuple[str, ...]]:
    """Name → value; a repeated name has the combined value of all its columns."""
    columns: dict[str, tuple[str, ...]] = {}
    for name, value in relation.columns.items():
        plain = name.rstrip(REPEATED)
        columns[plain] = (*columns.get(plain, ()), value.hash)
    if relation.rest:
        columns["*"] = tuple(sorted(rest.value.hash for rest in relation.rest))
    return columns


def _rows(old: QuerySemantics, new: QuerySemantics) -> tuple[Verdict, str]:
    before, after = set(old.notes), set(new.notes)
    moved = [what for what, _ in (*new.notes, *old.notes)]
    differ = {what for what, _ in before ^ after}
    if old.ties != new.ties and (tied := {call for call, _ in old.ties} & {call for call, _ in new.ties}):
        came = [{arrival for call, arrival in one.ties if call in tied} for one in (old, new)]
        if came[0] != came[1]:
            return "unknown", "rows that tie are taken in the order in which they come, and that order may differ"
    if old.relation.rows == new.relation.rows:
        return "same", "the order of the rows differs, which a table does not keep" if "ORDER BY" in differ else ""
    if doubts := old.relation.doubts ^ new.relation.doubts:
        return "unknown", "; ".join(sorted(doubts))
    clauses = [what for what in dict.fromkeys(moved) if what in differ and what not in _IGNORED]
    return (
        "changed",
        f"{_listed(clauses)} differ{'s' if len(clauses) == 1 else ''}"
        if clauses
        else "the rows come about differently",
    )


def _column_reason(difference: QueryDifference, order: str) -> str:
    kinds = (
        ("computed differently", difference.changed),
        ("added", difference.added),
        ("removed", difference.removed),
        ("renamed", tuple(difference.renamed)),
    )
    sentences = [
        f"{_listed(list(names))} {'is' if len(names) == 1 else 'are'} {what}" for what, names in kinds if names
    ]
    whole = "the same rows" + (f"; {'; '.join(sentences)}" if sentences else ", and the same in every column")
    return f"{whole}; {order}" if order else whole


def _listed(names: list[str]) -> str:
    shown = names if len(names) <= _SHOWN else [*names[:_SHOWN], f"{len(names) - _SHOWN} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def _by_name(trees: list[Any], why: str) -> QueryDifference:
    """The fallback if one cannot be interpreted: equal text is the same query, and columns are compared by name."""
    try:
        if lenient.canonical(trees[0]) == lenient.canonical(trees[1]):
            names = lenient.spelled(trees[0])
            return QueryDifference(rows="same", same=tuple(names.values()), why=f"the same text; {why}")
    except Unclear:
        pass
    was, now = (lenient.spelled(tree) for tree in trees)
    return QueryDifference(
        rows="unknown",
        changed=tuple(name for key, name in now.items() if key in was),
        added=tuple(name for key, name in now.items() if key not in was),
        removed=tuple(name for key, name in was.items() if key not in now),
        why=why,
    )


def _with_spelling(difference: QueryDifference, new: Mapping[str, str], old: Mapping[str, str]) -> QueryDifference:
    return replace(
        difference,
        same=tuple(new.get(name, name) for name in difference.same),
        changed=tuple(new.get(name, name) for name in difference.changed),
        added=tuple(new.get(name, name) for name in difference.added),
        removed=tuple(old.get(name, name) for name in difference.removed),
        renamed={old.get(was, was): new.get(now, now) for was, now in difference.renamed.items()},
    )


def _source(name: str, columns: Mapping[str, str]) -> Relation:
    return physical(name.lower(), "", {column: column.lower() for column in columns}, types=columns)
