"""`console compare`: the changes that an edit of a query makes, without running either version."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from console.cli.flags import command
from console.cli.output import Output
from console.cli.plan.witness import witness_data, witness_text
from console.cli.wiring import cli_context
from console.errors import UsageError
from console.text import safe_text

if TYPE_CHECKING:
    from console.planning.compare import QueryDifference

_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
_EXAMPLE = '{"events": {"id": "bigint", "ts": "timestamp"}}'


@command(
    "compare",
    examples="""console compare old.sql new.sql
    git show HEAD:plans/web/materializations/parse.sql | console compare - plans/web/materializations/parse.sql
    console compare old.sql new.sql --schema tables.json --output json
    console compare old.sql new.sql --schema tables.json --witness""",
)
@click.argument("old", type=_FILE, metavar="OLD.sql")
@click.argument("new", type=_FILE, metavar="NEW.sql")
@click.option("--schema", "schema", type=_FILE, metavar="FILE", help="JSON {table: {column: Spark type}}.")
@click.option("--witness", is_flag=True, help="Show the fewest rows on which they differ; runs both on a local Spark.")
def compare(old: Path, new: Path, schema: Path | None, witness: bool) -> int:
    """Report what an edit of a query changes, without running it.

    Compares the rows, and each column by its computation. Where neither can be proven the answer is `unknown`, which a
    plan treats as changed. With --witness, both queries run over generated rows, unless the allow-list of SQL refuses
    one.
    """
    from console.planning.compare import compare as compared

    if str(old) == str(new) == "-":
        raise UsageError("only one of the two queries can come from stdin", hint="console compare - NEW.sql")
    texts, tables = (_text(old), _text(new)), _schema(schema) if schema is not None else None
    difference = compared(*texts, tables)
    output = Output(cli_context().flags)
    if witness:
        from console.drivers.replay import Replayer
        from console.witness import witness_between

        with Replayer() as spark:
            witness_result = witness_between(*texts, tables, spark, difference=difference)
    if output.json:
        output.document({**difference.document(), **({"witness": witness_data(witness_result)} if witness else {})})
    else:
        output.data(difference_text(difference) + (f"\n\n{witness_text(witness_result)}" if witness else ""))
    return 0


def difference_text(difference: "QueryDifference") -> str:
    """One line a verdict: `~ changed`, `+ added`, `- removed`, `> renamed`, and why."""
    lines = [f"rows: {difference.rows}"]
    renamed = [f"{old} → {new}" for old, new in difference.renamed.items()]
    groups = (
        ("= same", difference.same),
        ("~ changed", difference.changed),
        ("+ added", difference.added),
        ("- removed", difference.removed),
        ("> renamed", renamed),
    )
    lines += [f"{title:<10} {safe_text(', '.join(names))}" for title, names in groups if names]
    return "\n".join([*lines, safe_text(difference.why)])


def _text(path: Path) -> str:
    try:
        with click.open_file(str(path), encoding="utf-8") as file:
            text: str = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="a file of one query, in UTF-8") from None
    return text


def _schema(path: Path) -> dict[str, dict[str, str]]:
    """Table → column → Spark type.

    raises  UsageError if the file has another form
    """
    try:
        content: Any = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}", hint=_EXAMPLE) from None
    difference: dict[str, dict[str, str]] = {}
    for table, columns in content.items() if isinstance(content, dict) else [("a table", None)]:
        if not isinstance(columns, dict) or not all(isinstance(kind, str) for kind in columns.values()):
            raise UsageError(f"{path} does not say which columns {table} has", hint=_EXAMPLE)
        difference[table] = columns
    return difference
