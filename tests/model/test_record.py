"""Frozen dataclasses of our own beside Python's: the same class, made by both, behaves the same."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from console import record

VALUES: tuple[dict[str, Any], ...] = (
    {"name": "a"},
    {"name": "a", "note": "not compared"},
    {"name": "b", "size": 2, "days": ("x",)},
    {"name": "b", "size": 3, "days": ("x",)},
)
OPTIONS: tuple[dict[str, bool], ...] = ({}, {"slots": True}, {"kw_only": True}, {"slots": True, "kw_only": True})


def shape(decorator: Any, options: dict[str, bool]) -> Any:
    """A class with each kind of field."""

    class Shape:
        name: str
        size: float = 1
        note: str = dataclasses.field(default="", compare=False, kw_only=True)
        days: tuple[str, ...] = dataclasses.field(default_factory=tuple, repr=False, metadata={"quiet": True})

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")

    Shape.__qualname__ = "Shape"  # where pickle looks it up
    return decorator(frozen=True, **options)(Shape)


def observed(kind: Any) -> list[object]:
    """What can be seen of a class and of its values."""
    first, *others = values = [kind(**each) for each in VALUES]
    return [
        [(each.name, each.kind) for each in inspect.signature(kind).parameters.values()],
        [(each.name, each.kw_only, dict(each.metadata)) for each in dataclasses.fields(kind)],
        (kind.__match_args__, getattr(kind, "__slots__", None), dataclasses.is_dataclass(kind)),
        [[one == other for one in values] for other in [*values, None]],
        [[hash(one) == hash(other) for one in values] for other in values],
        [repr(each) for each in values],
        [copied == first for copied in (pickle.loads(pickle.dumps(first)), copy.copy(first), copy.deepcopy(first))],
        [repr(replace(each, size=9.0)) for each in others for replace in (dataclasses.replace, record.replace)],
        [record.replace(each) == each and record.replace(each) is not each for each in values],
        [error(refused) for refused in (
            kind, lambda: kind(name=""), lambda: kind(name="a", other=1), lambda: setattr(first, "name", "b"),
            lambda: delattr(first, "name"), lambda: dataclasses.replace(first, other=1),
            lambda: record.replace(first, other=1), lambda: record.replace(first, name=""),
        )],
    ]  # fmt: skip


def error(refused: Callable[[], object]) -> type[Exception]:
    try:
        refused()
    except (TypeError, ValueError, AttributeError) as raised:
        return type(raised)
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_behaves_as_pythons(options: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for decorator in (record.dataclass, dataclasses.dataclass):
        kind = shape(decorator, options)
        monkeypatch.setitem(globals(), "Shape", kind)
        seen.append(observed(kind))
    assert seen[0] == seen[1]


def test_only_frozen_classes_are_made() -> None:
    with pytest.raises(TypeError, match="only for frozen classes"):
        shape(lambda **options: record.dataclass(**{**options, "frozen": False}), {})
