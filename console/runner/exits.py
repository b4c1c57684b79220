"""What a headless run tells its caller."""

from collections.abc import Iterable

from console.runner.view import Outcome

# from the mildest to the worst: a caller that sees one number must see the one that needs a person most
_ORDER = (0, 3, 4, 5, 1, 64, 65)


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """The worst of the outcomes: 0 done, 3 at the gate, 4 conflict, 5 unreachable, 1 failed, 65 wrong as written."""
    codes = [outcome.error.exit_code if outcome.error else 0 for outcome in outcomes]
    return max(codes, key=lambda code: _ORDER.index(code) if code in _ORDER else _ORDER.index(1), default=0)
