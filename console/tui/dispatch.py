"""Passes requested actions on to the cockpit, after any confirmation, and reports the outcome."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol, assert_never

from console.errors import AtGate, ConsoleError
from console.model.consent import Approved, CheckAccepted, Declaration, TicketNamed, ticket_text
from console.model.gate import unaccepted, verdicts
from console.model.status import Verb
from console.runner.together.readiness import readiness, returnable
from console.runner.view import Cockpit, Outcome
from console.tui.actions import ActionRequest, RegionAction, objection, tune_objection, whole_wave
from console.tui.commands.ran import action_command, command_line
from console.tui.labels import resumes
from console.tui.state import ScreenState

if TYPE_CHECKING:
    from console.model.status import Status
    from console.runner.flips import Flips
    from console.runner.view import RegionView
    from console.tui.commands.line import LimitChange, TypedCommand
    from console.tui.dialogs.content import DialogAnswer, DialogFactory

Severity = Literal["information", "warning", "error"]


class DispatchUi(Protocol):
    """The dispatcher's view of the app: its state, a confirmation, a message to the operator."""

    @property
    def state(self) -> ScreenState: ...

    async def confirm(self, dialog: "DialogFactory") -> bool: ...

    async def confirm_with_answer(self, dialog: "DialogFactory") -> "DialogAnswer | None": ...

    def toast(self, text: str, severity: Severity = "information", title: str = "") -> None: ...

    def ran(self, line: str, result: str) -> None: ...


