"""`console promote` and `console rollback` of several regions: one confirmation, then all at once."""

import asyncio
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from console.cli.commands.rollout.confirmed import NOTHING, attached, then_text, unmoved, yes_suffices
from console.cli.commands.rollout.declared import (
    GateWords,
    asked_reason,
    asked_ticket,
    declarations,
    declared_text,
)
from console.cli.commands.rollout.regions_read import views_of
from console.cli.interrupt import run_interruptible
from console.cli.output import Output, as_data
from console.cli.reports.reporter import Reporter
from console.cli.status_text import gate_text, way_back_lines
from console.cli.wiring import OpenProject
from console.errors import AtGate, Conflict, ConsoleError
from console.runner import after_promotion
from console.runner.exit_codes import worst
from console.runner.flips import FlipEnd, Flips, RegionFlip, flips_text, wave_name
from console.runner.together.readiness import readiness, returnable, without
from console.runner.waves import next_waves
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.consent import Declaration
    from console.model.event import RolledBack
    from console.runner.view import RegionView

STATES: Mapping[FlipEnd, str] = {
    "promoted": "{release} is live (was {was})",
    "live": "{release} was live already",
    "held": "ready, and not promoted: {was} is live",
    "refused": "not promoted: {was} is live",
    "unknown": "no answer: only the region knows whether {release} is live",
}


def promote_together(project: OpenProject, output: Output, words: GateWords, reporter: Reporter) -> int:
    """Promote all of the selected regions, or none if one is not ready. reporter: takes the outcome"""
    views, errors = run_interruptible(views_of(project))
    judged = {each.region: each for each in readiness(views, _desired(project))}
    ready = [view for view in views if not judged[view.region.name].live]
    # declarations may open a gate; any other refusal comes before a question for a reason
    refused = {
        n: error for n, each in judged.items() if (error := each.error) and not isinstance(error, AtGate)
    } | errors
    asks = output.may_ask and not output.flags.yes and not refused
    declared = {}
    for view in ready:
        try:
            declared[view.region.name] = _declarations(output, view, words, asks=asks)
        except ConsoleError as error:
            refused.setdefault(view.region.name, error)
    if refused:
        reporter.errors.update(refused)
        return _none_promoted(output, project, refused)
    if ready:
        _confirm(output, project, views, [view.region.name for view in ready])
    confirmed = {view.region.name: "" if judged[view.region.name].live else view.status.rollout for view in views}
    work = _promote(project, output, confirmed, declared, reporter)
    return run_interruptible(work, lambda: _settles(output, project, "interrupted; the regions know what is live: "))


def return_together(project: OpenProject, output: Output) -> int:
    """Roll back those of the selected regions that are live with the change; the others are left alone, and named."""
    views, errors = run_interruptible(views_of(project))
    answering = [view for view in views if view.region.name not in errors]
    stays = returnable(answering, _desired(project))
    going = [view for view in answering if not stays[view.region.name]]
    for name, why in stays.items():
        if why:
            output.info(f"{name}: left alone: {safe_text(why)}")
    if not going and not errors and any(view.status.state == "rolled-back" for view in answering):
        return _report_returned(output, {}, stays, {})
    if not going and not errors:
        raise Conflict(f"{', '.join(project.names)}: none of them is live with the change", hint="console status")
    if going and not output.flags.yes:
        _confirm_return(output, project, going)
    done, failed = run_interruptible(_return(project, going)) if going else ({}, {})
    return _report_returned(output, done, stays, {**errors, **failed})


def _declarations(output: Output, view: "RegionView", words: GateWords, *, asks: bool) -> "tuple[Declaration, ...]":
    """raises  as `declarations`; nothing about a region that is not at its gate"""
    if view.status.shown != "awaiting-confirmation":
        return ()
    declared = declarations(view, words, asked_reason if asks else None, asked_ticket if asks else None)
    if output.flags.yes:
        yes_suffices(view)
    return declared


def _none_promoted(output: Output, project: OpenProject, refused: Mapping[str, ConsoleError]) -> int:
    named = [name for name in project.names if name in refused]
    rest = without(project.names, named)
    if output.json:
        entries = [{"region": name, "error": as_data(refused[name])} for name in named]
        output.document({"regions": entries, "complete": False, "promoted": 0, "without_them": rest})
    for name in named:
        output.print_region_error(name, refused[name])
    are = "is" if len(named) == 1 else "are"
    click.echo(f"nothing was promoted: {', '.join(named)} {are} not ready", err=True)
    if rest:
        click.echo(f"hint: without {'it' if len(named) == 1 else 'them'}: {rest}", err=True)
    return worst(refused.values())


def _confirm(output: Output, project: OpenProject, views: "Sequence[RegionView]", ready: Sequence[str]) -> None:
    """raises  AtGate without a confirmation"""
    if output.flags.yes:
        return
    name = wave_name((view.region.wave for view in views), project.names)
    if not output.may_ask:
        hint = f"console promote {_regions(output, project)} --yes, with the same --accept and --ticket"
        raise AtGate(f"{name}: promoting {', '.join(ready)} at once needs confirmation", hint=hint)
    click.echo(f"promote {', '.join(ready)} at once", err=True)
    for view in views:
        place = f" ({view.region.environment})" if view.region.environment else ""
        if view.region.name not in ready:
            click.echo(safe_text(f"{view.region.name}{place}: {view.live} is live already"), err=True)
            continue
        click.echo(safe_text(f"{view.region.name}{place}: {view.live or NOTHING} → {view.status.release}"), err=True)
        click.echo(gate_text(view, time.time()), err=True)
    _typed(output, project, name, "promote")


