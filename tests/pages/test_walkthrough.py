"""docs/walkthrough.md from an empty folder on: its commands and the files that it shows, in its order, on real Spark."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import sittings
from tests.pages.blocks import Command, course
from tests.pages.terminal import in_pipe, on_terminal
from tests.pages.test_pages import COLOURS, look

pytestmark = [pytest.mark.slow, pytest.mark.spark]

PAGE, REGION = "docs/walkthrough.md", "local"
SOON_SECONDS = 300  # seconds for what is said to be there soon


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    try:
        yield tmp_path
    finally:
        in_pipe(f"console follow --region {REGION} --stop", tmp_path, sittings.environment(tmp_path))


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def run(step: Command, folder: Path) -> list[str]:
    """What the page says otherwise than the command. What is promised for soon is called again, as its reader would."""
    env, until = sittings.environment(folder), time.monotonic() + SOON_SECONDS
    while True:
        wrong = look(step, on_terminal(step.text, folder, env, term=COLOURS, answer=REGION), COLOURS)
        if not wrong or not step.soon or time.monotonic() > until:
            return wrong
        time.sleep(2)


def test_the_walkthrough_goes_from_an_empty_folder_to_a_cleanup(folder: Path) -> None:
    wrong = list[str]()
    for step in course(PAGE):
        if isinstance(step, Command):
            wrong += run(step, folder)
            if step.text == "console init":
                sittings.short_lived(folder / "regions" / f"{REGION}.yaml")
        else:
            write(folder, step)
    assert not wrong, "\n\n".join(wrong)
