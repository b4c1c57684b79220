"""The expectations of a table's file, read rule by rule."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from console.errors import Problem
from console.model.expectation import (
    AcceptedValues,
    Expectation,
    Fresh,
    Holds,
    InRange,
    NotNull,
    RowsOfDayBefore,
    Rule,
    UniqueInDay,
)
from console.project import documents as docs
from console.project import values
from console.project.names import did_you_mean
from console.project.pipeline import newest
from console.project.yaml import Document, Keys

_RULES = "not_null, accepted_values, range, unique, freshness, row_count or sql"


def declared(
    table: str, doc: docs.TableDoc, source: Document, time: str
) -> tuple[tuple[Expectation, ...], list[Problem]]:
    """The expectations in the order of the file, and their problems. time: the table's time column, or "" """
    reader = _Reader(table=table, doc=doc, source=source, time=time)
    expected: list[Expectation] = []
    for number, rule in enumerate(doc.expectations):
        at: Keys = ("expectations", number)
        if len(rule.model_fields_set - {"severity"}) != 1:
            reader.wrong(at, f"one entry has one rule: {_RULES}", "write a list entry for each rule")
        expected += [Expectation(each, rule.severity) for each in reader.rules(rule, at)]
    names = [each.name for each in expected]
    for name in sorted({name for name in names if names.count(name) > 1}):
        reader.wrong(("expectations",), f"two of them would be called `{name}` at the gate", "remove one")
    return tuple(expected), reader.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads the rules of one table, and collects their problems."""

    table: str
    doc: docs.TableDoc
    source: Document
    time: str
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, at: Keys, message: str, hint: str, code: str = "P012") -> None:
        text = f"{'.'.join(map(str, at))}: {message}"
        self.problems.append(Problem(code=code, message=text, where=self.source.place(at), hint=hint, node=self.table))

    def rules(self, doc: docs.RuleDoc, at: Keys) -> Iterator[Rule]:
        for number, column in enumerate(doc.not_null):
            if self._known(column, (*at, "not_null", number)):
                yield NotNull(column)
        for column, given in doc.accepted_values.items():
            here = (*at, "accepted_values", column)
            if self._known(column, here):
                texts = [self._literal(column, (*here, number)) for number in range(len(given))]
                yield AcceptedValues(column, tuple(text for text in texts if text is not None))
        for column in doc.range:
            yield from self._range(column, doc.range[column], (*at, "range", column))
        if all([self._comparable(column, (*at, "unique", number)) for number, column in enumerate(doc.unique)]):
            yield from [UniqueInDay(tuple(doc.unique))] if doc.unique else []
        if doc.freshness is not None and self._timed((*at, "freshness")):
            yield Fresh(doc.freshness)
        if doc.row_count is not None and self._timed((*at, "row_count")):
            yield from self._counts(doc.row_count, (*at, "row_count"))
        if doc.sql.strip():
            yield Holds(doc.sql.strip())

    def _range(self, column: str, bounds: docs.BoundsDoc, at: Keys) -> Iterator[Rule]:
        if not self._known(column, at) or not self._bounded(bounds, at):
            return
        least = self._literal(column, (*at, "min")) if bounds.min is not None else None
        most = self._literal(column, (*at, "max")) if bounds.max is not None else None
        yield InRange(column, least, most)

    def _counts(self, bounds: docs.BoundsDoc, at: Keys) -> Iterator[Rule]:
        if not self._bounded(bounds, at):
            return
        shares: list[float | None] = []
        for key, given in (("min", bounds.min), ("max", bounds.max)):
            place: Keys = (*at, key)
            try:
                shares.append(None if given is None else values.share(self.source.raw.get(place, "")))
            except ValueError as error:
                self.wrong(place, str(error), "of the rows of the day before: {min: 50%, max: 200%}")
                return
        yield RowsOfDayBefore(*shares)

    def _bounded(self, bounds: docs.BoundsDoc, at: Keys) -> bool:
        if bounds.min is None and bounds.max is None:
            self.wrong(at, "neither `min` nor `max` is given", "write one of them")
            return False
        return True

    def _timed(self, at: Keys) -> bool:
        if not self.time:
            self.wrong(at, f"{self.table} has no time column to determine days", "declare one: time: COLUMN")
        return bool(self.time)

    def _known(self, column: str, at: Keys) -> bool:
        if column in self.doc.columns:
            return True
        hint = did_you_mean(column, self.doc.columns, "columns")
        self.wrong(at, f"{self.table} has no column `{column}`", hint, "P033")
        return False

    def _comparable(self, column: str, at: Keys) -> bool:
        if not self._known(column, at):
            return False
        kind = self.doc.columns[column].type
        if any(word in kind for word in newest.WITHOUT_ORDER):
            self.wrong(at, f"`{column}` is {kind}, and values of it cannot be compared", "name other columns")
            return False
        return True

    def _literal(self, column: str, at: Keys) -> str | None:
        written = self.source.raw.get(at, "")
        try:
            return values.literal(self.doc.columns[column].type, written)
        except ValueError as error:
            self.wrong(at, f"{error}, found `{written[:60]}`", f"`{column}` is {self.doc.columns[column].type}")
            return None
