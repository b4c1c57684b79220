"""A file is replaced as a whole, or not at all."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.cli.reports.files import write_whole
from console.errors import DataError


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As on a full disk: the system refuses what goes beyond."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_does_not_fit_leaves_the_one_before_and_nothing_beside_it(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    write_whole(report, "before")
    with files_of_at_most(4096), pytest.raises(DataError, match=r"report\.html: cannot be written: File too large"):
        write_whole(report, "x" * 100_000)
    assert report.read_text() == "before"
    assert list(tmp_path.iterdir()) == [report]


def test_a_folder_or_a_missing_one_is_an_error_that_names_it(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere" / "r.md"):
        with pytest.raises(DataError, match="cannot be written"):
            write_whole(path, "text")
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    other, report = tmp_path / "other", tmp_path / "r.md"
    other.write_text("of somebody else")
    report.symlink_to(other)
    write_whole(report, "ours")
    assert (other.read_text(), report.read_text(), report.is_symlink()) == ("of somebody else", "ours", False)
