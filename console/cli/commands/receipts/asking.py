"""Requests to all regions at once: each answer, or the error."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from console.cli.output import Output
from console.cli.wiring import OpenProject, choices
from console.errors import ConsoleError, UsageError

if TYPE_CHECKING:
    from console.drivers.protocol import Driver
    from console.model.receipt import Past

T = TypeVar("T")


async def asked(
    project: OpenProject, ask: "Callable[[Driver], Awaitable[T]]", names: list[str] | None = None
) -> tuple[dict[str, T], dict[str, ConsoleError]]:
    """Every region's answer, requested at once; a region without an answer is listed with its error."""
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


def check_known(rollout: str, known: bool, histories: "dict[str, Past]", errors: dict[str, ConsoleError]) -> None:
    """raises  UsageError if every region answers and none has the rollout; else the first error"""
    if known:
        return
    for error in errors.values():
        raise error
    there = sorted({status.rollout for history in histories.values() for status in history.rollouts})
    raise UsageError(f"no region knows a rollout {rollout!r:.60}", **choices(there, rollout))


def errors_data(errors: dict[str, ConsoleError]) -> dict[str, str]:
    return {name: str(error) for name, error in errors.items()}


def print_errors(output: Output, errors: dict[str, ConsoleError]) -> int:
    """Print the regions without an answer; returns the exit code."""
    for name, error in errors.items():
        output.print_region_error(name, error)
    return max((error.exit_code for error in errors.values()), default=0)
