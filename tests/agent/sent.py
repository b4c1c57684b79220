"""The expected content of a landing table after files were sent, edited and sent again: plain Python, independent of console.

Every line ever written is unique, so that a row in the table tells which line of which file it was.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random


@dataclass
class File:
    """Lines as somebody's editor shows them; "" is a blank one."""

    name: str
    lines: list[str]

    @property
    def events(self) -> list[str]:
        return [line for line in self.lines if line]

    def line_of(self, event: int) -> int:
        """The line, from 1, at which an event stands, from 0; the last one where there are fewer."""
        places = [number for number, line in enumerate(self.lines, 1) if line]
        return places[min(event, len(places) - 1)]

    def data(self) -> bytes:
        return "".join(f"{line}\n" for line in self.lines).encode()


@dataclass(frozen=True)
class Expected:
    """How a send that nothing disturbs must end: refused at a line, or with so many rows added."""

    load: str = ""
    before: int = 0
    added: int = 0
    refused_at: int = 0
    cut_short: bool = False  # the file ends within what has landed: refused, or there already where a commit ended


@dataclass
class Ledger:
    """All files of one table."""

    random: Random
    written: int = 0
    named: dict[str, list[str]] = field(default_factory=dict)  # load → its lines, all of which landed

    def line(self, story: str) -> str:
        self.written += 1
        return json.dumps({"id": f"{story}-{self.written}", "n": self.random.randrange(10**6)})

    def file(self, story: str, most: int) -> File:
        lines = [self.line(story) for _ in range(self.random.randint(1, most))]
        for _ in range(self.random.choice((0, 0, 0, 2))):
            lines.insert(self.random.randint(0, len(lines)), "")
        return File(f"{story}.ndjson", lines)

    def edited(self, file: File, story: str) -> File:
        """As its owner left it: lines added at its end, one changed, one taken out, one put in, or blanks."""
        lines, at = list(file.lines), self.random.randrange(len(file.lines))
        match self.random.choice(("grow", "grow", "grow", "change", "remove", "insert", "blank", "cut")):
            case "grow":
                lines += [self.line(story) for _ in range(self.random.randint(1, 9))]
            case "change":
                lines[at] = self.line(story)
            case "remove" if len(file.events) > 1:
                del lines[at]
            case "insert":
                lines.insert(at, self.line(story))
            case "blank":
                lines.insert(at, "")
            case "cut":
                lines = lines[: at + 1]
        return File(file.name, lines) if any(lines) else file

    def landed(self, story: str, rows: Iterable[str], versions: Sequence[File]) -> list[str]:
        """The lines of a story that landed without a load's name, in the order of the version that they begin."""
        counts = Counter(rows)
        for lines in self.named.values():
            counts.subtract(lines)
        assert not +Counter({line: count - 1 for line, count in counts.items()}), f"{story}: rows are in twice"
        mine = {line for line, count in counts.items() if count == 1 and f'"{story}-' in line}
        for version in reversed(versions):
            if set(version.events[: len(mine)]) == mine:
                return version.events[: len(mine)]
        raise AssertionError(f"{story}: what landed is the beginning of nothing that was sent")

    def begun(self, story: str, landed: list[str]) -> dict[str, list[str]]:
        """All loads of a story: their lines by the load's name, the one without a name under ""."""
        loads = {load: lines for load, lines in sorted(self.named.items()) if f'"{story}-' in lines[0]}
        return {**loads, "": landed} if landed else loads

    @staticmethod
    def expect(loads: Mapping[str, Sequence[str]], file: File) -> Expected:
        """What must come of a file that nobody named, where these loads have landed."""
        events = file.events
        begun = {load: lines for load, lines in loads.items() if not load or lines[0] == events[0]}
        same = [load for load, lines in begun.items() if events[: len(lines)] == lines]
        if same or not begun:
            best = max(same, key=lambda load: (len(begun[load]), not load), default="")
            return Expected(load=best, before=len(begun.get(best, ())), added=len(events) - len(begun.get(best, ())))
        lines = begun[""] if "" in begun else begun[sorted(begun)[-1]]
        parts = (number for number, (was, now) in enumerate(zip(lines, events, strict=False)) if was != now)
        first = next(parts, len(events))
        begins = any(lines[: len(events)] == events for lines in begun.values())
        return Expected(refused_at=file.line_of(first), cut_short=begins)
