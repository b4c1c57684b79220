"""Escape sequences for the terminal itself: its clipboard (OSC 52) and its notices (OSC 9), through tmux as well."""

import base64
import subprocess
from collections.abc import Mapping

from console.text import safe_text

MAX_COPIED = 70_000  # bytes: terminals refuse more
TMUX_SECONDS = 2.0


def clipboard_sequence(text: str, env: Mapping[str, str]) -> str:
    """Puts the text on the clipboard of the terminal in front of the operator, over SSH too."""
    encoded = base64.b64encode(text.encode()[:MAX_COPIED]).decode()
    return _passed(f"\x1b]52;c;{encoded}\a", env)


def notice_sequence(text: str, env: Mapping[str, str]) -> str:
    """A notice outside the terminal's window, and a bell."""
    return _passed(f"\x1b]9;{safe_text(text, 120)}\a", env) + "\a"


def _passed(sequence: str, env: Mapping[str, str]) -> str:
    """Wrapped so that tmux hands it on; it does so where `allow-passthrough` is on."""
    if not env.get("TMUX"):
        return sequence
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def tmux_copy(text: str, env: Mapping[str, str]) -> bool:
    """Load tmux's buffer and have tmux tell the terminal, which needs no setting; False outside tmux, or if it fails."""
    if not env.get("TMUX"):
        return False
    try:
        done = subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=text.encode()[:MAX_COPIED],
            env=dict(env),
            capture_output=True,
            check=False,
            timeout=TMUX_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
