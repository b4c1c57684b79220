"""Fields that are stored beside their record, so that readers of a version that refuses unknown keys can read the record."""

import dataclasses
from collections.abc import Hashable
from functools import cache
from typing import Any, get_type_hints

from console.errors import DataError
from console.model.codec import PLAIN, encode

Rest = list[tuple[list[str | int], Any]]  # path in the data → value stored beside it


def split(value: object) -> tuple[Any, Rest]:
    """A model value encoded without its fields of `codec.BESIDE`, and these fields."""
    rest: Rest = []
    data = encode(value)
    _move(value, data, [], rest)
    return data, rest


def _move(value: Any, data: Any, at: list[str | int], rest: Rest) -> None:
    if isinstance(value, (tuple, list)):
        for number, item in enumerate(value):
            kind: Any = type(item)
            if kind not in PLAIN and not _is_whole(kind):
                _move(item, data[number], [*at, number], rest)
    elif isinstance(value, dict):
        for key, item in value.items():
            if type(item) not in PLAIN:
                _move(item, data[str(key)], [*at, str(key)], rest)
    else:
        record: Any = type(value)
        for name, beside in _fields(record):
            if name not in data:
                continue
            if beside:
                rest.append(([*at, name], data.pop(name)))
            elif type(item := getattr(value, name)) not in PLAIN:
                _move(item, data[name], [*at, name], rest)


@cache
def _fields(kind: Hashable) -> tuple[tuple[str, bool], ...]:
    """The fields of a record, and whether each is stored beside it; none of anything else."""
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return ()
    return tuple((f.name, bool(f.metadata.get("beside"))) for f in dataclasses.fields(kind))


@cache
def _is_whole(kind: Hashable) -> bool:
    """Whether it is a record whose values are all plain, none of them stored beside it: a survey has hundreds of thousands."""
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return False
    plain = all(hint in PLAIN for hint in get_type_hints(kind).values())
    return plain and not any(beside for _, beside in _fields(kind))


def join(data: Any, rest: Any) -> Any:
    """Data with the fields removed by `split` put back.

    raises  DataError if a field's path does not exist
    """
    try:
        for at, item in rest:
            place = data
            for step in at[:-1]:
                place = place[step]
            place[at[-1]] = item
    except (KeyError, IndexError, TypeError, ValueError):
        raise DataError("a value stored beside it has a path that does not exist") from None
    return data
