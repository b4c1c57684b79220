"""Which results of a later round are stored: those that say something else than the status does. Pure.

The log of a rollout that waits for a month stays bounded: figures alone are not stored, and a check that has got worse often
has to be better for longer and longer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from console.model.event import Checked

MOST_ROUNDS = 64  # for which a check has to be better
_WORSE = {True: 0, None: 1, False: 2}
Key = tuple[str, str]


@dataclass(slots=True)
class RoundNews:
    """The results of one rollout's rounds, as far as they decide about the next ones."""

    _worsened: dict[Key, int] = field(default_factory=dict)  # how often
    _better: dict[Key, int] = field(default_factory=dict)  # rounds in a row

    def of(self, standing: Iterable[Checked], results: Iterable[Checked]) -> tuple[Checked, ...]:
        """The results to store. standing: the checks of the rollout's status"""
        known = {(check.table, check.check): check for check in standing}
        return tuple(check for check in results if self._is_news(known, check))

    def _is_news(self, known: Mapping[Key, Checked], check: Checked) -> bool:
        key = (check.table, check.check)
        before = known.get(key)
        was = before.ok if before is not None else True
        if _WORSE[check.ok] > _WORSE[was]:
            self._better.pop(key, None)
            self._worsened[key] = self._worsened.get(key, 0) + 1
            return True
        if _WORSE[check.ok] < _WORSE[was]:
            rounds = self._better[key] = self._better.get(key, 0) + 1
            if rounds < min(MOST_ROUNDS, 2 ** self._worsened.get(key, 0)):
                return False
            del self._better[key]
            return True
        self._better.pop(key, None)
        return check.ok is not True and before is not None and _differing(before) != _differing(check)


def _differing(check: Checked) -> tuple[str, ...]:
    """What differs, without its figures: those of a day grow with it."""
    return tuple(day.day for day in check.days if not day.equal)
