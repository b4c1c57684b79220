"""Every mutant of a file, as cosmic-ray makes them, and what is known of each."""

import ast
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor

ROOT = Path(__file__).resolve().parent.parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent.jsonl")
# those that need arguments are no rules of their own
OPERATORS = sorted(name for name in cosmic_ray.plugins.operator_names() if not name.startswith(("core/Variable",)))


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    line  the first that differs, counted from 1;  nth  how many lines above it say the same
    was, now  what stands there, without indent;  text  the whole file
    """

    file: str
    operator: str
    occurrence: int
    line: int
    nth: int
    was: str
    now: str
    text: str

    @property
    def key(self) -> str:
        """The same for the same change, wherever else the file has changed."""
        return hashlib.sha256("\0".join((self.file, str(self.nth), self.was, self.now)).encode()).hexdigest()[:16]


def spots(file: str) -> Iterator[tuple[str, int]]:
    """Where a file can be changed: operator, and which of its occurrences."""
    tree = get_ast((ROOT / file).read_text())
    for name in OPERATORS:
        operator = cosmic_ray.plugins.get_operator(name)()
        count = sum(len(tuple(operator.mutation_positions(node))) for node in ast_nodes(tree))
        yield from ((name, occurrence) for occurrence in range(count))


def made(file: str, operator: str, occurrence: int) -> Mutant | None:
    """One mutant; None where nothing changes."""
    source = (ROOT / file).read_text()
    visitor = MutationVisitor(occurrence, cosmic_ray.plugins.get_operator(operator)())
    text = str(visitor.walk(get_ast(source)).get_code())
    if _untyped(text) == _untyped(source):
        return None
    line, was, now = _differs(source, text)
    if was.startswith("@dataclass("):  # whether a value may be assigned to is mypy's to judge
        return None
    earlier = [each.strip() for each in source.splitlines()[: line - 1]]
    return Mutant(file, operator, occurrence, line, earlier.count(was.split("\n")[0]), was, now, text)


@lru_cache(8)
def _untyped(text: str) -> str:
    """What a file does, without what it says of types: those are mypy's to judge. What is no Python stays as it is."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign():
                node.annotation = ast.Constant(None)
            case ast.arg():
                node.annotation = None
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.returns = None
    return ast.dump(tree)


def mutants(file: str) -> Iterator[Mutant]:
    """All of a file, in a fixed order, each change once."""
    seen = set[str]()
    for operator, occurrence in spots(file):
        if (mutant := made(file, operator, occurrence)) and mutant.key not in seen:
            seen.add(mutant.key)
            yield mutant


def _differs(old: str, new: str) -> tuple[int, str, str]:
    before, after = old.splitlines(), new.splitlines()
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            was, now = ("\n".join(part.strip() for part in lines) for lines in (before[a:b], after[c:d]))
            return a + 1, was, now
    raise AssertionError("nothing differs")


def explained() -> dict[str, str]:
    """Mutants that no test can tell from the file itself: key → why."""
    if not EQUIVALENT.exists():
        return {}
    entries = [json.loads(line) for line in EQUIVALENT.read_text().splitlines()]
    keyed = {}
    for entry in entries:
        made = Mutant(entry["file"], "", 0, 0, entry["nth"], entry["was"], entry["now"], "")
        keyed[made.key] = entry["why"]
    return keyed
