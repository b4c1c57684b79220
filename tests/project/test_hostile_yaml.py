"""The YAML parser: accepted input is small, plain and has places; all other input is refused quickly, with file and line."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml as pyyaml
from conftest import FILES, Write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.errors import Problem, Problems
from console.project import load
from console.project.yaml import MAX_BYTES, Document, parse, read_text
from tests.hostile.memory import lean

pytestmark = pytest.mark.slow

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefghi", "bcdefghij", strict=True)
)
HOSTILE: dict[str, tuple[bytes, str, str]] = {
    "billion laughs": (LAUGHS.encode(), "", "P003"),
    "many aliases": (b"a: &a x\nb: [" + b"*a, " * 200 + b"]", "2:", "more than 100 aliases"),
    "100,000 brackets": (b"a: " + b"[" * 100_000, "1:", "nested deeper than 64 levels"),
    "100,000 braces": (b"{" * 100_000, "1:", "nested deeper than 64 levels"),
    "deep indentation": (b"".join(b" " * i + b"a:\n" for i in range(500)), "64:64", "nested deeper than 64 levels"),
    "deep list": (b"a:\n  " + b"- " * 50_000, "2:", "nested deeper than 64 levels"),
    "deep keys": (b"? " * 50_000, "1:", "nested deeper than 64 levels"),
    "an alias of itself": (b"a: &a [*a]", "1:4", "an alias that contains itself"),
    "a mapping of itself": (b"&a {b: *a}", "1:1", "an alias that contains itself"),
    "unknown alias": (b"a: *b", "1:4", "not YAML: found undefined alias"),
    "python object": (b"a: !!python/object/apply:os.system [id]", "1:4", "YAML tags are not supported"),
    "own tag": (b"a: !x 1", "1:4", "YAML tags are not supported"),
    "directive": (b"%TAG ! tag:x,2000:\n---\na: 1", "1:1", "YAML directives are not supported"),
    "duplicate key": (b"a: 1\nb: 2\na: 3", "3:1", "the key `a` occurs twice"),
    "duplicate key within": (b"a: {b: 1, 'b': 2}", "1:11", "the key `b` occurs twice"),
    "merge key": (b"a: &a {x: 1}\nb: {<<: *a}", "2:5", "merge keys (`<<`) are not supported"),
    "list as key": (b"[a]: b", "1:1", "a key that is a list or a mapping"),
    "tab": (b"a:\n\tb: 1", "2:1", "a tab in the indentation"),
    "byte order mark": (b"\xef\xbb\xbfa: 1", "1:1", "begins with a byte order mark"),
    "UTF-16": ("a: 1".encode("utf-16"), "1:1", "begins with a byte order mark"),
    "NUL": (b"a: 1\nb: x\x00y", "2:5", "holds the control character '\\x00'"),
    "escape": (b"a: x\x1b]52;c;x\x07", "1:5", "holds the control character '\\x1b'"),
    "escaped NUL": (b'a: "x\\0"', "1:4", "a text with the control character '\\x00'"),
    "escaped surrogate": (b'a: "\\ud800"', "1:4", "a text with the control character '\\ud800'"),
    "escape beyond Unicode": (b'a: "\\UFFFFFFFF"', "1:1", "not YAML: an invalid escape or character"),
    "separator": ("a: x\u2028b: 2".encode(), "1:5", "holds the control character '\\u2028'"),
    "Latin-1": (b"a: 1\nb: \xff", "2:4", "not UTF-8"),
    "two documents": (b"a: 1\n---\nb: 2", "2:1", "not YAML: but found another document"),
    "50 MB": (b"a: " + b"x" * 50_000_000, "1:1", "larger than 256 KiB"),
    "too many values": (b"a: [" + b"x," * 120_000 + b"]", "1:", "more than 10,000 values"),
    "a list": (b"- a", "1:1", "expected `key: value` lines, found a list"),
    "text": (b"just text", "1:1", "expected `key: value` lines, found text"),
    "unclosed": (b"a: [1, 2", "1:", "not YAML"),
    "colon in a value": (b"a: b: c", "1:5", "not YAML: mapping values are not allowed here"),
    "at sign": (b"a: @b", "1:4", "not YAML: found character '@' that cannot start any token"),
    "a comment of 250 KB": (b"#" * 250_000 + b"\n]", "2:1", "not YAML"),
    "anchors on anchors": (b"a: " + b"&x " * 50_000, "1:", "not YAML"),
    "250 KB of documents": (b"---\n" * 60_000, "", "P00"),
    "250 KB of text": (b"a: '" + b"x " * 120_000, "1:", "not YAML"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml_is_refused_at_once_with_its_place(project: Write, name: str) -> None:
    data, place, message = HOSTILE[name]
    root = project({})
    (root / "regions" / "eu.yaml").write_bytes(data)
    start = time.process_time()
    with lean(name), pytest.raises(Problems) as error:
        load(root)
    assert time.process_time() - start < 1
    (problem,) = [problem for problem in error.value.problems if problem.where.startswith("regions/eu.yaml:")]
    assert problem.where.startswith(f"regions/eu.yaml:{place}")
    assert message in str(problem)
    assert error.value.exit_code == 65


def test_only_regular_files_inside_the_project_are_read(
    project: Write, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = project({})
    outside = tmp_path_factory.mktemp("outside") / "secret.yaml"
    outside.write_text("warehouse: x\n")
    os.mkfifo(root / "pipe")
    wrong = {
        root / "pipe": "not a regular file",
        Path("/dev/zero"): "the link leads out of the project",
        outside: "the link leads out of the project",
        root / "plans": "not a regular file",
        root / "gone": "cannot be read: no such file",
        root / "regions" / "xx.yaml": "cannot be read",  # a link to itself
    }
    for target, message in wrong.items():
        link = root / "regions" / "xx.yaml"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        with pytest.raises(Problems, match=f"regions/xx.yaml:1:1: {message}"):
            load(root)
    link.unlink()
    link.symlink_to(root / "plans" / "web" / "README.md")
    assert read_text(link, root) == FILES["plans/web/README.md"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            (word, word)
            for word in ("no", "on", "yes", "off", "y", "22:22", "0123", "1_000", "2024-01-01", ".inf", "NaN")
        ),
        *((word, word) for word in ("'1'", '"true"', "0b1", "+", ".", "1e", "1.2.3", "9" * 41, "08.5", "=")),
        *((word, None) for word in ("", "~", "null", "Null", "NULL")),
        *((word, word.lower() == "true") for word in ("true", "True", "TRUE", "false", "False", "FALSE")),
        *[("0", 0), ("-7", -7), ("+7", 7), ("0x1F", 31), ("0o17", 15), ("9" * 40, int("9" * 40))],
        *[("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("1.", 1.0), ("-1.5E-2", -0.015)],
    ],
)
def test_scalars_are_those_of_yaml_1_2_and_what_could_surprise_is_text(text: str, value: Any) -> None:
    result = parse(f"a: {text}", "f").data["a"]
    assert (result, type(result)) == (value.strip("'\"") if isinstance(value, str) else value, type(value))


NAMES = st.text(st.characters(categories=["L", "N"], include_characters="_- +"), max_size=8)
PLAIN = st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text("abc 'x:#-é\n", max_size=12)
TREES = st.recursive(
    PLAIN, lambda sub: st.lists(sub, max_size=3) | st.dictionaries(NAMES, sub, max_size=3), max_leaves=20
)


@given(st.dictionaries(NAMES, TREES, max_size=4), st.booleans())
@settings(deadline=None, max_examples=60)
def test_what_is_written_is_what_is_read_and_every_value_has_its_place(data: dict[str, Any], flow: bool) -> None:
    quoted = pyyaml.safe_dump(data, default_flow_style=flow, default_style='"', allow_unicode=True, sort_keys=False)
    text = quoted.replace("!!null ", "").replace("!!bool ", "").replace("!!int ", "")
    document = parse(text, "f.yaml")
    lines = text.split("\n")

    def same(mine: Any, theirs: Any, path: tuple[str | int, ...]) -> None:
        file, line, column = document.values[path].split(":")
        assert file == "f.yaml"
        assert int(column) <= len(lines[int(line) - 1]) + 1
        if isinstance(theirs, dict):
            assert list(mine) == list(theirs)
            for key in theirs:
                same(mine[key], theirs[key], (*path, key))
        elif isinstance(theirs, list):
            for i, item in enumerate(theirs):
                same(mine[i], item, (*path, i))
        elif isinstance(theirs, str):
            assert mine == theirs

    if data:
        same(document.data, data, ())
    else:
        assert document == Document(file="f.yaml", data={}, keys={}, values=document.values, raw={})


VALID = sorted(name for name in FILES if name.endswith((".yaml", ".sql")) and "calls" not in name)


@given(
    st.sampled_from(VALID),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.binary(min_size=1, max_size=3)), min_size=1, max_size=4),
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_either_read_or_told_of_never_a_crash(
    project: Write, tmp_path: Path, file: str, damage: list[tuple[float, int, bytes]]
) -> None:
    data = FILES[file].encode()
    for at, cut, insert in damage:
        place = int(at * len(data))
        data = data[:place] + insert + data[place + cut :]
    root = tmp_path if (tmp_path / "plans").exists() else project({})
    (root / file).write_bytes(data)
    messages: tuple[Problem, ...] = ()
    start = time.process_time()
    try:
        load(root)
    except Problems as error:
        messages = error.problems
    (root / file).write_text(FILES[file])
    assert all(problem.where.startswith(("plans/", "regions/")) for problem in messages)
    assert all(problem.where.count(":") == 2 for problem in messages)
    assert time.process_time() - start < 1


def test_a_file_of_the_largest_size_is_read_in_time() -> None:
    lines = "".join(f"key{i}: '{'x' * 60}'\n" for i in range(3_500))
    assert len(lines) <= MAX_BYTES
    start = time.process_time()
    assert len(parse(lines, "f").data) == 3_500
    assert time.process_time() - start < 1.5
