"""`console maintain`: compaction, retention and VACUUM of a region's own tables, by the region's agent."""

from collections.abc import Mapping
from typing import Any

import click

from console.cli.flags import command
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.wiring import OpenProject, cli_context, open_project, who
from console.errors import AtGate, UsageError
from console.text import safe_text


@command(
    "maintain",
    changes=True,
    examples="console maintain --region eu --dry-run\nconsole maintain --region eu\nconsole maintain --region eu --expire",
)
@click.option("--dry-run", is_flag=True, help="Only list what would be done.")
@click.option("--expire", is_flag=True, help="Also delete rows older than their table's declared retention.")
@click.option("--small-files", type=click.IntRange(min=2), default=100, show_default=True, metavar="N",
              help="Compact partitions with at least this many small files.")  # fmt: skip
@click.option(
    "--accept",
    metavar="TABLE",
    help="Let the feeds of a table continue after a foreign RESTORE or another cause that stopped them.",
)
def maintain(dry_run: bool, expire: bool, small_files: int, accept: str | None) -> int:
    """Compact a region's tables, and delete files that are no longer needed.

    The agent does this while its feeds continue: small files of a partition are merged without changing a row, and
    VACUUM keeps what a feed has not read, a rollout has fenced or a rollback may need. Compaction also runs by itself
    once an hour. Landing tables of other writers are never touched.
    """
    project = open_project(need_regions=not dry_run)
    output = Output(cli_context().flags)
    if accept and (dry_run or expire):
        raise UsageError(
            "--accept cannot be combined with other flags", hint="console maintain --region NAME --accept TABLE"
        )
    if expire and not dry_run and not output.flags.yes:
        _confirm(output, project)
    request = {"accept": accept} if accept else {"dry_run": dry_run, "expire": expire, "many": small_files}
    return run_interruptible(_kept(project, output, request))


def _confirm(output: Output, project: OpenProject) -> None:
    for name in project.names:
        hint = f"console maintain --region {name} --expire --yes"
        if not output.may_ask:
            raise AtGate(f"{name}: deleting rows past their retention needs confirmation", region=name, hint=hint)
        question = f"rows past their retention are deleted from {name}; type {name} to continue"
        if click.prompt(question, default="", show_default=False, err=True).strip() != name:
            raise AtGate(f"{name}: not done: another name was typed", region=name, hint=hint)


async def _kept(project: OpenProject, output: Output, request: Mapping[str, Any]) -> int:
    entries = []
    async with project.drivers() as drivers:
        for name in project.names:
            for done in await drivers[name].maintain(project.pipeline, who(), request):
                entries.append({"region": name, **{key: done.get(key, "") for key in ("table", "what", "detail")}})
    if output.json:
        output.document({"dry_run": bool(request.get("dry_run")), "done": entries})
        return 0
    lead = "would be " if request.get("dry_run") else ""
    lines = [f"{e['region']}: {e['table']}: {lead}{e['what']}: {e['detail']}" for e in entries]
    output.data("\n".join(safe_text(line) for line in lines) or "nothing to do")
    return 0
