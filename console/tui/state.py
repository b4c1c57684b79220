"""The state of all screens: one frozen value, replaced as a whole on every change."""

from collections.abc import Mapping, Sequence
from dataclasses import field, fields

from console.model.status import Status
from console.record import dataclass
from console.runner.outlook.attention import RegionNeed
from console.runner.together.readiness import SplitWave
from console.runner.view import Group, Position, RegionView
from console.runner.waves import QueuedRegion
from console.tui.history.state import HistoryState
from console.tui.labels import Condition, condition, state_label, working

# fields that change at rest, every second
AT_REST = {"status", "heard", "samples", "lag_commits", "lag_rows", "lag_seconds", "changed"}
VIEW_FIELDS = tuple(field.name for field in fields(RegionView) if field.name not in AT_REST)
STATUS_FIELDS = tuple(field.name for field in fields(Status) if field.name not in AT_REST)
NOTEWORTHY = (Condition.AT_GATE, Condition.FAILED, Condition.LIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenState:
    """All regions at one moment.

    views     region name → view, in the order of waves
    title     pipeline or project, shown in the banner
    coach     show the line with the next keys
    readonly  refuse every action that changes a region
    at        now, seconds since 1970, UTC
    groups    regions with equal plans, largest group first
    plans     region name → label of the plan that runs there, else of the pending one
    queued    regions whose wave of a rollout has not started
    splits    regions of waves that are live in part
    needs     needs of all regions, the most urgent first
    history   the rollouts that were read, and verifications
    looked    time of the last visit, seconds since 1970, UTC; 0 if never
    position  of a playback; None over live regions
    """

    views: Mapping[str, RegionView]
    title: str = ""
    coach: bool = False
    readonly: bool = False
    at: float = 0.0
    groups: tuple[Group, ...] = ()
    plans: Mapping[str, str] = field(default_factory=dict)
    queued: Mapping[str, QueuedRegion] = field(default_factory=dict)
    splits: Mapping[str, SplitWave] = field(default_factory=dict)
    needs: tuple[RegionNeed, ...] = ()
    looked: float = 0.0
    history: HistoryState = field(default_factory=HistoryState)
    position: Position | None = None

    def refusal(self, action: str) -> str:
        """Why this action is not possible in any region, as a sentence; "" if it is."""
        if self.position:
            return (
                "this is a recording: what it shows has happened, and nothing in it can be changed or requested again"
            )
        changes = action not in ("refresh", "witness")
        return "this console is read-only; start it without --readonly" if self.readonly and changes else ""


def noteworthy(before: ScreenState, now: ScreenState) -> str:
    """`eu: at the gate`: regions that have just reached their gate, failed or gone live; "" if there are none.

    Worth a bell and a notice if the terminal is not focused.
    """
    news = [
        f"{name}: {state_label(view).text}"
        for name, view in now.views.items()
        if (current := condition(view)) in NOTEWORTHY
        and name in before.views
        and condition(before.views[name]) not in (current, Condition.READING)
    ]
    return ", ".join(news)


def farewell(state: ScreenState) -> str:
    """The rollouts that continue without the console, and how to return to them; "" for none."""
    running = [name for name, view in state.views.items() if working(view)]
    later = sorted(state.queued)
    sentences = []
    if running:
        sentences.append(
            f"{', '.join(running)}: the agents continue to the gate. `console` shows them, `console pause` stops them."
        )
    if later:
        sentences.append(f"{', '.join(later)}: not started; `console apply --regions {','.join(later)}` starts them.")
    return " ".join(sentences)


def only_lag_differs(before: RegionView | None, now: RegionView) -> bool:
    """Whether only the lag and the time of the report have changed, as at rest. Unchanged values are the same
    objects, so that only plain ones are compared."""
    return (
        before is not None
        and same_fields(before, now, VIEW_FIELDS)
        and same_fields(before.status, now.status, STATUS_FIELDS)
    )


def same_fields(before: object, now: object, names: Sequence[str]) -> bool:
    """Whether these attributes are the same objects, or equal plain values; large values are never compared."""
    pairs = ((getattr(before, name), getattr(now, name)) for name in names)
    return all(was is new or (isinstance(was, str | int | float) and was == new) for was, new in pairs)
