"""Reads the CREATE statement of a ClickHouse table or view, as `system.tables.create_table_query` prints it.

The server prints every such statement in the same form: columns in backquotes, keywords in capitals, functions before their bracket.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from console.propagation.tables import Use, UseKind

_TOKEN: Final = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|`(?:[^`\\]|\\.|``)*`|\"(?:[^\"\\]|\\.|\"\")*\"|[A-Za-z_]\w*|\d[\w.]*|\S", re.DOTALL
)
_PARTS: Final[dict[str, UseKind]] = {"INDEX": "skip index", "PROJECTION": "projection", "CONSTRAINT": "constraint"}
_COMPUTED: Final = ("DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL")
_END_OF_VALUE: Final = ("COMMENT", "CODEC", "STATISTICS", "TTL", "COLLATE", "PRIMARY", "SETTINGS")
_END_OF_TTL: Final = ("SETTINGS", "COMMENT", "COLLATE", "PRIMARY")

Tokens = Sequence[str]


def uses(statement: str) -> tuple[Use, ...]:
    """The parts of a table's statement that use columns: engine, TTLs, indices, projections, constraints, computed columns."""
    tokens = _TOKEN.findall(statement)
    if "(" not in tokens:
        return ()
    start = tokens.index("(")
    end = _closing(tokens, start)
    body = [use for item in _split(tokens[start + 1 : end]) for use in _item(item)]
    return tuple(use for use in (*body, *_tail(tokens[end + 1 :])) if use.columns or use.star)


def head(statement: str) -> str:
    """DEFINER and SQL SECURITY of a view's statement, as written; "" if it has none."""
    words: list[str] = []
    for token, depth in _depths(_TOKEN.findall(statement)):
        if depth == 0 and token in ("COMMENT", "AS"):
            break
        if words or (depth == 0 and token in ("DEFINER", "SQL")):
            words.append(token)
    return " ".join(words)


def arguments(engine: str) -> tuple[str, ...]:
    """The texts and names in an engine's brackets, without their quotes."""
    return tuple(_bare(token) for token in _TOKEN.findall(engine)[1:] if token[0] in "'`" or token[0].isalpha())


def _item(item: Tokens) -> Iterator[Use]:
    if not item:
        return
    if item[0] in _PARTS:
        rest = item[2:]
        yield Use(
            kind=_PARTS[item[0]],
            name=_bare(item[1]),
            columns=_mentioned(rest),
            star=item[0] == "PROJECTION" and "*" in rest,
            grouped="GROUP" in rest,
        )
        return
    name = _bare(item[0])
    value, ttl = _between(item, _COMPUTED, _END_OF_VALUE), _between(item, ("TTL",), _END_OF_TTL)
    if value:
        yield Use(kind="computed column", name=name, columns=_mentioned(value))
    if ttl:
        yield Use(kind="TTL", name=name, columns=tuple(column for column in _mentioned(ttl) if column != name))


def _tail(tokens: Tokens) -> Iterator[Use]:
    for rank, (token, depth) in enumerate(_depths(tokens)):
        if depth == 0 and token == "ENGINE" and rank + 3 < len(tokens) and tokens[rank + 3] == "(":
            # texts are the coordination path of a replicated table
            yield Use(
                kind="engine", name=tokens[rank + 2], columns=_mentioned(tokens[rank + 4 : _closing(tokens, rank + 3)])
            )
    if ttl := _between(tokens, ("TTL",), _END_OF_TTL):
        yield Use(kind="TTL", name="", columns=_mentioned(ttl))


def _between(tokens: Tokens, starts: Iterable[str], ends: Iterable[str]) -> Tokens:
    """The tokens between the first of some keywords and the first of others, outside brackets."""
    inside: list[str] = []
    begun = False
    for token, depth in _depths(tokens):
        if begun and depth == 0 and token in ends:
            break
        if begun:
            inside.append(token)
        begun = begun or (depth == 0 and token in starts)
    return inside


def _depths(tokens: Tokens) -> Iterator[tuple[str, int]]:
    depth = 0
    for token in tokens:
        depth -= token == ")"
        yield token, depth
        depth += token == "("


def _closing(tokens: Tokens, start: int) -> int:
    depths = list(_depths(tokens[start:]))
    return start + next(rank for rank, (token, depth) in enumerate(depths) if rank and token == ")" and depth == 0)


def _split(tokens: Tokens) -> Iterator[Tokens]:
    item: list[str] = []
    for token, depth in _depths(tokens):
        if token == "," and depth == 0:
            yield item
            item = []
        else:
            item.append(token)
    yield item


def _mentioned(tokens: Tokens) -> tuple[str, ...]:
    """Names that are not a function's."""
    names = []
    for rank, token in enumerate(tokens):
        called = rank + 1 < len(tokens) and tokens[rank + 1] == "("
        if token[0] in '`"' or (not called and (token[0].isalpha() or token[0] == "_")):
            names.append(_bare(token))
    return tuple(dict.fromkeys(names))


def _bare(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if token[0] in "'`\"" else token
