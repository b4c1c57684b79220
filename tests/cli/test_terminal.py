"""The program as a process: Ctrl-C while agents work, and questions on a real terminal."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def command(tmp_path: Path, seconds: float, before: str, *words: str) -> list[str]:
    return [sys.executable, "-m", "tests.cli.program", str(tmp_path / "project"), str(seconds), before, *words]


def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "CONSOLE_HOME": str(tmp_path / "home"), "TERM": "xterm"}


def on_terminal(tmp_path: Path, typed: bytes, *words: str) -> tuple[int, str]:
    """Exit code, and all that the terminal showed, after typing one answer."""
    return typing(command(tmp_path, 0, "apply,--regions,us", *words), environment(tmp_path), typed)


def typing(words: list[str], env: dict[str, str], typed: bytes = b"") -> tuple[int, str]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    try:
        while block := os.read(ours, 4096):
            shown += block
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return process.wait(timeout=60), shown.decode()


def test_ctrl_c_detaches_and_says_how_to_come_back(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(tmp_path, 30, "", "apply", "--yes"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(tmp_path),
    )  # fmt: skip
    assert process.stderr
    for line in process.stderr:
        if line == "us  backfilling\n":
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == (
        "detached: us continue without this console, up to the gate. "
        "Follow them with console watch, pause them with console pause --regions us"
    )


@pytest.mark.parametrize(("typed", "code"), [(b"us\n", 0), (b"eu\n", 3)])
def test_the_gate_opens_only_to_the_regions_name_typed(tmp_path: Path, typed: bytes, code: int) -> None:
    answer, shown = on_terminal(tmp_path, typed, "promote", "--region", "us")
    assert answer == code, shown
    assert "promote in us (prod): r1 → r2" in shown
    assert "requests rows per day: ok" in shown
    assert ("us: r2 is live (was r1)" in shown) == (code == 0)


def test_no_input_never_asks_even_on_a_terminal(tmp_path: Path) -> None:
    answer, shown = on_terminal(tmp_path, b"us\n", "promote", "--region", "us", "--no-input")
    assert answer == 3
    assert "type us" not in shown


def test_cancel_asks_first_and_the_answer_is_no(tmp_path: Path) -> None:
    answer, shown = on_terminal(tmp_path, b"\n", "cancel", "--region", "us")
    assert answer == 3
    assert "drop what it has built? [y/N]" in shown


@pytest.mark.parametrize("words", [("plan",), ("plan", "--explain"), ("apply", "--regions", "eu", "--yes")])
def test_a_plan_with_a_node_that_is_kept_is_drawn_in_colours(tmp_path: Path, words: tuple[str, ...]) -> None:
    code, shown = on_terminal(tmp_path, b"", *words)
    assert code in (0, 2), shown
    assert "Traceback" not in shown
    assert "\x1b[3" in shown


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_cannot_show_the_screen_gets_the_help_and_exit_64(term: str, tmp_path: Path) -> None:
    result, shown = typing([sys.executable, "-m", "console.main"], {**environment(tmp_path), "TERM": term})
    assert result == 64
    assert "Usage: console" in shown
    assert shown.splitlines()[-2] == f"error: this terminal (TERM={term}) cannot show the screen"
    assert "\x1b" not in shown
