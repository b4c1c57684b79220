"""Journals in memory: hundreds of rollouts would otherwise wait for the disk, each flush of it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    yield path
    shutil.rmtree(path)
