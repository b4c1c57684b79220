"""A pipeline from the files stored with a release, with the overrides of the current project."""

import re
import shutil
import tempfile
from pathlib import Path

from console.errors import DataError
from console.model.pipeline import Pipeline
from console.model.region import Region
from console.model.sources import Sources
from console.project import Project, load

# as `pipeline.folder` reads them; the names come from a region, and become paths here
_NAME = re.compile(r"pipeline\.yaml|(tables|materializations|endpoints|copies|sinks)/[A-Za-z0-9_][A-Za-z0-9_.-]*")


def released(project: Project, pipeline: str, region: Region | None, sources: Sources | None) -> Pipeline:
    """The pipeline as a release's files declare it.

    sources  of the release; None in releases of 0.1.0
    raises  DataError E_SOURCES if the release has no files or damaged ones; Problems if this version
             of console finds errors in them
    """
    if sources is None:
        raise DataError(
            "the release keeps no files: it was made by console 0.1.0",
            hint="run the tests of the project's files: console test",
            code="E_SOURCES",
        )
    texts = sources.texts()
    if foreign := [name for name in texts if not _NAME.fullmatch(name)]:
        raise DataError(f"the release keeps a file that no pipeline has: {foreign[0]!r:.60}", code="E_SOURCES")
    with tempfile.TemporaryDirectory(prefix="console-release-") as place:
        root = Path(place)
        for folder in ("regions", "plans"):
            shutil.copytree(project.root / folder, root / folder)
        own = root / "plans" / pipeline
        shutil.rmtree(own)
        for name, text in texts.items():
            path = own / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        return load(root).pipeline(pipeline, region)
