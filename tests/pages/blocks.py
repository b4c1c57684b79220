"""The commands that a page shows, and what it says of each.

A shell block is an indented or fenced one whose first line begins with a program. All its lines are commands then, and a
comment says what one sees: `exit 3` for an exit code that is not 0, `→ …` for the last line, in which `…` stands for anything.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
PROGRAM = re.compile(
    r"(\.venv/bin/)?(console|make|pip|python3?|pytest|git|ssh-keyscan|ssh-keygen|ssh|mkdir|cp|curl|docker|psql|apt-get|export"
    r"|\$EDITOR)(?=\s|$)"
)
_CODE = re.compile(r"\bexit (\d+)")
_FENCE = re.compile(r"^\s*```")
_PATH = re.compile(r"\s+(plans|regions)/\S+\s{2,}(?=\S)")


@dataclass(frozen=True, slots=True)
class Command:
    """One line of a shell block.

    code  the exit code that the page promises
    last  the last line that it promises, `…` for anything; "" where it says nothing
    soon  the comment says "within seconds": a reader who sees something else calls it again
    """

    page: str
    line: int
    text: str
    code: int
    last: str
    soon: bool = False

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"

    def promised(self, line: str) -> bool:
        """Whether this is the last line that the page shows."""
        pattern = ".*".join(re.escape(part) for part in self.last.split("…"))
        return not self.last or re.fullmatch(pattern, line.strip()) is not None


def commands(page: str, root: Path = ROOT) -> tuple[Command, ...]:
    """All commands of one page, in its order."""
    return tuple(
        _command(page, number, line)
        for block in _blocks((root / page).read_text().splitlines())
        if PROGRAM.match(block[0][1])
        for number, line in block
        if line and not line.startswith("#")
    )


def mentioned(page: str, root: Path = ROOT) -> tuple[str, ...]:
    """What stands in the page's sentences as a call of console: `console plan --out FILE`."""
    prose = "\n".join(line for line in (root / page).read_text().splitlines() if not line.startswith("    "))
    return tuple(re.findall(r"`((?:\.venv/bin/)?console [^`]+)`", prose))


def called(page: str, root: Path = ROOT) -> tuple[str, ...]:
    """Calls of make and of modules in the page's sentences: `make bench`, `python -m tests.faults.report`."""
    prose = "\n".join(line for line in (root / page).read_text().splitlines() if not line.startswith("    "))
    return tuple(re.findall(r"`((?:make|python -m) [^`]+)`", prose))


def table(page: str, first: str, root: Path = ROOT) -> dict[str, str]:
    """The files that a block shows in two columns, path and content; the block is the one whose first path is `first`."""
    for block in _blocks((root / page).read_text().splitlines(), strip=False):
        if re.match(rf"\s*{re.escape(first)}\s+(?=\S)", block[0][1]):
            return _files(block)
    raise AssertionError(f"{page}: no block shows {first}")


def course(page: str, root: Path = ROOT) -> tuple[Command | dict[str, str], ...]:
    """All commands of one page and all files that it shows in two columns, in its order."""
    lines = (root / page).read_text().splitlines()
    shown = {block[0][0]: _files(block) for block in _blocks(lines, strip=False) if _PATH.match(block[0][1])}
    steps = {command.line: command for command in commands(page, root)}
    return tuple({**shown, **steps}[line] for line in sorted({**shown, **steps}))


def _files(block: list[tuple[int, str]]) -> dict[str, str]:
    """Path → content, of a block whose first line has both."""
    head = re.match(r"\s*\S+\s+", block[0][1])
    assert head is not None
    at, files, name = head.end(), {}, ""
    for _, line in block:
        name = line[:at].strip() or name
        files[name] = files.get(name, "") + line[at:] + "\n"
    return files


def _blocks(lines: list[str], *, strip: bool = True) -> Iterator[list[tuple[int, str]]]:
    """Runs of indented or fenced lines, numbered from 1; a blank line ends an indented one."""
    block: list[tuple[int, str]] = []
    fenced = False
    for number, line in enumerate([*lines, ""], 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif (fenced and line.strip()) or re.match(r" {4,}\S", line):
            block.append((number, line.strip() if strip else line))
            continue
        if block:
            yield block
        block = []


def _command(page: str, number: int, line: str) -> Command:
    text, _, comment = line.partition(" # ")
    code = _CODE.search(comment)
    last = comment.partition("→ ")[2].strip()
    return Command(page, number, text.strip(), int(code[1]) if code else 0, last, soon="within seconds" in line)
