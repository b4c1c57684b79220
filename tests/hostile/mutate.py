"""Grammar-aware damage: what is valid is spoiled where it means something, and now and then in its bytes.

Everything is drawn from one seeded `Random`, so that a case is its seed and its number.
"""

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

NASTY: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, -(2**63) - 1, 10**40, 0.5, -0.0, 1e308, "", " ", "\x00", "\x1b]52;c;x\x07", "\u202e", "\ud800",
    "a`; DROP TABLE x; --", "' OR '1'='1", "../../etc/passwd", "/", "~root", "${env:HOME}", "{{x}}", "%s%n", "[/]", "x" * 5_000,
    "2024-13-01", "9999999-01-01", "-1d", "1e999", "NaN", "null", "*", "@wave1", "s3://", "file:///etc", "[]", "{}",
    [], {}, [[]], [{}], {"": None}, {"a": {"a": {"a": {}}}}, ["x"] * 200, {"__class__": "x"}, {"type": "Plan"},
)  # fmt: skip
_TOKENS = (
    "SELECT", "FROM", "WHERE", "(", ")", ",", ";", "--", "/*", "*/", "'", "`", '"', "\\", ":day", "${x}", "CAST(", "reflect(", "* FROM",
    "TRANSFORM", "UNION ALL", "OVER (", "INTERVAL", "1e9", "NULL", "landing", "text.`/etc/passwd`", "into: requests", "\n---\n", "&a [*a]", "!!python/object:x",
    "<<: *a", "\t", "{", "}", "[", "]", ": ", "- ", "? ", "|\n", ">\n", "#", "\r", "\x00", "\x1b[2J", "\ufeff", "é", "\u2028",
)  # fmt: skip


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value within."""
    results = [at]
    if isinstance(value, dict):
        for key, item in value.items():
            results += paths(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            results += paths(item, (*at, index))
    return results


def _holder(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path[:-1]:
        value = value[step]
    return value


def _swap(random: Random, whole: Any, path: tuple[Any, ...]) -> None:
    _holder(whole, path)[path[-1]] = copy.deepcopy(random.choice(NASTY))


def _drop(random: Random, whole: Any, path: tuple[Any, ...]) -> None:
    del _holder(whole, path)[path[-1]]


def _rename(random: Random, whole: Any, path: tuple[Any, ...]) -> None:
    holder = _holder(whole, path)
    if isinstance(holder, dict):
        key = str(path[-1])
        holder[random.choice([key + "x", key[:-1], key.upper(), "\u202e" + key, "", *_TOKENS])] = holder.pop(path[-1])


def _nest(random: Random, whole: Any, path: tuple[Any, ...]) -> None:
    holder, value = _holder(whole, path), _holder(whole, path)[path[-1]]
    for _ in range(random.choice([1, 3, 80, 400])):
        value = [value] if random.random() < 0.5 else {"a": value}
    holder[path[-1]] = value


def _move(random: Random, whole: Any, path: tuple[Any, ...]) -> None:
    others = [other for other in paths(whole) if other and other != path]
    if others:
        other = random.choice(others)
        taken = copy.deepcopy(_holder(whole, other)[other[-1]])
        _holder(whole, path)[path[-1]] = taken


def _near(random: Random, whole: Any, path: tuple[Any, ...]) -> None:
    """A value that is almost the right one."""
    holder, value = _holder(whole, path), _holder(whole, path)[path[-1]]
    match value:
        case bool():
            holder[path[-1]] = str(value)
        case int() | float():
            holder[path[-1]] = random.choice([-value, value * 10**9, value + 0.5, str(value), float(value)])
        case str():
            place = random.randrange(len(value) + 1)
            holder[path[-1]] = value[:place] + random.choice(_TOKENS) + value[place + random.randrange(3) :]
        case list():
            holder[path[-1]] = value * 2
        case dict():
            holder[path[-1]] = list(value.items())


_DAMAGE: tuple[Callable[[Random, Any, tuple[Any, ...]], None], ...] = (
    _swap,
    _swap,
    _drop,
    _rename,
    _nest,
    _move,
    _near,
    _near,
)


def spoilt(random: Random, whole: Any) -> Any:
    """A copy with one to four of its values damaged; the way a writer of the format, or an attacker, would."""
    made = {"": copy.deepcopy(whole)}
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        known = [path for path in paths(made) if path]
        random.choice(_DAMAGE)(random, made, random.choice(known))
        if "" not in made:
            return None
    return made[""]


def spoilt_text(random: Random, text: str) -> bytes:
    """The text with tokens of its grammars thrown in, lines moved, and bytes flipped."""
    for _ in range(random.choice([1, 2, 3, 6])):
        lines = text.split("\n")
        place = random.randrange(len(text) + 1)
        match random.randrange(6):
            case 0:
                text = text[:place] + random.choice(_TOKENS) + text[place:]
            case 1:
                text = text[:place] + text[place + random.randrange(1, 20) :]
            case 2:
                lines.insert(random.randrange(len(lines) + 1), random.choice(lines))
                text = "\n".join(lines)
            case 3:
                random.shuffle(lines)
                text = "\n".join(lines)
            case 4:
                text = text[:place] + random.choice(_TOKENS) * random.choice([2, 50, 3_000]) + text[place:]
            case 5:
                lines[random.randrange(len(lines))] = f"key: {json.dumps(random.choice(NASTY))}"
                text = "\n".join(lines)
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if data and random.random() < 0.2:
        for _ in range(random.choice([1, 3, 30])):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def spoilt_json(random: Random, whole: Any) -> bytes:
    """A document spoilt as data or as text."""
    if random.random() < 0.7:
        text = json.dumps(spoilt(random, whole))
        if random.random() < 0.1:
            text = text.replace("{", '{"type": "x", ', 1)
        return text.encode("utf-8", "surrogatepass")
    return spoilt_text(random, json.dumps(whole))