class Dispatcher:
    """One coroutine per action. ConsoleErrors are shown with their hint; any other exception is a bug and propagates."""

    def __init__(self, cockpit: Cockpit, ui: DispatchUi) -> None:
        self._cockpit = cockpit
        self._ui = ui

    async def dispatch(self, request: ActionRequest) -> None:
        """Perform the requested action, or say why it does not apply."""
        regions = self._applicable(request.action, self._meant(request))
        if request.action == "refresh" and not self._ui.state.refusal("refresh"):
            line = action_command("refresh", request.regions)
            await self._attempt("", lambda: self._cockpit.refresh(request.regions), line)
        elif regions:
            await self._perform(request.action, regions)

    def _meant(self, request: ActionRequest) -> tuple[str, ...]:
        """The regions of the request; of a wave that is live in part, those on which its key acts."""
        if request.named or len(request.regions) != 1:
            return request.regions
        return whole_wave(request.action, self._ui.state.splits, request.regions[0]) or request.regions

    def _applicable(self, action: RegionAction, regions: Sequence[str]) -> tuple[str, ...]:
        state = self._ui.state
        views = [state.views[name] for name in regions if name in state.views]
        if len(views) > 1 and action in ("promote", "rollback") and not state.refusal(action):
            return self._of_several(action, views)
        objections = {
            name: objection(action, state.views[name], state.refusal(action), state.at)
            for name in regions
            if name in state.views
        }
        applicable = tuple(name for name, why in objections.items() if not why)
        if objections and not applicable:
            self._ui.toast(next(iter(objections.values())), "warning")
        return applicable

    def _of_several(self, action: RegionAction, views: "Sequence[RegionView]") -> tuple[str, ...]:
        """The regions that are promoted or rolled back together; one that is not ready stays among them, and blocks the dialog."""
        if action == "promote":
            judged = readiness(views, self._desired())
            left = tuple(each.region for each in judged if not each.live)
            none = f"{', '.join(each.region for each in judged)}: live already"
        else:
            stays = returnable(views, self._desired())
            left = tuple(name for name, why in stays.items() if not why)
            none = "; ".join(f"{name}: {why}" for name, why in stays.items())
        if not left:
            self._ui.toast(none, "warning")
        return left if len(left) != 1 else self._applicable(action, left)

    def _desired(self) -> dict[str, str]:
        return {name: view.plan.desired for name, view in self._ui.state.views.items() if view.plan}

    async def _perform(self, action: RegionAction, regions: tuple[str, ...]) -> None:
        # loaded with the first action, not before the first picture
        from console.tui.dialogs.confirm import confirm_end, confirm_start
        from console.tui.dialogs.gate import confirm_promotion, confirm_return, confirm_rollback

        match action:
            case "start":
                if await self._ui.confirm(partial(confirm_start, regions=regions)):
                    await self._run_waves(regions)
            case "pause":
                paused = all(resumes(self._ui.state.views[name]) for name in regions)
                await self._control(regions, "resume" if paused else "pause")
            case "retry" | "resume":
                await self._control(regions, action)
            case "cancel" | "discard":
                if await self._ui.confirm(partial(confirm_end, regions=regions, action=action)):
                    await self._control(regions, action)
            case "promote" if len(regions) > 1:
                await self._promote_together(regions)
            case "promote":
                view = self._ui.state.views[regions[0]]
                typed = await self._ui.confirm_with_answer(partial(confirm_promotion, regions=regions))
                if typed is not None:
                    await self._declare_and_promote(regions[0], _declared(view, typed))
            case "rollback" if len(regions) > 1:
                if await self._ui.confirm(partial(confirm_return, regions=regions)):
                    await asyncio.gather(*(self._on_one("rollback", self._rollback, name) for name in regions))
            case "rollback":
                name = regions[0]
                if await self._ui.confirm(partial(confirm_rollback, region=name)):
                    await self._rollback_confirmed(name)
            case "refresh":
                await self._cockpit.refresh(regions)
            case "witness":
                line = action_command("witness", regions[:1])
                await self._attempt(regions[0], lambda: self._cockpit.witness(regions[0]), line)
            case _:
                assert_never(action)

    async def note(self, regions: Sequence[str], text: str) -> None:
        """Leave a note with each of these regions."""
        if self._ui.state.readonly:
            self._ui.toast("this console is read-only; start it without --readonly", "warning")
            return
        noted = []
        for region in regions:
            line = f"{command_line('note', (region,))} {shlex.quote(text)}"
            noted += [region] if await self._attempt(region, partial(self._note, region, text), line) else []
        if noted:
            self._ui.toast(f"noted with {', '.join(noted)}; status, history, log and gate show it")

    async def _note(self, region: str, text: str) -> None:
        await self._cockpit.note(region, text)

    async def typed(self, command: "TypedCommand", selected: Sequence[str]) -> None:
        """Perform a typed command, through the same dialogs as its key.

        selected  the regions that a key would act on
        """
        from console.runner.words import chosen

        views = self._ui.state.views
        named = chosen(command.regions, views)
        if unknown := [name for name in named if name not in views]:
            self._ui.toast(f"there is no region {unknown[0]}; there are: {', '.join(views)}", "warning")
        elif command.note:
            await self.note(named, command.note)
        elif command.approves:
            await self.approve(named)
        elif command.limits is not None:
            await self.tune(named, command.limits, command.line)
        elif command.action is not None:
            everywhere = command.action in ("start", "refresh")
            regions = named or (tuple(views) if everywhere else tuple(selected))
            if command.action == "pause":  # the key would resume a paused rollout; the typed command does not
                paused = [
                    name
                    for name in regions
                    if views[name].status.held == "paused" or views[name].status.watched.held_by
                ]
                regions = tuple(name for name in regions if name not in paused)
                if not regions:
                    self._ui.toast(f"{', '.join(paused)}: paused already", "warning")
            if regions:
                await self.dispatch(ActionRequest(action=command.action, regions=regions, named=True))

    async def tune(self, regions: Sequence[str], change: "LimitChange", line: str) -> None:
        """Change limits of the regions' running rollouts; a query is compiled over the live release of each.

        line  the command that does the same
        """
        views = [self._ui.state.views[name] for name in regions]
        refused = [why for view in views if (why := tune_objection(view, self._ui.state.readonly))]
        if refused:
            self._ui.toast(refused[0], "warning")
            return

        async def one(region: str) -> None:
            before = self._ui.state.views[region]
            status = await self._cockpit.tune(region, change.tuning, reset=change.reset)
            self._ui.toast(_tuned(before, status), title=region)

        await asyncio.gather(*(self._attempt(name, partial(one, name), line) for name in regions))

    async def _on_one(self, action: RegionAction, call: Callable[[str], Awaitable[None]], region: str) -> None:
        await self._attempt(region, partial(call, region), action_command(action, (region,)))

    async def _promote(self, region: str) -> None:
        done = await self._cockpit.promote(region)
        self._ui.toast(
            f"{done.release} is live" + (f" (previously {done.was}); R rolls back" if done.was else ""), title=region
        )

    async def _promote_together(self, regions: tuple[str, ...]) -> None:
        """Promote the regions of a wave at once, as of the rollouts and the inconclusive checks that the dialog shows."""
        from console.tui.dialogs.gate import confirm_promotion

        views = {name: self._ui.state.views[name] for name in regions}
        typed = await self._ui.confirm_with_answer(partial(confirm_promotion, regions=regions))
        if typed is None:
            return
        declared = {name: _declared(view, typed) for name, view in views.items()}
        confirmed = {name: view.status.rollout for name, view in views.items()}
        line = action_command("promote", regions) + _options([each for of in declared.values() for each in of])
        try:
            flips = await self._cockpit.promote_together(confirmed, declared)
        except ConsoleError as error:
            self._ui.ran(line, f"failed: {error}")
            self.show_error(error)
            return
        self._ui.ran(line, "done" if flips.complete else f"failed: {len(flips.left)} of {len(regions)} not promoted")
        self._tell(flips, f"wave {next(iter(views.values())).region.wave}")

    def _tell(self, flips: "Flips", wave: str) -> None:
        """Show the outcome of a barrier, its skew, and the keys that finish a wave which failed in part."""
        from console.runner.flips import skew_text

        for flip in flips.left:
            if flip.error:
                self.show_error(flip.error, flip.region)
        live = ", ".join(flip.region for flip in flips.regions if flip.error is None and flip.end != "held")
        apart = f", flipped {skew_text(flips.skew)}" if flips.skew else ""
        if flips.complete:
            self._ui.toast(f"{live}: live{apart}", title=wave)
        elif flips.split:
            left = ", ".join(flip.region for flip in flips.left)
            self._ui.toast(
                f"{live}: live{apart}; not promoted: {left}\n→ P finishes the rest, R returns all", "error", wave
            )
        else:
            refused = ", ".join(flip.region for flip in flips.left if flip.error)
            self._ui.toast(f"nothing was promoted: {refused} not ready; mark the others to leave it out", "error", wave)

    async def _declare_and_promote(self, region: str, declared: tuple[Declaration, ...]) -> None:
        """Promote, after what the operator declared with it."""
        line = action_command("promote", (region,)) + _options(declared)

        async def call() -> None:
            for declaration in declared:
                await self._cockpit.declare(region, declaration)
            await self._promote(region)

        await self._attempt(region, call, line)

    async def approve(self, regions: Sequence[str]) -> None:
        """Approve the promotion of these regions, as of the checks that the screen shows."""
        if why := self._ui.state.refusal("approve"):
            self._ui.toast(why, "warning")
            return
        for region in regions:
            declared = Approved(checks=verdicts(self._ui.state.views[region].status))
            line = command_line("approve", (region,))
            if await self._attempt(region, partial(self._declare, region, declared), line):
                self._ui.toast("approved; void as soon as a check has another result", title=region)

    async def _declare(self, region: str, declared: Declaration) -> None:
        await self._cockpit.declare(region, declared)

    async def _rollback_confirmed(self, region: str) -> None:
        """Roll back to the release that the dialog named, the one that was rolled back before included."""
        view = self._ui.state.views[region]
        line = action_command("rollback", (region,))
        if view.went_back:
            line += f" --to {shlex.quote(view.previous)}"
        await self._attempt(region, partial(self._rollback, region, view.previous), line)

    async def _rollback(self, region: str, to: str = "") -> None:
        done = await self._cockpit.rollback(region, to)
        self._ui.toast(f"{done.release} is live again; {done.was} is kept until cleanup", title=region)

    async def _control(self, regions: tuple[str, ...], verb: Verb) -> None:
        async def one(region: str) -> None:
            await self._cockpit.control(region, verb)

        await asyncio.gather(
            *(self._attempt(region, partial(one, region), command_line(verb, (region,))) for region in regions)
        )

    async def _attempt(self, region: str, call: Callable[[], Awaitable[None]], line: str) -> bool:
        """Make the call, and remember it as the command `line`."""
        try:
            await call()
        except ConsoleError as error:
            self._ui.ran(line, f"failed: {error}")
            self.show_error(error, region)
            return False
        self._ui.ran(line, "done")
        return True

    def show_error(self, error: ConsoleError, region: str = "") -> None:
        """An error with the facts that the operator needs: what, where, and what to do."""
        hint = f"\n→ {error.hint}" if error.hint else ""
        self._ui.toast(f"{error}{hint}", "error", region or error.code)

    async def _run_waves(self, regions: tuple[str, ...]) -> None:
        """Run up to the gates. The cockpit starts waiting waves once a person has opened the gates before them."""
        outcomes: tuple[Outcome, ...] = ()

        async def run() -> None:
            nonlocal outcomes
            outcomes = await self._cockpit.run(regions)

        if await self._attempt("", run, action_command("start", regions)):
            self._report(outcomes)

    def _report(self, outcomes: Sequence[Outcome]) -> None:
        gates = [outcome.region for outcome in outcomes if isinstance(outcome.error, AtGate)]
        later = ", ".join(outcome.region for outcome in outcomes if outcome.state == "skipped")
        if gates:
            then = f", then {later} can start" if later else ""
            self._ui.toast(f"{', '.join(gates)}: at the gate; P shows the checks and promotes{then}")
        for outcome in outcomes:
            if outcome.error and not isinstance(outcome.error, AtGate) and outcome.state != "skipped":
                self.show_error(outcome.error, outcome.region)


