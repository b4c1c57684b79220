"""A failed class archive does not count as done, and one of another Java version is rebuilt."""

from pathlib import Path

import pytest

from console.setup import archive


@pytest.mark.parametrize("work", ["echo no room >&2; exit 1", "exit 0"])
def test_an_archive_that_did_not_come_about_is_tried_for_again_and_one_that_did_is_not(
    work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSOLE_JARS", str(tmp_path))
    does = tmp_path / "work.sh"
    monkeypatch.setattr(archive, "agent_command", lambda *_: ["sh", str(does)])
    does.write_text(work)
    assert archive.prepare("Java 17") == ("no room" if "no room" in work else "it was not written")
    assert not archive.current("Java 17")
    does.write_text(f"echo classes > '{tmp_path}/classes.jsa'")
    assert archive.prepare("Java 17") == ""
    assert archive.current("Java 17")
    assert not archive.current("Java 21")
