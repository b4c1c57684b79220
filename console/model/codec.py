"""Frozen dataclasses to JSON and back: values that do not fit their type are refused with their path.

Keys added by newer versions are ignored, unless they are marked as required (docs/versions.md).
"""

import dataclasses
import json
import re
import types
import typing
from collections.abc import Callable, Hashable
from enum import Enum, auto
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, Literal, TypeVar, Union, assert_never, get_args, get_origin

from console import __version__
from console.errors import DataError, NewerFormat

T = TypeVar("T")
TAG = "type"  # members of a union of dataclasses carry their class name under this key
# metadata of a field that is omitted at its default, so that older versions write and read the same JSON
QUIET = {"quiet": True}
# metadata of a field added after 0.1.0, which refuses unknown keys: it is stored beside its record, and an agent omits
# it for a console that has not announced support for such keys
BESIDE = {**QUIET, "beside": True}
NEEDED = "!"  # `name!0.3.0`: a key or a kind that readers before that version must refuse
_DEPTH = 64
_NEVER = object()
PLAIN = frozenset((str, int, float, bool, type(None)))  # types of JSON's own values
_SURROGATE = re.compile("[\ud800-\udfff]")


def needed(since: str) -> dict[str, object]:
    """Metadata of a required field: unless it holds its default, older readers would misread the rest, so they refuse it.

    since  version of console that adds it; a whole kind is marked by a class variable `SINCE`
    """
    return {**QUIET, "needed": since}


