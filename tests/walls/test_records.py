"""Records of five fields and more are keyword-only: the type checker cannot tell four counts apart."""

import ast
from collections.abc import Iterable

from tests.walls.source import nodes

MOST_BY_POSITION = 4


def positional(result: Iterable[ast.AST]) -> list[str]:
    """Dataclasses and named tuples with more fields, their bases' included, that take them by position."""
    classes = [node for node in result if isinstance(node, ast.ClassDef)]
    named = {one.name: one for one in classes}
    return sorted(one.name for one in classes if _by_position(one) and len(_fields(one, named)) > MOST_BY_POSITION)


def _by_position(one: ast.ClassDef) -> bool:
    if any(ast.unparse(base).rpartition(".")[2] == "NamedTuple" for base in one.bases):
        return True
    decorators = [ast.unparse(each) for each in one.decorator_list]
    made = [each for each in decorators if each.removeprefix("dataclasses.").partition("(")[0] == "dataclass"]
    return any("kw_only=True" not in each for each in made)


def _fields(one: ast.ClassDef, named: dict[str, ast.ClassDef]) -> set[str]:
    """Names of those taken by position: one that only gets another default in a subclass is the same one."""
    own = {
        ast.unparse(node.target)
        for node in one.body
        if isinstance(node, ast.AnnAssign)
        and "ClassVar" not in ast.unparse(node.annotation)
        and not any(word in ast.unparse(node) for word in ("init=False", "kw_only=True"))
    }
    bases = [base.id for base in one.bases if isinstance(base, ast.Name)]
    return own.union(*(_fields(named[base], named) for base in bases if base in named))


def test_records_of_five_fields_are_keyword_only() -> None:
    assert positional(node for _, node in nodes(ast.ClassDef)) == []


def test_a_planted_record_is_found() -> None:
    planted = """
@dataclass(frozen=True, slots=True)
class Wide:
    a: int
    b: int
    c: int
    d: int
    e: int = 0

@dataclass(frozen=True)
class Narrow:
    a: int
    b: int
    c: int
    d: int

@dataclasses.dataclass
class Grown(Narrow):
    e: int

@dataclass
class Defaulted(Narrow):
    d: int = 0

@dataclass
class Named(Narrow):
    e: int = field(default=0, kw_only=True)

class Row(NamedTuple):
    a: int
    b: int
    c: int
    d: int
    e: int
"""
    assert positional(ast.parse(planted).body) == ["Grown", "Row", "Wide"]
    assert positional(ast.parse(planted.replace("slots=True", "kw_only=True")).body) == ["Grown", "Row"]
