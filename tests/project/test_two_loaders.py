"""Files are read by libyaml, and by the pure loader where that would say something else: the same values, places and messages as by
the pure one alone, over texts drawn from pieces of YAML and from real files with pieces changed."""

import random
from pathlib import Path

import pytest

from console.errors import Problems
from console.project import yaml
from console.project.yaml import Document, parse

ROOT = Path(__file__).resolve().parents[2]
TEXTS = 1_500
PIECES = (
    ": ", ":", "- ", "-", "? ", "?", "\n", "\n  ", "\n    ", " ", "\t", "'", '"', "{", "}", "[", "]", ",", "#", " #", "&a ", "*a", "!", "!!str ",
    "%", "@", "`", "|", "|-", ">", "|2\n   ", ">+", "a", "b", "1", "0x1", "~", "null", "\r\n", "\r", "\x85", "\u2028", "\ufeff", "é", "…", "😀",
    "---\n", "...\n", "<<: ", "\\", "\\x41", "\\u12", "key", "several words", "=", "\x00", "\x07", "\u00a0", "{a: b}", "[a, b]", "a: b\n", "- a\n",
    "  a: b\n", "%YAML 1.2\n---\n", "%TAG ! x:\n---\n", "\ud800",
)  # fmt: skip
NAMED = {
    "a tab between values": "columns: {id: string, \tat: timestamp}\n",
    "a question mark in a value": "columns: {id: st? ring}\n",
    "a key with nothing behind its question mark": "? ",
    "two byte order marks": "\ufeff\ufeff{a: b}",
    "a value of no character": "columns: {id: , ts: timestamp}\n",
    "a comment at the sign of a block": "a: >+#b\n  c\n",
    "a directive": "%YAML 1.2\n---\na: b\n",
    "a tag handle": "%TAG ! tag:x,2026:\n---\na: b\n",
    "a tag": "a: !!str b\n",
    "a tag of a list": "a: !x [b]\n",
    "aliases": "a: &x {b: c}\nd: [*x, *x]\n",
    "an alias in itself": "a: &x [*x]\n",
    "too deep": "a: " + "[" * 70 + "]" * 70,
    "two documents": "a: b\n---\nc: d\n",
    "an escape beyond Unicode": 'a: "\\UFFFFFFFF"\n',
    "a half of a pair": "a: \ud800\n",
    "a key twice": "a: b\na: c\n",
    "blocks": "a: |\n  b\n\nc: >-\n  d\n  e\n",
    "quotes": "a: 'b'\nc: \"d\"\n",
}


def read(text: str) -> Document | str:
    try:
        return parse(text, "f.yaml")
    except Problems as problems:
        return str(problems)


def drawn(chance: random.Random, files: list[str]) -> str:
    if chance.random() < 0.5:
        return "".join(chance.choices(PIECES, k=chance.randrange(1, 14)))
    lines = chance.choice(files).splitlines(keepends=True)
    first = chance.randrange(max(1, len(lines) - 10))
    text = "".join(lines[first : first + 10])
    for _ in range(chance.randrange(1, 4)):
        start = chance.randrange(len(text) + 1)
        text = text[:start] + chance.choice(PIECES) + text[start + chance.randrange(4) :]
    return text


def by_both(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Document | str, Document | str]]:
    """What is read as files are read, and by the pure loader alone."""
    as_files_are = [read(text) for text in texts]
    monkeypatch.setattr(yaml, "LIBYAML", None)
    return list(zip(as_files_are, map(read, texts), strict=True))


def test_the_lock_has_a_pyyaml_with_libyaml() -> None:
    assert yaml.LIBYAML is not None


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_what_the_two_would_read_otherwise_is_read_as_by_the_pure_one(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((found, pure),) = by_both([text], monkeypatch)
    assert found == pure


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=[pytest.mark.soak, pytest.mark.slow]) for seed in range(2, 40))]
)
def test_so_is_any_text(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    folders = ("plans", "regions", "tests/life/cases", "tests/planning")
    files = [path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob("*.yaml"))]
    texts = [drawn(chance, files) for _ in range(TEXTS)]
    pairs = by_both(texts, monkeypatch)
    assert [(text, *pair) for text, pair in zip(texts, pairs, strict=True) if pair[0] != pair[1]] == []
    assert sum(isinstance(pure, Document) for _, pure in pairs) > TEXTS // 10


def test_real_files_are_read_by_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    pure = yaml._Loader.get_single_node

    def told(loader: yaml._Loader) -> object:
        if type(loader) is yaml._Loader:
            asked.append(loader.file)
        return pure(loader)

    monkeypatch.setattr(yaml._Loader, "get_single_node", told)
    files = [path for folder in ("plans", "regions") for path in (ROOT / folder).rglob("*.yaml")]
    texts = [path.read_text() for path in files if path.parent.name != "tests"]  # in which there are question marks
    assert all(isinstance(read(text), Document) for text in texts)
    assert (len(texts) >= 8, asked) == (True, [])
