"""Notes that operators leave with a region: for the next shift, and for whoever stands at the gate. Pure."""

from console.errors import DataError
from console.record import dataclass
from console.text import safe_text

NOTE_CHARACTERS = 500
NOTES_KEPT = 20  # in a status; the region keeps all


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Somebody left a note."""

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
    """A note as it is stored: one line, with what could steer a terminal escaped and secrets left out.

    raises  DataError E_RANGE for an empty or too long note
    """
    text = " ".join(typed.split())
    if not text or len(text) > NOTE_CHARACTERS:
        why = f"has {len(text):,} characters" if text else "is empty"
        raise DataError(f"the note {why}", hint=f"one line of 1 … {NOTE_CHARACTERS} characters", code="E_RANGE")
    return safe_text(text, 2 * NOTE_CHARACTERS)
