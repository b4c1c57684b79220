"""Signals to a real process: the first one detaches cleanly, the second one exits immediately."""

import asyncio
import signal
import subprocess
import sys

import pytest

from console.cli.interrupt import Interrupted, run_interruptible

PROGRAM = """
import asyncio, sys
from console.cli.root import cli
from console.cli.interrupt import run_interruptible

async def work(clean_up):
    print("at work", flush=True)
    try:
        await asyncio.sleep(30)
    finally:
        print("letting go", flush=True)
        await asyncio.sleep(clean_up)

import click
from console.cli import wiring
cli.get_command = lambda ctx, name: click.Command(
    "work", callback=lambda: run_interruptible(work(float(sys.argv[1])), lambda: "detached: the agents continue")
)
cli.resolve_command = lambda ctx, args: ("work", cli.get_command(ctx, "work"), [])
cli.main(["work"], obj=wiring.CliContext(wiring.Wiring(lambda _: {})))
"""


def start(clean_up: float) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(clean_up)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "at work\n"
    return process


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_cleans_up_and_says_what_goes_on(number: signal.Signals) -> None:
    process = start(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (out, err) == ("letting go\n", "detached: the agents continue\n")
    assert process.returncode == 128 + number


@pytest.mark.slow
def test_two_signals_leave_at_once_however_long_the_cleaning_up() -> None:
    process = start(600)
    process.send_signal(signal.SIGINT)
    assert process.stdout
    assert process.stdout.readline() == "letting go\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_work_that_swallows_its_cancellation_is_still_an_interrupted_one() -> None:
    async def work() -> int:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            pass
        return 0

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match="gone") as caught:
        run_interruptible(work(), lambda: "gone")
    assert caught.value.exit_code == 130
    assert signal.getsignal(signal.SIGINT) is before


def test_work_that_ends_by_itself_gives_its_result() -> None:
    async def work() -> int:
        return 7

    assert run_interruptible(work()) == 7