def _confirm_return(output: Output, project: OpenProject, going: "Sequence[RegionView]") -> None:
    """raises  AtGate without a confirmation"""
    name = wave_name((view.region.wave for view in going), [view.region.name for view in going])
    if not output.may_ask:
        hint = f"console rollback {_regions(output, project)} --yes"
        what = ", ".join(view.region.name for view in going)
        raise AtGate(f"{name}: the rollback of {what} needs confirmation", hint=hint)
    for view in going:
        place = f" ({view.region.environment})" if view.region.environment else ""
        click.echo(safe_text(f"{view.region.name}{place}: {view.live} → {view.previous}, the release before"), err=True)
        for line in way_back_lines(view, time.time()):
            click.echo(f"{view.region.name}: {line}", err=True)
    _typed(output, project, name, "rollback")


def _typed(output: Output, project: OpenProject, name: str, act: str) -> None:
    typed = click.prompt(f"type {name} to {act}", default="", show_default=False, err=True)
    if typed.strip() != name:
        hint = f"console {act} {_regions(output, project)}"
        raise AtGate(f"{name}: not done: another name was typed", hint=hint)


async def _promote(
    project: OpenProject,
    output: Output,
    confirmed: Mapping[str, str],
    declared: "Mapping[str, Sequence[Declaration]]",
    reporter: Reporter,
) -> int:
    async with project.fleet() as fleet:
        flips = await fleet.promote_together(confirmed, declared)
        reporter.flips = flips
        reporter.errors.update({flip.region: flip.error for flip in flips.left if flip.error})
        promoted = [flip.region for flip in flips.promoted]
        rest = [waves for name in promoted if (waves := next_waves(fleet.views[name]))]
        watched = [name for name in promoted if rest and after_promotion.is_watched(fleet.views[name])]
    for name in promoted:
        for each in declared.get(name, ()):
            output.info(f"{name}: {safe_text(declared_text(each))}")
    _report(output, project, flips)
    if watched:
        output.info(after_promotion.waits_text(watched))
    for line in dict.fromkeys(then_text(waves, project.names) for waves in rest) if flips.complete else ():
        output.info(line)
    return worst(flip.error for flip in flips.regions)


def _report(output: Output, project: OpenProject, flips: Flips) -> None:
    finish, back = (f"console {act} {_regions(output, project)}" for act in ("promote", "rollback"))
    if output.json:
        skew = flips.skew
        output.document(
            {
                "regions": [_entry(flip) for flip in flips.regions],
                "complete": flips.complete,
                "promoted": len(flips.promoted),
                "skew": {"least_seconds": skew.least, "most_seconds": skew.most} if skew else None,
                "finish": "" if flips.complete else finish,
                "return": back if flips.split else "",
            }
        )
    else:
        for flip in flips.regions:
            text = STATES[flip.end].format(release=flip.release, was=flip.was or NOTHING)
            output.data(f"{flip.region}: {safe_text(text)}")
        if flips.skew:
            output.data(flips_text(flips, flips.skew))
    for flip in flips.left:
        if flip.error:
            output.print_region_error(flip.region, flip.error)
    if flips.split:
        click.echo(_settles(output, project, "some regions are live with the change, and others are not: "), err=True)
    elif flips.left:
        refused = [flip.region for flip in flips.left if flip.error]
        rest = without(project.names, refused)
        click.echo(
            f"nothing was promoted: {', '.join(refused)} not ready" + (f"\nhint: without: {rest}" if rest else ""),
            err=True,
        )


def _entry(flip: RegionFlip) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "region": flip.region,
        "end": flip.end,
        "release": flip.release,
        "was": flip.was,
        "version": flip.version if flip.version >= 0 else None,
        "sent": flip.sent or None,
        "known": flip.known or None,
    }
    return {**entry, "error": as_data(flip.error)} if flip.error else entry


def _settles(output: Output, project: OpenProject, lead: str) -> str:
    """The two ways to end a wave that is live in part."""
    regions = _regions(output, project)
    return f"{lead}\n  finish the rest: console promote {regions}\n  return all:      console rollback {regions}"


def _regions(output: Output, project: OpenProject) -> str:
    """The selection as it was written."""
    return f"--regions {shlex.quote(output.flags.regions or ','.join(project.names))}"


def _desired(project: OpenProject) -> dict[str, str]:
    return {name: project.pipelines[name].digest() for name in project.names}


async def _return(
    project: OpenProject, going: "Sequence[RegionView]"
) -> "tuple[dict[str, RolledBack], dict[str, ConsoleError]]":
    """Roll back these regions at once; the outcome of each."""
    done: dict[str, RolledBack] = {}
    failed: dict[str, ConsoleError] = {}
    async with project.fleet() as fleet:

        async def one(view: "RegionView") -> None:
            name = view.region.name
            try:
                await attached(fleet, [name])
                unmoved(view, fleet.views[name])
                done[name] = await fleet.rollback(name)
            except ConsoleError as error:
                failed[name] = error

        await asyncio.gather(*map(one, going))
    return done, failed


def _report_returned(
    output: Output, done: "Mapping[str, RolledBack]", stays: Mapping[str, str], failed: Mapping[str, ConsoleError]
) -> int:
    if output.json:
        entries: list[dict[str, Any]] = [
            {"region": name, "release": event.release, "was": event.was, "version": event.version}
            for name, event in done.items()
        ]
        entries += [{"region": name, "left_alone": why} for name, why in stays.items() if why]
        entries += [{"region": name, "error": as_data(error)} for name, error in failed.items()]
        output.document({"regions": entries})
    else:
        for name, event in done.items():
            output.data(f"{name}: {safe_text(event.release)} is live (was {safe_text(event.was)})")
    for name, error in failed.items():
        output.print_region_error(name, error)
    return worst(failed.values())
