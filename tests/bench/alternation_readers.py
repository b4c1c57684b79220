"""Eight readers in a loop, each through the live release: `WAREHOUSE`, until SIGTERM; then prints one JSON object.

A read is *torn* if a table differs from the release's manifest, if a table below another has more rows than that, or if one of
the live release has fewer rows than were read of it in that release before. It is *failed* if anything raised, and *behind* if a table has
fewer rows than the same reader saw in the release that was live before. Knows nothing of the agent.
"""

import json
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from console.demo import reader

READERS, EVERY = 8, 0.4  # seconds from the end of a read to the next one of the same reader
OTHERS = 2  # of the tables in which nothing lands, in each read
MOST_NOTES = 5


class LiveReader:
    """One reader: what it has read of a table never becomes fewer rows."""

    def __init__(self, warehouse: Path, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self.notes: list[str] = []
        self.releases: set[str] = set()
        self._warehouse, self._random = warehouse, random.Random(seed)
        self._tables: dict[str, DeltaTable] = {}
        self._grown: dict[tuple[str, str], int] = {}  # release and table → rows
        self._newest: dict[str, int] = {}  # table → rows, in whichever release was live

    def run(self, ended: threading.Event) -> None:
        while not ended.wait(EVERY):
            self.counts["reads"] += 1
            try:
                torn = self._read()
            except Exception as error:
                self._note("failed", f"{type(error).__name__}: {error}")
            else:
                if torn:
                    self._note("torn", "; ".join(torn))

    def _note(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if len(self.notes) < MOST_NOTES:
            self.notes.append(f"{kind}: {text}"[:500])

    def _read(self) -> list[str]:
        promotions = self._promotions()
        release, manifest = reader.live_release(self._warehouse, "web")
        states = {state["table"]["name"]: state for state in manifest["tables"]}
        shared = sorted(name for name in states if name.startswith("shared"))
        quiet = sorted(name for name in states if name.startswith("quiet"))
        torn, rows = [], dict[str, int]()
        for name in (*shared, "copy", *self._random.sample(quiet, OTHERS)):  # what lies below is read first
            table = reader.open_table(self._tables, self._warehouse / states[name]["version"]["path"])
            torn += reader.differences(states[name], table)
            rows[name], _ = reader.read_newest_file(table, self._warehouse, states[name]["version"]["path"])
        self.releases.add(release)
        if self._promotions() == promotions:  # else it was read after its time, while the other one fed what both share
            torn += [
                f"{name}: {rows[name]} rows of {rows['copy']} above" for name in shared if rows[name] > rows["copy"]
            ]
            torn += self._fewer(release, rows)
        return torn

    def _fewer(self, release: str, rows: Mapping[str, int]) -> list[str]:
        """Tables with fewer rows than before in this release; one that has fewer than in the other one counts as behind."""
        before = {name: self._grown.get((release, name), 0) for name in rows}
        torn = [f"{name}: {found} rows, {before[name]} before" for name, found in rows.items() if found < before[name]]
        behind = [
            f"{name}: {self._newest[name] - found} rows"
            for name, found in rows.items()
            if found < self._newest.get(name, 0)
        ]
        if behind and not torn:
            self._note("behind", f"{release}: {'; '.join(behind)}")
        self._grown |= {(release, name): found for name, found in rows.items()}
        self._newest |= rows
        return torn

    def _promotions(self) -> int:
        """The version of the release table."""
        return int(DeltaTable(str(self._warehouse / "_console" / "web" / "releases")).version())


def main(warehouse: Path) -> dict[str, Any]:
    ended, began = threading.Event(), time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    readers = [LiveReader(warehouse, seed) for seed in range(READERS)]
    threads = [threading.Thread(target=each.run, args=(ended,)) for each in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = sum((each.counts for each in readers), Counter[str]())
    return {
        "reads": total["reads"],
        "failed": total["failed"],
        "behind": total["behind"],
        "torn": total["torn"],
        "releases": len(set[str]().union(*(each.releases for each in readers))),
        "seconds": time.monotonic() - began,
        "notes": [note for each in readers for note in each.notes][:MOST_NOTES],
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
