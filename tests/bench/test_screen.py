"""What the screen takes of a processor: until its first picture, and at rest."""

import fcntl
import json
import os
import pickle
import pty
import statistics
import struct
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from console.runner.view import RegionView
from tests.bench import screen_process
from tests.bench.report import Measurement, check
from tests.screens import scripted as s

pytestmark = pytest.mark.bench
ROOT = Path(__file__).resolve().parents[2]
ROUNDS, REGIONS = 9, 20
PAINT_RATIO, REST_SHARE = 1.6, 0.02


def in_terminal(what: str, views: Path, rows: int = 60, columns: int = 200) -> dict[str, float]:
    """Figures of `screen_process` in a terminal that reads whatever is drawn."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    result, out = os.pipe()
    environment = {**os.environ, "OUT": str(out), "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    # compiled once, as where it is installed; kept apart, since the shell may forbid it
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(views.parent / "bytecode")}
    process = subprocess.Popen(
        [sys.executable, screen_process.__file__, what, str(views)], cwd=ROOT, env=environment, pass_fds=(out,),
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(out), os.close(theirs)
    drawn: list[bytes] = []

    def read() -> None:
        with suppress(OSError):
            while data := os.read(ours, 65536):
                drawn.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        found = os.read(result, 4096)
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        reader.join()
        os.close(result), os.close(ours)
    assert found, b"".join(drawn).decode(errors="replace")[-3000:]
    figures: dict[str, float] = json.loads(found)
    return figures


def saved(folder: Path, *views: RegionView) -> Path:
    path = folder / "views.pickle"
    path.write_bytes(pickle.dumps({view.region.name: view for view in views}))
    return path


def test_the_first_picture_costs_at_most_1_6_times_that_of_an_empty_app(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    views = saved(tmp_path, *(s.running(replace(s.EU, name=f"r{n:02}", wave=1 + n // 5)) for n in range(REGIONS)))
    for what in ("empty", "paint"):
        in_terminal(what, views)  # compiled and read once before
    pairs = [(in_terminal("paint", views), in_terminal("empty", views)) for _ in range(ROUNDS)]
    ours, empty = (statistics.median(pair[side]["seconds"] for pair in pairs) for side in (0, 1))
    text = f"{ours / empty:.2f} times an empty app's ({ours:.2f}/{empty:.2f} s)"
    what = f"first picture of {REGIONS} regions, from the start of the process"
    with capsys.disabled():
        check(Measurement(what=what, figure=ours / empty, limit=PAINT_RATIO, text=text))


def test_three_live_regions_at_rest_take_less_than_a_fiftieth_of_a_core(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    share = in_terminal("rest", saved(tmp_path, *(s.live(region) for region in (s.US, s.EU, s.AP))))["share"]
    with capsys.disabled():
        check(
            Measurement(
                what="three live regions at rest", figure=share, limit=REST_SHARE, text=f"{share:.1%} of a core"
            )
        )
