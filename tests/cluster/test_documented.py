"""The regions of docs/clusters.md: read as they stand there, and each of their settings is one that this Spark knows."""

import re
import zipfile
from pathlib import Path

import pyspark
import pytest

from console.model.region import Region
from console.project.regions import read_regions

PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
REFUSED = {
    "spark://": None,
    "yarn": "its Spark is neither a local one nor a standalone cluster",
    "k8s://": "its Spark is neither a local one nor a standalone cluster",
    "sc://": None,
}
# names that Spark puts together from a prefix and an end
COMPOSED = {"spark.kubernetes.authenticate.serviceAccountName": ("spark.kubernetes.authenticate", "serviceAccountName")}


def documented() -> list[str]:
    """The blocks of the page that are files of a region."""
    blocks = re.findall(r"(?m)(?:^    .*\n|^\n(?=    ))+", PAGE.read_text())
    return [re.sub(r"(?m)^    ", "", block) for block in blocks if "# regions/" in block]


def region_of(text: str, root: Path) -> Region:
    (root / "regions").mkdir()
    (root / "regions" / "eu.yaml").write_text(text)
    entries, problems = read_regions(root)
    assert not problems
    (entry,) = entries
    assert entry.region is not None
    return entry.region


@pytest.mark.parametrize("text", documented())
def test_a_region_of_the_page_is_read_and_refused_as_the_page_says(text: str, tmp_path: Path) -> None:
    region = region_of(text, tmp_path)
    refused = [problem.message for problem in region.ineffective if problem.severity == "refuse"]
    why = next(why for start, why in REFUSED.items() if (region.spark.remote or region.spark.master).startswith(start))
    assert [(why or "") in message for message in refused] == ([True] if why else [])
    assert region.spark.conf or region.spark.remote


def test_the_page_has_each_kind_of_master() -> None:
    assert [next(kind for kind in REFUSED if kind in text) for text in documented()] == list(REFUSED)


@pytest.mark.slow
def test_each_setting_of_the_page_is_one_of_this_spark(tmp_path: Path) -> None:
    """A name that Spark does not know is ignored without a word: a keytab that is misspelt would be no keytab."""
    wanted = set()
    for at, text in enumerate(documented()):
        folder = tmp_path / str(at)
        folder.mkdir()
        wanted |= {part for name, _ in region_of(text, folder).spark.conf for part in COMPOSED.get(name, (name,))}
    assert len(wanted) > 10
    assert not wanted - known(wanted)


def known(names: set[str]) -> set[str]:
    """Of these names, those that a class of Spark's own jars holds as a constant."""
    found: set[str] = set()
    for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-*.jar"):
        if re.match(r"spark-(core|yarn|kubernetes|common-utils|network-common)_", jar.name):
            with zipfile.ZipFile(jar) as opened:
                for entry in opened.namelist():
                    if entry.endswith(".class"):
                        held = opened.read(entry)
                        found |= {name for name in names - found if name.encode() in held}
    return found
