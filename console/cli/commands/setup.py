"""`console setup`: the requirements of an agent on this machine besides Python."""

from pathlib import Path

import click

from console import paths
from console.cli.flags import command
from console.cli.output import Output
from console.cli.wiring import cli_context
from console.drivers import prerequisites
from console.errors import ConsoleError, UsageError
from console.setup import archive, jars


@command(
    "setup",
    examples="""console setup
    console setup --pack /media/stick/jars
    console setup --from /media/stick/jars
    console setup --with s3""",
)
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Take the jars from this folder: no network is needed.",
)
@click.option(
    "--pack",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Only fill a folder, for --from on another machine.",
)
@click.option(
    "--with",
    "extra",
    type=click.Choice(list(jars.EXTRAS)),
    help="Also the jars by which Spark reaches a bucket; --from and --pack then carry these too.",
)
@click.option("--no-archive", is_flag=True, help="Make no class archive: each start of the JVM takes seconds longer.")
def setup(*, source: Path | None, pack: Path | None, extra: str | None, no_archive: bool) -> int:
    """Fetch Delta's jars for the agents of this machine, each checked by its hash.

    Requires Java 17 or 21 and console's extra `agent`. Also makes a class archive, for faster starts. Running it again
    changes nothing; `console info` shows where the jars are kept.
    """
    output = Output(cli_context().flags)
    target, wanted = paths.jars_dir(), jars.EXTRAS[extra] if extra else None
    if source and pack:
        raise UsageError("--from and --pack exclude each other", hint="--pack here, --from there")
    if pack:
        if jars.wrong(target) or (wanted and jars.wrong(target, wanted)):
            _see_spark()
        jars.pack(pack, target)
        if wanted:
            jars.pack(pack, target, wanted)
        hint = f"console setup{f' --with {extra}' if extra else ''} --from, on the other machine, takes them from there"
        _report(output, pack, archived=False, hint=hint, extra=wanted)
        return 0
    java = _see_spark()
    if source is None and jars.wrong(target):
        output.info(f"fetching {jars.PACKAGE} (once)")
    jars.install(target, source)
    if wanted:
        if source is None and jars.wrong(target, wanted):
            output.info(f"fetching {', '.join(wanted.packages)} (once)")
        jars.install(target, source, wanted)
    archived = not no_archive and _archived(output, java)
    _report(output, target, archived=archived, extra=wanted)
    return 0


def _see_spark() -> str:
    """The version of Java here.

    raises  ConsoleError if Java or pyspark is missing
    """
    for prerequisite in (prerequisites.libraries(), java := prerequisites.java()):
        if not prerequisite.ok:
            raise ConsoleError(f"{prerequisite.name}: {prerequisite.detail}", hint=prerequisite.fix, code="E_SETUP")
    return java.detail


def _archived(output: Output, java: str) -> bool:
    """Whether a class archive exists; agents work without one."""
    if archive.current(java):
        return True
    output.info("preparing the JVM's class archive (once)")
    if why := archive.prepare(java):
        output.info(
            f"there is no class archive, so each start of Spark takes seconds longer; the next set-up tries again: {why}"
        )
    return not why


def _report(output: Output, folder: Path, *, archived: bool, hint: str = "", extra: jars.Extra | None = None) -> None:
    names = list(jars.locked())
    if output.json:
        more = {"extra": {"name": extra.name, "jars": list(jars.locked(extra))}} if extra else {}
        output.document({"folder": str(folder), "jars": names, "archive": archived, **more})
        return
    output.data(f"{folder}: {len(names)} jars, as listed in jars.lock{', and a class archive' if archived else ''}")
    if extra:
        output.data(f"{folder / extra.name}: {len(jars.locked(extra))} jars, as listed in {extra.lock.name}")
    if hint:
        output.info(hint)
