"""Control of a running rollout: pause, resume, retry, cancel, discard; and cleanup of unneeded versions."""

import time
from typing import TYPE_CHECKING, Any

import click

from console.cli.commands.rollout.confirmed import attached
from console.cli.flags import command
from console.cli.interrupt import run_interruptible
from console.cli.lifetime import Lifetime
from console.cli.output import Output, as_data
from console.cli.status_text import pause_budget
from console.cli.wiring import OpenProject, cli_context, open_project
from console.errors import AtGate, Conflict, ConsoleError, UsageError
from console.model.sandbox import time_left
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.status import Status, Verb


@command("pause", changes=True, examples="console pause\nconsole pause --region eu")
def pause() -> int:
    """Pause rollouts before their next batch; live feeds continue.

    Without --regions: in every region with a running rollout.
    """
    return _steer("pause")


@command("resume", changes=True, examples="console resume --region eu")
def resume() -> int:
    """Resume paused rollouts.

    Without --regions: in every region with a paused rollout.
    """
    return _steer("resume")


@command("retry", changes=True, examples="console retry --region eu")
def retry() -> int:
    """Retry failed rollouts.

    Committed batches stay; the failed step continues after its last commit.
    Without --regions: in every region with a failed rollout.
    """
    return _steer("retry")


@command("cancel", changes=True, examples="console cancel --region eu")
def cancel() -> int:
    """Cancel a rollout and drop what it has built.

    The live release is not touched.
    """
    return _steer("cancel", drops=True)


@command("discard", changes=True, examples="console discard --region eu")
def discard() -> int:
    """Drop what a failed or cancelled rollout left behind.

    The live release is not touched.
    """
    return _steer("discard", drops=True)


def _steer(verb: "Verb", *, drops: bool = False) -> int:
    project = open_project(need_regions=drops)
    output = Output(cli_context().flags)
    if drops and output.may_ask and not output.flags.yes:
        question = f"{verb} the rollout in {', '.join(project.names)}: drop what it has built?"
        if not click.confirm(question, default=False, err=True):
            raise AtGate(f"{verb}: not done", hint="answer y, or add --yes")
    return run_interruptible(_control(project, output, verb, everywhere=not output.flags.regions))


async def _control(project: OpenProject, output: Output, verb: "Verb", *, everywhere: bool) -> int:
    """Send the verb to every region; a region that was not named and to which it does not apply is skipped."""
    entries: list[dict[str, Any]] = []
    errors: list[tuple[str, ConsoleError]] = []
    async with project.fleet() as fleet:
        if everywhere:
            await fleet.attach(project.names)
        else:
            await attached(fleet, project.names)
        for name in project.names:
            try:
                status = await fleet.control(name, verb)
            except Conflict as error:
                if everywhere and len(project.names) > 1:
                    output.detail(f"{name}: {safe_text(str(error))}")
                else:
                    errors.append((name, error))
                continue
            except ConsoleError as error:
                errors.append((name, error))
                continue
            entries.append({"region": name, "state": status.shown, "rollout": status.rollout, "why": _why(status)})
    if not entries and not errors:
        raise Conflict(f"no region has a rollout to {verb}", hint="console status")
    return _conclude(output, entries, errors)


def _why(status: "Status") -> str:
    """Why it does not proceed, and how long a pause may last."""
    budget = pause_budget(status, time.time()) if status.held == "paused" else ""
    return "; ".join(filter(None, (status.why, budget)))


def _conclude(output: Output, entries: list[dict[str, Any]], errors: list[tuple[str, ConsoleError]]) -> int:
    if output.json:
        failed = [{"region": name, "error": as_data(error)} for name, error in errors]
        output.document({"regions": [*entries, *failed]})
    else:
        for entry in entries:
            why = f" ({safe_text(entry['why'])})" if entry["why"] else ""
            output.data(f"{entry['region']}: {entry['state']}{why}")
    for name, error in errors:
        output.print_region_error(name, error)
    return max((error.exit_code for _, error in errors), default=0)


