"""The versions of Spark, Scala, Hadoop and Delta of this environment, and whether that set was tested.

source  names of the jars: no JVM is started
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

RECORD = "tested_versions.jsonl"  # beside this module; written by `make matrix`
_JARS = {
    "spark": re.compile(r"spark-core_[\d.]+-(.+)\.jar"),
    "scala": re.compile(r"scala-library-(.+)\.jar"),
    "hadoop": re.compile(r"hadoop-client-api-(.+)\.jar"),
    "delta": re.compile(r"(?:io\.delta_)?delta-spark_[\d._]+-(.+)\.jar"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkVersions:
    """Versions as the jars' names have them; "" for one that is not there."""

    spark: str = ""
    scala: str = ""
    hadoop: str = ""
    delta: str = ""

    def __str__(self) -> str:
        named = (("Spark", self.spark), ("Scala", self.scala), ("Hadoop", self.hadoop), ("Delta", self.delta))
        return ", ".join(f"{name} {version or 'missing'}" for name, version in named)


@lru_cache(4)
def installed(delta: Path) -> SparkVersions:
    """The set of this interpreter's PySpark. delta: the folder of Delta's jars"""
    spec = find_spec("pyspark")
    folders = [Path(place) / "jars" for place in (spec.submodule_search_locations or ())] if spec else []
    return of_jars(jar.name for folder in (*folders, delta) for jar in folder.glob("*.jar"))


def of_jars(names: Iterable[str]) -> SparkVersions:
    found = {}
    for name in names:
        for part, pattern in _JARS.items():
            if match := pattern.fullmatch(name):
                found[part] = match[1]
    return SparkVersions(**found)


def tested() -> dict[SparkVersions, str]:
    """Each tested set → what was run with it."""
    text = resources.files(__package__).joinpath(RECORD).read_text()  # the module may be in the archive of an SSH host
    entries = map(json.loads, text.splitlines())
    return {SparkVersions(**entry["versions"]): entry["run"] for entry in entries}