def encode(value: object) -> Any:
    """A model value as JSON-able data; every dataclass carries its class name, which identifies members of unions."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        first: Any = type(value[0]) if value else None
        if (write := _flat_writer(first)) is None:
            return [encode(item) for item in value]
        return [write(item) if type(item) is first else encode(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(encode(item) for item in value)
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    kind: Any = type(value)
    if (names := _names(kind)) is None:
        raise TypeError(f"no JSON for {kind.__name__}")
    data: dict[str, Any] = {TAG: _key(kind.__name__, getattr(kind, "SINCE", ""))}
    for name, key, default in names:
        if (item := getattr(value, name)) != default:
            data[key] = item if type(item) in PLAIN else encode(item)
    return data


def _key(name: str, since: str) -> str:
    return f"{name}{NEEDED}{since}" if since else name


@cache
def _names(kind: Hashable) -> tuple[tuple[str, str, object], ...] | None:
    """Name, key, and the value at which it is omitted (`_NEVER` for most) of each field; None for no dataclass."""
    if not dataclasses.is_dataclass(kind):
        return None
    quiet = QUIET.items()
    return tuple(
        (f.name, _key(f.name, f.metadata.get("needed", "")), f.default if quiet <= f.metadata.items() else _NEVER)
        for f in dataclasses.fields(kind)
    )


@cache
def _flat_writer(kind: Any) -> Callable[[Any], dict[str, Any]] | None:
    """`encode` of a record that `_Flat` reads, if none of its fields is ever omitted or renamed; None for any other type."""
    names = _names(kind) if _flat(kind) is not None else None
    if not names or hasattr(kind, "SINCE") or any(name != key or default is not _NEVER for name, key, default in names):
        return None
    keys, values = (
        (TAG, *(key for _, key, _ in names)),
        attrgetter("__class__.__name__", *(name for name, _, _ in names)),
    )
    return lambda record: dict(zip(keys, values(record), strict=True))


def dumps(value: object) -> str:
    """One line of JSON, keys in field order, NaN refused."""
    return json.dumps(encode(value), separators=(",", ":"), allow_nan=False)


def loads(text: str | bytes) -> Any:
    """Parse strict JSON: NaN, Infinity, duplicate keys and numbers with too many digits are refused.

    raises  DataError
    """

    def refuse(token: str) -> Any:
        raise DataError(f"not JSON: {token}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) != len(pairs):
            raise DataError("a key occurs twice in one JSON object")
        return entries

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error}") from None


def decode(cls: type[T], data: Any, *, exact: bool = False) -> T:
    """Decode data written by `encode` as a value of `cls`. Unknown keys are ignored.

    exact   refuse unknown keys: for files that are bound to the version that wrote them
    raises  DataError naming the path of a value that does not fit or is missing;
            NewerFormat at a key or kind that requires a newer version
    """
    result: T = _Reader(exact).value(cls, data, cls.__name__, 0)
    return result


class _Kind(Enum):
    """What a type hint asks for."""

    RECORD = auto()
    UNION = auto()
    ROW = auto()  # tuple[int, str]
    LIST = auto()  # tuple[int, ...], frozenset[int]
    DICT = auto()
    LITERAL = auto()
    SCALAR = auto()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Hint:
    """A type hint, read once.

    made     of a list: the type that its items become
    args     of a row one for each item, of a list one, of a dict that of its values, of a literal its values, of a union
             those of no record
    records  of a union: its records by their names;  optional: it has None as well
    """

    kind: _Kind
    made: Any = None
    args: tuple[Any, ...] = ()
    records: dict[str, type] = dataclasses.field(default_factory=dict)
    optional: bool = False


@cache
def _read_hint(hint: Any) -> _Hint:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _Hint(kind=_Kind.RECORD)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        records = {arg.__name__: arg for arg in args if isinstance(arg, type) and dataclasses.is_dataclass(arg)}
        plain = tuple(arg for arg in args if arg is not type(None) and not dataclasses.is_dataclass(arg))
        return _Hint(kind=_Kind.UNION, args=plain, records=records, optional=type(None) in args)
    if origin is tuple and args[-1] is not Ellipsis:
        return _Hint(kind=_Kind.ROW, made=tuple, args=args)
    if origin is tuple or origin is frozenset:
        return _Hint(kind=_Kind.LIST, made=origin, args=args[:1])
    if origin is dict:
        return _Hint(kind=_Kind.DICT, made=dict, args=args[1:])
    return _Hint(kind=_Kind.LITERAL, args=args) if origin is Literal else _Hint(kind=_Kind.SCALAR)


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    """needed: it has no default;  beside: a value of a newer version is ignored for the default"""

    hint: Any
    needed: bool
    beside: bool
    default: Any


@cache
def _fields(cls: type) -> dict[str, _Field]:
    """The fields of a record by their names."""
    hints, missing = typing.get_type_hints(cls), dataclasses.MISSING
    return {
        f.name: _Field(
            hints[f.name],
            f.default is missing and f.default_factory is missing,
            bool(f.metadata.get("beside")),
            f.default,
        )
        for f in dataclasses.fields(cls)
    }


@cache
def _needed(cls: type) -> tuple[str, ...]:
    return tuple(name for name, spec in _fields(cls).items() if spec.needed)


@dataclasses.dataclass(frozen=True, slots=True)
class _Flat:
    """A record of texts, numbers and truth values alone, as `encode` writes it: a survey has hundreds of thousands of them.

    values  all fields and the class name, taken from an object
    types   theirs
    texts   which of the fields are texts
    """

    record: type
    values: Callable[[Any], tuple[Any, ...]]
    types: tuple[type, ...]
    texts: tuple[int, ...]

    def read(self, data: Any) -> Any:
        """The record; None for any object that is written in another way, valid or not."""
        if type(data) is not dict or len(data) != len(self.types):
            return None
        try:
            *values, name = self.values(data)
        except KeyError:
            return None
        if (*map(type, values), str) != self.types or name != self.record.__name__:
            return None
        for at in self.texts:
            if not values[at].isascii():
                return None
        return self.record(*values)

    def read_all(self, data: list[Any]) -> list[Any] | None:
        """A list of them, checked by columns, in half the time; None if one of them is written in another way, or there is none."""
        if set(map(type, data)) != {dict} or set(map(len, data)) != {len(self.types)}:
            return None
        try:
            columns = tuple(zip(*map(self.values, data), strict=True))
        except KeyError:
            return None
        if any(set(map(type, column)) != {kind} for column, kind in zip(columns, self.types, strict=True)):
            return None
        if set(columns[-1]) != {self.record.__name__} or not all("".join(columns[at]).isascii() for at in self.texts):
            return None
        return list(map(self.record, *columns[:-1]))


@cache
def _flat(cls: Hashable) -> _Flat | None:
    """None for what is not such a record."""
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)) or TAG in _fields(cls):
        return None
    hints = tuple(spec.hint for spec in _fields(cls).values())
    if not hints or any(hint not in (str, int, float, bool) for hint in hints):
        return None
    if any(each.kw_only for each in dataclasses.fields(cls)):
        return None
    texts = tuple(at for at, hint in enumerate(hints) if hint is str)
    return _Flat(cls, itemgetter(*_fields(cls), TAG), (*hints, str), texts)


@dataclasses.dataclass(frozen=True, slots=True)
class _Reader:
    """exact: whether unknown keys are refused"""

    exact: bool

    def value(self, hint: Any, data: Any, path: str, depth: int) -> Any:
        if depth > _DEPTH:
            raise DataError(f"{path}: nested too deeply")
        read = _read_hint(hint)
        match read.kind:
            case _Kind.SCALAR:
                return _scalar(hint, data, path)
            case _Kind.RECORD:
                return self._record(hint, data, path, depth)
            case _Kind.UNION:
                return self._union(hint, read, data, path, depth)
            case _Kind.LIST | _Kind.ROW:
                return self._list(read, data, path, depth)
            case _Kind.DICT:
                if not isinstance(data, dict):
                    raise DataError(f"{path}: expected an object, found {type(data).__name__}")
                (of,) = read.args
                return {key: self.value(of, item, f"{path}.{key}", depth + 1) for key, item in data.items()}
            case _Kind.LITERAL:
                if data not in read.args:
                    raise DataError(f"{path}: expected one of {', '.join(map(str, read.args))}, found {data!r:.60}")
                return data
            case _:
                assert_never(read.kind)

    def _list(self, read: _Hint, data: Any, path: str, depth: int) -> Any:
        if not isinstance(data, list):
            raise DataError(f"{path}: expected a list, found {type(data).__name__}")
        if read.kind is _Kind.ROW:
            if len(data) != len(read.args):
                raise DataError(f"{path}: expected {len(read.args)} entries, found {len(data)}")
            pairs = enumerate(zip(read.args, data, strict=True))
            return tuple(self.value(a, d, f"{path}[{i}]", depth + 1) for i, (a, d) in pairs)
        (of,) = read.args
        flat = _flat(of) if depth < _DEPTH else None
        if flat is None:
            return read.made(self.value(of, item, f"{path}[{i}]", depth + 1) for i, item in enumerate(data))
        if (all_records := flat.read_all(data)) is not None:
            return read.made(all_records)
        records = map(flat.read, data)
        return read.made(
            self.value(of, data[i], f"{path}[{i}]", depth + 1) if record is None else record
            for i, record in enumerate(records)
        )

    def _union(self, hint: Any, read: _Hint, data: Any, path: str, depth: int) -> Any:
        if data is None and read.optional:
            return None
        if isinstance(data, dict) and read.records:
            name, newer, since = str(data.get(TAG)).partition(NEEDED)
            if name in read.records:
                return self.value(read.records[name], data, path, depth)
            if newer:
                raise _newer(path, name, since)
        for arg in read.args:
            try:
                return self.value(arg, data, path, depth)
            except NewerFormat:
                raise
            except DataError:
                continue
        names = ", ".join(getattr(arg, "__name__", str(arg)) for arg in get_args(hint))
        raise DataError(f"{path}: expected one of {names}")

    def _record(self, cls: type, data: Any, path: str, depth: int) -> Any:
        if not isinstance(data, dict):
            raise DataError(f"{path}: expected an object, found {type(data).__name__}")
        fields = _fields(cls)
        # a Column's or Parameter's own `type` takes the tag's place
        if TAG not in fields and str(data.get(TAG, cls.__name__)).partition(NEEDED)[0] != cls.__name__:
            raise DataError(f"{path}: expected {cls.__name__}, found {data[TAG]!r:.60}")
        given = {}
        for key, item in data.items():
            if key in fields:
                given[key] = item
                continue
            name, newer, since = key.partition(NEEDED)
            if name in fields:
                given[name] = item
            elif newer:
                raise _newer(path, name, since)
            elif self.exact and key != TAG:
                raise DataError(f"{path}: unknown key {key!r:.60}")
        for name in _needed(cls):
            if name not in given:
                raise DataError(f"{path}: {name} is missing")
        values = {name: self._field(fields[name], item, f"{path}.{name}", depth + 1) for name, item in given.items()}
        return cls(**values)

    def _field(self, spec: _Field, data: Any, path: str, depth: int) -> Any:
        """A field's value. An optional one that requires a newer version is ignored like an unknown key."""
        try:
            return self.value(spec.hint, data, path, depth)
        except NewerFormat:
            if self.exact or not spec.beside:
                raise
            return spec.default


def _newer(path: str, name: str, since: str) -> NewerFormat:
    return NewerFormat(
        f"{path}: `{name:.60}` came with console {since:.20}, and this is console {__version__}: it would misread the rest",
        hint=f"use console {since:.20} or newer here",
        code="E_NEWER",
    )


def _scalar(hint: Any, data: Any, path: str) -> Any:
    if hint is Any or hint is object:
        return data
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if hint is type(None) and data is None:
        return None
    if not isinstance(hint, type) or not isinstance(data, hint) or (isinstance(data, bool) and hint is not bool):
        raise DataError(f"{path}: expected {getattr(hint, '__name__', hint)}, found {type(data).__name__}")
    if isinstance(data, str) and not data.isascii() and _SURROGATE.search(data):
        raise DataError(f"{path}: a lone surrogate is not text")
    return data
