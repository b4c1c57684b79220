"""How often the forecast held the true end of the recorded rollouts, and how wide it was: `python -m tests.forecast.judge`.

Aims: at half time it holds the end of eight rollouts in ten, and its median width is at most 0.6 of the time that is left.
"""

from statistics import median

from console.record import dataclass
from tests.forecast.recorded import RecordedRollout, recorded_rollouts

SHARES = (0.25, 0.5, 0.75)  # of a rollout's time
LEAST_HELD, MOST_WIDTH = 8, 0.6  # at half time: of ten, and the median


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMoment:
    """Of one moment. held: the interval contains the true end; width: as a share of the time left, infinite without a forecast"""

    held: bool
    width: float


def judged(rollout: RecordedRollout, share: float) -> JudgedMoment:
    at = rollout.began + share * (rollout.ended - rollout.began)
    expected = rollout.forecast(at)
    if expected is None:
        return JudgedMoment(held=False, width=float("inf"))
    gate = expected.gate
    return JudgedMoment(
        held=gate.low <= rollout.ended <= gate.high, width=(gate.high - gate.low) / (rollout.ended - at)
    )


def main() -> None:
    rollouts = tuple(recorded_rollouts())
    for rollout in rollouts:
        each = [(share, judged(rollout, share)) for share in SHARES]
        words = (f"at {share:.0%} {'held' if v.held else 'missed'}, width {v.width:.2f}" for share, v in each)
        load = " to ".join(map(str, rollout.load))
        print(f"{rollout.story.value}, {rollout.ended - rollout.began:.0f} s, load {load}: {'; '.join(words)}")
    halves = [judged(rollout, 0.5) for rollout in rollouts]
    held, width = sum(verdict.held for verdict in halves), median(verdict.width for verdict in halves)
    print(f"at half time held {held} of {len(halves)}, median width {width:.2f}")


if __name__ == "__main__":
    main()
