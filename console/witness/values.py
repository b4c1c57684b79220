"""Values worth trying: boundaries of each type, and literals of the queries with their neighbours."""

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

from console.model.spark_type import SparkType
from console.planning.sql.duckdb import Trial

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TEXTS = ("", "a", "b", "A", "ab", "1", " a", "é")
_EXTREMES_SHARE = 0.06  # share of draws with the ends of a type's range: they overflow, and then both queries just fail
_NULL_SHARE = 0.12
_PRECISION = 80  # digits: numbers of 30 with 38 places, and a step


@dataclass(frozen=True, slots=True)
class ValuePool:
    """Literals of both queries as values. documents: columns that hold JSON with these keys."""

    numbers: tuple[Decimal, ...]
    texts: tuple[str, ...]
    documents: frozenset[str]
    keys: tuple[str, ...]

    @classmethod
    def of(cls, *trials: Trial) -> "ValuePool":
        numbers = {Decimal(text) for trial in trials for text in trial.numbers if _is_number(text)}
        texts = {text for trial in trials for text in trial.texts}
        documents = frozenset(name for trial in trials for name in trial.documents)
        keys = tuple(sorted({key for trial in trials for key in trial.keys}))
        return cls(tuple(sorted(numbers)), tuple(sorted(texts)), documents, keys)

    def simple(self, kind: SparkType, column: str = "") -> list[Any]:
        """Values of a type, simplest first; NULL comes after a few plain ones."""
        match kind.name:
            case "tinyint" | "smallint" | "int" | "bigint":
                near = [int(n) + step for n in self.numbers for step in (0, -1, 1)]
                low, high = -(1 << _BITS[kind.name] - 1), (1 << _BITS[kind.name] - 1) - 1
                return _unique([0, 1, 2, -1, *(n for n in near if low <= n <= high), None])
            case "float" | "double":
                doubles = [float(n) + step for n in self.numbers for step in (0, -1, 1)]
                return _unique([0.0, 1.0, 1.5, -1.0, *doubles, None])
            case "decimal":
                whole, scale = kind.scale
                unit = Decimal(1).scaleb(-scale)
                with localcontext(prec=_PRECISION):
                    exact = [n.quantize(unit) + step * unit for n in self.numbers for step in (0, -1, 1)]
                fit = [n for n in exact if abs(n) < Decimal(10) ** (whole - scale)]
                return _unique([Decimal(0).quantize(unit), unit, -unit, *fit, None])
            case "string":
                return self._strings(column)
            case "boolean":
                return [False, True, None]
            case "date":
                days = [date(2024, 2, 29), date(2024, 3, 1), date(1970, 1, 1), *(at.date() for at in self._times())]
                return _unique([*days, None])
            case "timestamp" | "timestamp_ntz":
                first = datetime(2024, 2, 29)
                return _unique([first, first + timedelta(hours=13, seconds=1), *self._times(), None])
            case "binary":
                return [b"", b"a", b"\x00\xff", None]
        return self._nested(kind)

    def _strings(self, column: str) -> list[Any]:
        literals = [text.replace("%", "").replace("_", "a") for text in self.texts]
        more = [f"x{text}y" for text in literals if text][:4]
        numbers = [str(number) for number in self.numbers]
        texts = _unique([*_TEXTS[:3], *literals, *self.texts, *more, *numbers, *_TEXTS[3:], None])
        if column.lower() not in self.documents or not self.keys:
            return texts
        contents = [None, 1, "a", *self.numbers, *literals]
        documents = [json.dumps({key: _json_number(value)}) for key in self.keys for value in contents]
        several = [json.dumps({key: _json_number(value) for key in self.keys}) for value in contents]
        return _unique(["{}", *several, *documents, "no json", None])

    def _times(self) -> Iterator[datetime]:
        for text in self.texts:
            with suppress(ValueError):
                at = datetime.fromisoformat(text).replace(tzinfo=None)
                yield at
                for step in (timedelta(microseconds=-1), timedelta(days=1)):
                    with suppress(OverflowError):  # `9999-12-31` has no day after it
                        yield at + step

    def _nested(self, kind: SparkType) -> list[Any]:
        inner = [self.simple(of)[:3] for of in kind.inner]
        match kind.name:
            case "array":
                return [[], [inner[0][0]], [inner[0][1], inner[0][0]], [None], None]
            case "map":
                return [[], [[inner[0][0], inner[1][0]]], [[inner[0][0], inner[1][0]], [inner[0][1], None]], None]
        return [[values[i] for values in inner] for i in range(2)] + [[None] * len(inner), None]

    def draw(self, rng: random.Random, kind: SparkType, column: str, count: int) -> list[Any]:
        """A few values of one type for one database: few, so that rows meet in joins and groups."""
        known = [value for value in self.simple(kind, column) if value is not None]
        drawn = [rng.choice(known) for _ in range(count)]
        if kind.name in _BITS and rng.random() < _EXTREMES_SHARE:
            drawn.append(rng.choice((-(1 << _BITS[kind.name] - 1), (1 << _BITS[kind.name] - 1) - 1)))
        return drawn

    def cell(self, rng: random.Random, drawn: Sequence[Any]) -> Any:
        return None if rng.random() < _NULL_SHARE else rng.choice(drawn)


def _is_number(text: str) -> bool:
    with suppress(ArithmeticError, ValueError):
        return Decimal(text).is_finite() and abs(Decimal(text)) < Decimal(10) ** 30
    return False


def _json_number(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value


def _unique(values: Sequence[Any]) -> list[Any]:
    unique: dict[str, Any] = {}
    for value in values:
        unique.setdefault(repr(value), value)
    return list(unique.values())
