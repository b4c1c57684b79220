"""The figures of many parts in one line: `python -m tests.planning.property.tally` prints it, `--write` puts it into docs/planner.md.

A part writes its own into the folder that `SCORES` names, for workers that run side by side have no common output.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "planner.md"
BEGIN, END = "<!-- edits: written by python -m tests.planning.property.tally --write -->\n", "<!-- end of edits -->\n"
FOLDER = "SCORES"


def note(part: int, figures: dict[str, int]) -> None:
    """Keep the figures of one part, where a folder for them is named."""
    if folder := os.environ.get(FOLDER):
        Path(folder, f"{part}.json").write_text(json.dumps(figures))


def line(folder: Path) -> str:
    """raises  SystemExit where no part left any"""
    total: Counter[str] = Counter()
    for file in sorted(folder.glob("*.json")):
        total.update(json.loads(file.read_text()))
    if not total["edits"]:
        raise SystemExit(f"no figures in {folder}: run tests/planning/property with {FOLDER}={folder} first")
    share = total["recognised"] / total["harmless"]
    return (
        f"The last long run: {total['edits']:,} edits, {total['run']:,} pairs of which something stays run on their rows; "
        f"unsafe {total['unsafe']},\nsuspected by rows {total['suspected']}; recognised {share:.1%} of "
        f"{total['harmless']:,} harmless edits; {total['precise']:,} of {total['values']:,} value edits attributed to the right column.\n"
    )


def page(text: str, message: str) -> str:
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + message + END + rest.partition(END)[2]


if __name__ == "__main__":
    text = line(Path(os.environ.get(FOLDER, ".")))
    print(text, end="")
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text(), text))
