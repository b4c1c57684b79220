"""Notes that operators leave with a region, for the next shift and for decisions at the gate. Pure."""

from console.errors import DataError
from console.record import dataclass
from console.text import safe_text

NOTE_CHARACTERS = 500
NOTES_KEPT = 20  # kept in a status; the region stores all


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """An operator left a note."""

    by: str
    host: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note with its time, seconds since 1970, UTC."""

    at: float
    by: str
    host: str
    text: str


def note_text(typed: str) -> str:
    """A note as stored: one line, with terminal control characters escaped and secrets redacted.

    raises  DataError E_RANGE for an empty or too long note
    """
    text = " ".join(typed.split())
    if not text or len(text) > NOTE_CHARACTERS:
        why = f"has {len(text):,} characters" if text else "is empty"
        raise DataError(f"the note {why}", hint=f"one line of 1 … {NOTE_CHARACTERS} characters", code="E_RANGE")
    return safe_text(text, 2 * NOTE_CHARACTERS)
