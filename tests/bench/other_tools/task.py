"""What a tool is given to build: the demo's query of requests over a landing table. Stdlib alone: it is read in the tool's own Python."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "task.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillTask:
    """
    landing   path of the landing table
    columns   of the target, name → Spark type, in the table's order
    query     the pipeline's own text, from `landing`
    begin, end   first and last day, ISO 8601
    after     the day after the last one
    conf      of Spark: that of our agent, without what is a part of our product
    batch_days  days a job; 0 for one job
    """

    landing: str
    columns: dict[str, str]
    query: str
    begin: str
    end: str
    after: str
    conf: dict[str, str]
    batch_days: int

    def write(self, folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(self)))

    def query_from(self, source: str) -> str:
        """The query with another text in place of its one `FROM landing`."""
        before, found, after = self.query.partition("FROM landing\n")
        assert found, "the query reads `landing` once, at the end of a line"
        assert "FROM landing\n" not in after
        return f"{before}FROM {source}\n{after}"


def read(folder: Path) -> BackfillTask:
    return BackfillTask(**json.loads((folder / FILE).read_text()))