def _declared(view: "RegionView", typed: "DialogAnswer") -> tuple[Declaration, ...]:
    """What a confirmed dialog declares for a region, as it was drawn: its inconclusive checks are accepted, its ticket is named."""
    from console.tui.dialogs.gate import wants_ticket

    accepted = tuple(
        CheckAccepted(table=check.table, check=check.check, detail=check.detail, reason=typed.reason)
        for check in (unaccepted(view.status) if typed.reason else ())
    )
    named = (TicketNamed(ticket=ticket_text(typed.ticket)),) if typed.ticket and wants_ticket(view) else ()
    return (*accepted, *named)


def _options(declared: Sequence[Declaration]) -> str:
    """The options with which a command declares this; "" for nothing."""
    accepted = [each for each in declared if isinstance(each, CheckAccepted)]
    names = dict.fromkeys(f"{each.table}: {each.check}" for each in accepted)
    options = "".join(f" --accept {shlex.quote(name)}" for name in names)
    options += f" --reason {shlex.quote(accepted[0].reason)}" if accepted else ""
    ticket = next((each.ticket for each in declared if isinstance(each, TicketNamed)), "")
    return f"{options} --ticket {shlex.quote(ticket)}" if ticket else options


def _tuned(before: "RegionView", status: "Status") -> str:
    """The limits from the next batch on, and the previous ones."""
    from console.model.tuning import described, limits

    plan = before.accepted
    change = ", ".join(status.tuning.changed)
    if plan:
        change = described(limits(plan, before.status.tuning), limits(plan, status.tuning))
    return f"from the next batch on: {change}" if change else "its limits are as they were"
