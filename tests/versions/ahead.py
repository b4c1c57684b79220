"""A version of console ahead of this one, made of it by the changes that docs/versions.md allows, and what it stores and says.

PYTHONPATH=TREE python -m tests.versions.ahead ROOT KIND     a region in ROOT in which that version has promoted a release
PYTHONPATH=TREE python -m tests.versions.ahead words         what its agent says that this version has no word for
"""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
VERSION = "0.9.0"
# file → what stands there → what that version has in its place
CHANGES = {
    "__init__.py": {'__version__ = "': '__version__ = "0.9.0"\n_OLD = "'},
    "model/live.py": {
        '    rules: str = field(default="", metadata=BESIDE)\n': '    rules: str = field(default="", metadata=BESIDE)\n    weather: str = field(default="", metadata=BESIDE)\n    sealed: bool = field(default=False, metadata=needed("0.9.0"))\n',
        "import BESIDE, QUIET": "import BESIDE, QUIET, needed",
    },
    "model/event.py": {
        "    quarantined: int = field(default=0, metadata=QUIET)": "    calm: bool = field(default=False, metadata=QUIET)\n    heat: float = field(default=0.0, metadata=BESIDE)\n    quarantined: int = field(default=0, metadata=QUIET)",
        "Event = (\n": '@dataclass(frozen=True, slots=True)\nclass Blessed:\n    SINCE: ClassVar[str] = "0.9.0"\n    by: str\n\n\nEvent = (\n    Blessed |',
        "import Literal": "import ClassVar, Literal",
    },
}  # fmt: skip


def tree(into: Path) -> Path:
    """A copy of this version's package with these changes."""
    shutil.copytree(ROOT / "console", into / "console", ignore=shutil.ignore_patterns("__pycache__"))
    for name, changes in CHANGES.items():
        path = into / "console" / name
        text = path.read_text()
        for was, now in changes.items():
            assert was in text, f"{name}: {was}"
            text = text.replace(was, now, 1)
        path.write_text(text)
    return into


def carried(root: Path, kind: str) -> None:
    """kind: optional, needed or blessed"""
    from console.model import event
    from console.model.event import BatchDone
    from tests.versions import test_older

    model: Any = event
    plan = test_older.planned(root)
    more: dict[str, Any] = {"weather": "fog", "sealed": kind == "needed"}
    plan = replace(plan, release=replace(plan.release, **more))
    heat: dict[str, Any] = {"calm": True, "heat": 36.6}
    events = [replace(e, **heat) if isinstance(e, BatchDone) else e for e in test_older.every_event(plan)]
    if kind == "blessed":
        events.insert(2, model.Blessed("ada"))
    test_older.stored(root / "warehouse", plan, events)


def with_later_words() -> None:
    from console.model import codec, event
    from console.model.event import Recorded

    model: Any = event
    for seq in (0, 3):
        print(codec.dumps(Recorded("web-1", seq, 5.0, model.Blessed("ada"))))


if __name__ == "__main__":
    with_later_words() if sys.argv[1] == "words" else carried(Path(sys.argv[1]), sys.argv[2])
