"""`console history`, `show` and `verify`: what was done in the regions, and whether it still holds."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from console.cli.commands.receipts import text
from console.cli.flags import command
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.wiring import OpenProject, choices, cli_context, open_project
from console.errors import ConsoleError, UsageError

if TYPE_CHECKING:
    from console.drivers.protocol import Driver
    from console.model.receipt import Past

T = TypeVar("T")


@command("history", examples="console history\nconsole history --region eu --output json")
def history() -> int:
    """List the rollouts that the regions remember.

    Newest first: when, by whom, from which release to which, how it ended and who decided that. Reads the regions' own
    tables and starts nothing.
    """
    project, output = open_project(), Output(cli_context().flags)
    pasts, errors = run_interruptible(_each(project, lambda driver: driver.past(project.pipeline)))
    if output.json:
        output.document({"rollouts": text.history_data(pasts), "errors": _errors(errors)})
    else:
        output.data(text.history_text(pasts))
    return _told(output, errors)


@command("show", examples="console show web-7\nconsole show web-7 --region eu --output json")
@click.argument("rollout", metavar="ID")
def show(rollout: str) -> int:
    """Show one rollout in full: who decided it, its batches and its receipts.

    Each region numbers its own rollouts: without --region, every rollout with this ID is shown.
    """
    project, output = open_project(), Output(cli_context().flags)
    pasts, errors = run_interruptible(_each(project, lambda driver: driver.past(project.pipeline, rollout)))
    known = {region: past for region, past in pasts.items() if past.events}
    _known(rollout, bool(known), pasts, errors)
    if output.json:
        output.document(
            {"regions": [text.past_data(name, past) for name, past in known.items()], "errors": _errors(errors)}
        )
    else:
        output.data("\n\n".join(text.past_text(name, past) for name, past in known.items()))
    return _told(output, errors)


@command("verify", examples="console verify --rollout web-7\nconsole verify --rollout web-7 --region eu --output json")
@click.option("--rollout", required=True, metavar="ID", help="As `console history` lists it.")
def verify(rollout: str) -> int:
    """Check a rollout's receipts again, against the tables.

    Reads the recorded versions where these still exist, else today's tables where that is exact, and reports what can
    no longer be checked. Exits 0 if nothing differs, 1 if something does, 5 if a region is unreachable.
    """
    project, output = open_project(), Output(cli_context().flags)
    pasts, errors = run_interruptible(_each(project, lambda driver: driver.past(project.pipeline)))
    known = [name for name, past in pasts.items() if any(status.rollout == rollout for status in past.rollouts)]
    _known(rollout, bool(known), pasts, errors)
    findings_of, missed = run_interruptible(
        _each(project, lambda driver: driver.verify(project.pipeline, rollout), known)
    )
    errors |= missed
    if output.json:
        regions = [text.verified_data(name, findings) for name, findings in findings_of.items()]
        output.document({"rollout": rollout, "regions": regions, "errors": _errors(errors)})
    else:
        output.data(
            "\n\n".join(text.verified_text(output, name, rollout, findings) for name, findings in findings_of.items())
        )
    code = _told(output, errors)
    return 1 if any(finding.ok is False for findings in findings_of.values() for finding in findings) else code


async def _each(
    project: OpenProject, ask: "Callable[[Driver], Awaitable[T]]", names: list[str] | None = None
) -> tuple[dict[str, T], dict[str, ConsoleError]]:
    """Every region's answer, asked at once; one that gives none is named with its error."""
    names = list(project.names) if names is None else names
    async with project.drivers() as drivers:
        results = await asyncio.gather(*(_answer(ask(drivers[name])) for name in names))
    answers = {
        name: answer for name, answer in zip(names, results, strict=True) if not isinstance(answer, ConsoleError)
    }
    errors = {name: answer for name, answer in zip(names, results, strict=True) if isinstance(answer, ConsoleError)}
    return answers, errors


async def _answer(asked: Awaitable[T]) -> T | ConsoleError:
    try:
        return await asked
    except ConsoleError as error:
        return error


def _known(rollout: str, known: bool, pasts: "dict[str, Past]", errors: dict[str, ConsoleError]) -> None:
    """raises  UsageError where every region answers and none knows the rollout; the first error where one gave none"""
    if known:
        return
    for error in errors.values():
        raise error
    there = sorted({status.rollout for past in pasts.values() for status in past.rollouts})
    raise UsageError(f"no region knows a rollout {rollout!r:.60}", **choices(there, rollout))


def _errors(errors: dict[str, ConsoleError]) -> dict[str, str]:
    return {name: str(error) for name, error in errors.items()}


def _told(output: Output, errors: dict[str, ConsoleError]) -> int:
    """Say which regions gave no answer; returns the exit code."""
    for name, error in errors.items():
        output.print_region_error(name, error)
    return max((error.exit_code for error in errors.values()), default=0)
