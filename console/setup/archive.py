"""The class archive of a region's JVM, prepared once for each Java, Spark and lock; only a faster start depends on it."""

import hashlib
import subprocess
from importlib.util import find_spec
from pathlib import Path

from console import paths
from console.drivers.survey import agent_command, agent_environment
from console.setup import jars


def current(java: str) -> bool:
    """Whether the archive exists and was made for this Java, this Spark and these jars."""
    stamp = _stamp()
    return paths.archive_path().is_file() and stamp.is_file() and stamp.read_text() == _wanted(java)


def prepare(java: str) -> str:
    """Create it: half a minute of processor time.

    java     output of `java -version`
    returns  the reason for a failure, "" on success
    """
    _stamp().unlink(missing_ok=True)
    done = subprocess.run(
        agent_command("archive"), env=agent_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if not paths.archive_path().is_file():
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return " ".join(last) or "it was not written"
    _stamp().write_text(_wanted(java))
    return ""


def _stamp() -> Path:
    return paths.jars_dir() / "classes.stamp"


def _wanted(java: str) -> str:
    # the archive contains the jars' times, those of Spark's jars too
    spark = find_spec("pyspark")
    places = (Path(place) / "jars" for place in (spark.submodule_search_locations or () if spark else ()))
    installed = [place.stat().st_mtime_ns for place in places if place.is_dir()]
    return f"{java} {installed} {hashlib.sha256(jars.LOCK.read_bytes()).hexdigest()}"
