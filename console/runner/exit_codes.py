"""Exit codes of a headless run."""

from collections.abc import Iterable

from console.errors import ConsoleError
from console.runner.view import Outcome

# from the mildest to the worst: a caller that sees one number must see the most urgent one
_ORDER = (0, 3, 4, 5, 1, 64, 65)


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """The worst of the outcomes: 0 done, 3 at the gate, 4 conflict, 5 unreachable, 1 failed, 65 invalid files or answers."""
    return worst(outcome.error for outcome in outcomes)


def worst(errors: Iterable[ConsoleError | None]) -> int:
    """The exit code of the error that most needs a person; 0 if there is none."""
    codes = [error.exit_code if error else 0 for error in errors]
    return max(codes, key=lambda code: _ORDER.index(code) if code in _ORDER else _ORDER.index(1), default=0)
