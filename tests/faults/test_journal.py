"""A console killed while it writes down what it saw: its journal holds every event before that, whole, and takes the rest."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.model.codec import dumps
from console.model.event import Entered, Promoted, Recorded
from console.runner.journal import Journal

pytestmark = pytest.mark.faults
SEEN = (
    *(Recorded("web-2", seq, float(seq), Entered(state)) for seq, state in enumerate(("preparing", "validating"), 1)),
    Recorded("web-2", 3, 3.0, Promoted(release="r2", was="r1", by="ada", host="laptop", version=7)),
    Recorded("web-2", 4, 4.0, Entered("live")),
)
CONSOLE = """
import sys
from pathlib import Path
from console.model.codec import decode, loads
from console.model.event import Recorded
from console.runner.journal import Journal

journal = Journal(Path(sys.argv[1]))
journal.intent("eu", "web", "promote", {})
for line in sys.stdin:
    journal.record_event("eu", "web", decode(Recorded, loads(line)))
"""


@pytest.mark.parametrize(
    ("point", "kept"),
    [
        ("console-before-saw-entered-preparing", 0),
        ("console-saw-entered-preparing", 1),
        ("console-before-saw-entered-validating", 1),
        ("console-before-saw-Promoted", 2),
        ("console-saw-Promoted", 3),
        ("console-before-saw-entered-live", 3),
    ],
)
def test_killed_around_what_it_saw_the_journal_is_whole_up_to_there_and_goes_on(
    tmp_path: Path, point: str, kept: int
) -> None:
    armed, place = tmp_path / "armed", tmp_path / "journal.db"
    armed.mkdir()
    (armed / point).touch()
    env = {**os.environ, "CONSOLE_CRASH_DIR": str(armed)}
    lines = "".join(dumps(recorded) + "\n" for recorded in SEEN)
    done = subprocess.run([sys.executable, "-c", CONSOLE, str(place)], env=env, input=lines, text=True, check=False)
    assert (done.returncode, list(armed.iterdir())) == (-signal.SIGKILL, [])
    again = Journal(place)
    again.check()
    assert again.events("eu") == SEEN[:kept]
    assert [entry.body["verb"] for entry in again.open_intents()] == ["promote"], "the region knows what became of it"
    for recorded in SEEN[kept:]:
        again.record_event("eu", "web", recorded)
    again.close()
    assert Journal(place).events("eu") == SEEN
