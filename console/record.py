"""Frozen dataclasses, made in a third of the time that Python's own take; they do the same.

A start of the console makes some 140 of them, and Python below 3.13 compiles six functions for each: half of what was loaded
before the first picture. Here `__init__`, `__eq__` and `__hash__` are compiled when they are first called, and the rest is shared.
"""

import dataclasses
from collections.abc import Callable
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass", "replace"]
T = TypeVar("T")
_MADE = object()  # the default of a parameter whose value a function makes
_KEPT = object()  # the default of a parameter of `replace`: the value stays
_COPIERS: dict[type, Callable[..., Any]] = {}


def _frozen(*, frozen: bool, slots: bool = False, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    """As `dataclasses.dataclass`, for frozen classes without dataclasses among their bases."""
    if not frozen:
        raise TypeError("only for frozen classes: dataclasses.dataclass makes the others")

    def decorate(plain: type[T]) -> type[T]:
        kind = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(plain)
        methods = {"__init__": _init(kind), **_SHARED, **(_SLOTTED if slots else {})}
        for name, method in methods.items():
            if name not in plain.__dict__:
                setattr(kind, name, method)
        return kind

    return decorate


def _init(kind: Any) -> Any:
    """Compiles its successor when it is first called: most classes that a console loads have no value before its first picture."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        kind.__init__ = _compiled_init(kind)
        kind.__init__(self, *values, **named)

    return __init__


def _compiled_init(kind: type) -> Any:
    """Its parameters are the fields, in Python's order and with their defaults."""
    scope: dict[str, Any] = {"__set": object.__setattr__, "__MADE": _MADE}
    by_place, by_name, lines = ["self"], ["*"], ["pass"]
    for each in dataclasses.fields(kind):
        parameter = value = each.name
        if each.default is not dataclasses.MISSING:
            scope[f"__{each.name}"] = each.default
            parameter += f"=__{each.name}"
        elif each.default_factory is not dataclasses.MISSING:
            scope[f"__{each.name}"] = each.default_factory
            parameter += "=__MADE"
            value = f"__{each.name}() if {each.name} is __MADE else {each.name}"
        (by_name if each.kw_only else by_place).append(parameter)
        if isinstance(slot := getattr(kind, each.name, None), MemberDescriptorType):
            scope[f"__set_{each.name}"] = (
                slot.__set__
            )  # in two thirds of the time, for a survey's hundreds of thousands of days
            lines.append(f"__set_{each.name}(self, {value})")
        else:
            lines.append(f"__set(self, {each.name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = by_place + (by_name if len(by_name) > 1 else [])
    exec(f"def __init__({', '.join(parameters)}):\n  " + "\n  ".join(lines), scope)
    return scope["__init__"]


def _replace(record: Any, /, **changes: Any) -> Any:
    """As `dataclasses.replace`, in a quarter of its time: a running region's status is replaced several times per event."""
    kind = type(record)
    if (copier := _COPIERS.get(kind)) is None:
        copier = _COPIERS[kind] = _copier(kind)
    return copier(record, **changes)


def _copier(kind: type) -> Callable[..., Any]:
    """A function that copies a record but for its keyword arguments."""
    if getattr(kind, "__setattr__", None) is not _setattr or any(not each.init for each in dataclasses.fields(kind)):
        return dataclasses.replace
    scope: dict[str, Any] = {"__new": kind.__new__, "__kind": kind, "__KEPT": _KEPT, "__set": object.__setattr__}
    lines = ["__copy = __new(__kind)"]
    names = [each.name for each in dataclasses.fields(kind)]
    for name in names:
        value = f"__self.{name} if {name} is __KEPT else {name}"
        if isinstance(slot := getattr(kind, name, None), MemberDescriptorType):
            scope[f"__set_{name}"] = slot.__set__
            lines.append(f"__set_{name}(__copy, {value})")
        else:
            lines.append(f"__set(__copy, {name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        lines.append("__copy.__post_init__()")
    parameters = "".join(f", {name}=__KEPT" for name in names)
    exec(
        f"def __copier(__self, /{', *' if names else ''}{parameters}):\n  " + "\n  ".join(lines) + "\n  return __copy",
        scope,
    )
    copier: Callable[..., Any] = scope["__copier"]
    return copier


def _compile_comparison(kind: type) -> None:
    names = [each.name for each in dataclasses.fields(kind) if each.compare]
    mine, theirs = ("".join(f"{whose}.{name}, " for name in names) for whose in ("self", "other"))
    scope: dict[str, Any] = {}
    exec(
        "def __eq__(self, other):\n"
        f"  return ({mine}) == ({theirs}) if other.__class__ is self.__class__ else NotImplemented\n"
        f"def __hash__(self):\n  return hash(({mine}))",
        scope,
    )
    for name, first in (("__eq__", _eq), ("__hash__", _hash)):
        if getattr(kind, name) is first:
            setattr(kind, name, scope[name])


def _eq(self: Any, other: object) -> Any:
    _compile_comparison(type(self))
    return self == other


def _hash(self: Any) -> int:
    _compile_comparison(type(self))
    return hash(self)


def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _setattr(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


_SHARED = {"__eq__": _eq, "__hash__": _hash, "__repr__": _repr, "__setattr__": _setattr, "__delattr__": _delattr}
_SLOTTED = {"__getstate__": _getstate, "__setstate__": _setstate}  # else pickle would assign

if TYPE_CHECKING:  # to the type checker it is Python's own
    from dataclasses import dataclass, replace
else:
    dataclass, replace = _frozen, _replace
