"""`console init`: a first project."""

from pathlib import Path

from console.cli.flags import command
from console.cli.output import Output
from console.cli.wiring import cli_context
from console.project import scaffold


@command("init", examples="console init\nconsole init --project lake && cd lake && console plan")
def init() -> int:
    """Write a commented inventory and a small pipeline into an empty folder.

    One region on this machine, three tables, an endpoint, and a file of events to ingest. Nothing is overwritten.
    """
    output = Output(cli_context().flags)
    root = (cli_context().flags.project or Path.cwd()).resolve()
    written = scaffold.write(scaffold.TEMPLATE, root)
    (root / "warehouse" / "local").mkdir(parents=True, exist_ok=True)
    if output.json:
        output.document({"folder": str(root), "files": list(written)})
        return 0
    for name in written:
        output.data(name)
    output.info("hint: console plan shows what would be built; console apply --yes builds it")
    output.info("      console ingest events.ndjson, then console query 'SELECT * FROM events'")
    return 0
