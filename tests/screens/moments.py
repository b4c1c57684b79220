"""The console over scripted views, for inspection: `python -m tests.screens.moments MOMENT`.

MOMENT is one of before, running, gate, failed, live, building, fleet, slow, witness, searching.
"""

import sys
import time
from dataclasses import replace

from console.tui import run
from console.witness import WitnessResult
from tests.screens import recorded as r
from tests.screens import scripted as s


def moment(name: str) -> tuple[s.RegionView, ...]:
    """The views of one moment, canary first."""
    match name:
        case "running":
            return s.live(s.US), s.running(s.EU, 1_020_000, 1_534_400), s.running(s.AP, 0, 61_200)
        case "gate":
            return s.at_gate(s.US), s.waiting(s.EU, 1_534_400), s.waiting(s.AP, 61_200)
        case "failed":
            lost = replace(s.running(s.EU, 1_020_000, 1_534_400), link="unreachable", link_why="no answer for 10 s")
            return s.live(s.US), lost, s.failed(s.AP)
        case "live":
            return s.live(s.US), s.live(s.EU), s.live(s.AP)
        case "building":
            notes = (("building", "building: 3 of 14 days"), ("waits", "waits for us"), ("waits", "waits for us"))
            return tuple(
                s.RegionView(region=r, link="connecting", notice=kind, note=note)
                for r, (kind, note) in zip((s.US, s.EU, s.AP), notes, strict=True)
            )
        case "fleet":
            return s.fleet()
        case "slow":
            return r.promoted(s.US), r.slow(), s.waiting(s.AP, 61_200)
        case "witness":
            none = WitnessResult(None, 324, "none among 324 databases")
            return tuple(
                replace(view, witness=s.witness_progress(s.witness_result(), s.witness_result(rows=2), none))
                for view in moment("before")
            )
        case "searching":
            return tuple(
                replace(view, witness=s.witness_progress(s.witness_result(), total=2)) for view in moment("before")
            )
        case _:
            return s.waiting(s.US), s.waiting(s.EU, 1_534_400), s.waiting(s.AP, 61_200)


if __name__ == "__main__":
    now = time.time() + 3600.0  # fresh for an hour
    views = (replace(view, heard=now) for view in moment(sys.argv[1] if sys.argv[1:] else "before"))
    raise SystemExit(run(s.ScriptedCockpit(*views), title="web", coach=True))
