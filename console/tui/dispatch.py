"""Carries what the operator asked to the cockpit, after the questions it needs, and says how it went."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Literal, Protocol, assert_never

from console.errors import AtGate, ConsoleError
from console.runner.view import Cockpit, Outcome
from console.tui.actions import ActionRequest, RegionAction, objection
from console.tui.dialogs.confirm import confirm_end, confirm_start
from console.tui.dialogs.content import DialogContent, DialogFactory
from console.tui.dialogs.gate import confirm_promotion, confirm_rollback
from console.tui.state import ScreenState

Severity = Literal["information", "warning", "error"]


class DispatchUi(Protocol):
    """What an errand needs of the app: the scene, a question asked, a word said."""

    @property
    def scene(self) -> ScreenState: ...

    async def sure(self, asking: DialogFactory) -> bool: ...

    def say(self, text: str, severity: Severity = "information", title: str = "") -> None: ...


class Dispatcher:
    """One coroutine a deed; every error of the tree is said with its hint, any other is a bug and escapes."""

    def __init__(self, cockpit: Cockpit, voice: DispatchUi) -> None:
        self._cockpit = cockpit
        self._voice = voice

    async def carry(self, ask: ActionRequest) -> None:
        """Do what was asked, or say why not."""
        regions = self._fitting(ask.deed, ask.regions)
        if ask.deed == "refresh":
            await self._try("", lambda: self._cockpit.refresh(ask.regions))
        elif regions:
            await self._do(ask.deed, regions)

    def _fitting(self, deed: RegionAction, regions: Sequence[str]) -> tuple[str, ...]:
        scene = self._voice.scene
        against = {name: objection(deed, scene.views[name], scene.readonly) for name in regions if name in scene.views}
        fitting = tuple(name for name, why in against.items() if not why)
        if against and not fitting:
            self._voice.say(next(iter(against.values())), "warning")
        return fitting

    async def _do(self, deed: RegionAction, regions: tuple[str, ...]) -> None:
        match deed:
            case "start":
                if await self._voice.sure(partial(confirm_start, regions=regions)):
                    await self._through_waves(regions)
            case "pause":
                paused = all(self._voice.scene.views[name].status.held == "paused" for name in regions)
                await self._control(regions, "resume" if paused else "pause")
            case "retry":
                await self._control(regions, "retry")
            case "cancel" | "discard":
                if await self._voice.sure(partial(confirm_end, regions=regions, deed=deed)):
                    await self._control(regions, deed)
            case "promote":
                await self._one(regions, confirm_promotion, self._promote)
            case "rollback":
                await self._one(regions, confirm_rollback, self._rollback)
            case "refresh":
                await self._cockpit.refresh(regions)
            case "witness":
                await self._try(regions[0], lambda: self._cockpit.witness(regions[0]))
            case _:
                assert_never(deed)

    async def _one(
        self,
        regions: tuple[str, ...],
        asking: Callable[[ScreenState, str], DialogContent],
        deed: Callable[[str], Awaitable[None]],
    ) -> None:
        # a promotion is decided region by region: its name has to be typed
        region = regions[0]
        if await self._voice.sure(lambda scene: asking(scene, region)):
            await self._try(region, lambda: deed(region))

    async def _promote(self, region: str) -> None:
        done = await self._cockpit.promote(region)
        self._voice.say(f"{done.release} is live, it was {done.was or 'nothing'}; R goes back", title=region)

    async def _rollback(self, region: str) -> None:
        done = await self._cockpit.rollback(region)
        self._voice.say(f"{done.release} is live again, {done.was} stays built", title=region)

    async def _control(
        self, regions: tuple[str, ...], verb: Literal["pause", "resume", "retry", "cancel", "discard"]
    ) -> None:
        async def one(region: str) -> None:
            await self._cockpit.control(region, verb)

        await asyncio.gather(*(self._try(region, partial(one, region)) for region in regions))

    async def _try(self, region: str, call: Callable[[], Awaitable[None]]) -> bool:
        try:
            await call()
        except ConsoleError as error:
            self.complain(error, region)
            return False
        return True

    def complain(self, error: ConsoleError, region: str = "") -> None:
        """An error as the operator needs it: what, where, and what to do."""
        hint = f"\n→ {error.hint}" if error.hint else ""
        self._voice.say(f"{error}{hint}", "error", region or error.code)

    async def _through_waves(self, regions: tuple[str, ...]) -> None:
        """Run to the gates. The cockpit begins the waves that wait when a person has opened them."""
        outcomes: tuple[Outcome, ...] = ()

        async def run() -> None:
            nonlocal outcomes
            outcomes = await self._cockpit.run(regions)

        if await self._try("", run):
            self._report(outcomes)

    def _report(self, outcomes: Sequence[Outcome]) -> None:
        gates = [outcome.region for outcome in outcomes if isinstance(outcome.error, AtGate)]
        later = ", ".join(outcome.region for outcome in outcomes if outcome.state == "skipped")
        if gates:
            then = f", then {later} may begin" if later else ""
            self._voice.say(f"{', '.join(gates)}: at the gate; P shows the checks and promotes{then}")
        for outcome in outcomes:
            if outcome.error and not isinstance(outcome.error, AtGate) and outcome.state != "skipped":
                self.complain(outcome.error, outcome.region)