@command(
    "cleanup",
    changes=True,
    examples="""console cleanup --region eu --dry-run
    console cleanup --region eu --previous
    console cleanup --region eu --previous --hold 24h
    console cleanup --region eu --restore""",
)
@click.option("--dry-run", is_flag=True, help="Only list what would be dropped.")
@click.option(
    "--previous",
    is_flag=True,
    help="Also drop the release that a rollback would restore: after this, no rollback is possible.",
)
@click.option(
    "--allow-destructive",
    multiple=True,
    metavar="TABLE",
    help="Also drop versions of this landing table with values or rows that no other version holds; repeatable.",
)
@click.option(
    "--hold",
    type=Lifetime(),
    metavar="TIME",
    help="With --previous, in two stages: put that release on hold, and drop it after 90m, 12h, 2d … 30d.",
)
@click.option("--restore", is_flag=True, help="End the hold: the release on hold is the previous one again.")
def cleanup(
    *, dry_run: bool, previous: bool, allow_destructive: tuple[str, ...], hold: float | None, restore: bool
) -> int:
    """Drop table versions that no kept release uses.

    Deletes only in a warehouse with console's marker, and only what its releases have built.

    A release on hold is no longer fed, and no rollback returns to it; its files stay until the region's agent drops it.
    """
    if hold is not None and not previous:
        raise UsageError("--hold belongs to --previous", hint="console cleanup --previous --hold 24h")
    if restore and (dry_run or previous):
        raise UsageError("--restore takes no other option", hint="console cleanup --restore")
    project = open_project(need_regions=not dry_run)
    output = Output(cli_context().flags)
    if restore:
        return run_interruptible(_restore(project, output))
    if previous and hold is None and not dry_run and not output.flags.yes:
        _confirm_previous(output, project)
    clean = _clean(project, output, dry_run=dry_run, previous=previous, let_go=allow_destructive, hold=hold or 0.0)
    return run_interruptible(clean)


async def _restore(project: OpenProject, output: Output) -> int:
    restored: dict[str, str] = {}
    async with project.fleet() as fleet:
        await attached(fleet, project.names)
        for name in project.names:
            restored[name] = await fleet.restore(name)
    if output.json:
        output.document({"regions": [{"region": name, "restored": release} for name, release in restored.items()]})
    for name, release in restored.items() if not output.json else ():
        output.data(f"{name}: {safe_text(release)} is the previous release again, and catches up")
    return 0


def _confirm_previous(output: Output, project: OpenProject) -> None:
    for name in project.names:
        if not output.may_ask:
            hint = f"console cleanup --region {name} --previous --yes"
            raise AtGate(
                f"{name}: dropping the previous release makes a rollback impossible and needs confirmation",
                region=name,
                hint=hint,
            )
        question = f"after this {name} cannot be rolled back; type {name} to continue"
        if click.prompt(question, default="", show_default=False, err=True).strip() != name:
            raise AtGate(
                f"{name}: not done: another name was typed", region=name, hint=f"console cleanup --region {name}"
            )


async def _clean(
    project: OpenProject, output: Output, *, dry_run: bool, previous: bool, let_go: tuple[str, ...], hold: float
) -> int:
    """hold: hours; 0 to drop at once"""
    dropped: dict[str, tuple[str, ...]] = {}
    async with project.fleet() as fleet:
        await attached(fleet, project.names)
        for name in project.names:
            dropped[name] = await fleet.cleanup(name, dry_run=dry_run, previous=previous, let_go=let_go, hold=hold)
    if output.json:
        entries = [{"region": name, "dropped": list(paths)} for name, paths in dropped.items()]
        output.document({"dry_run": dry_run, **({"hold_hours": hold} if hold else {}), "regions": entries})
        return 0
    word = "would drop" if dry_run else f"drops in {time_left(hold * 3600)}" if hold else "dropped"
    for name, paths in dropped.items():
        output.data("\n".join(f"{name}: {word} {safe_text(path)}" for path in paths) or f"{name}: nothing to drop")
    return 0
