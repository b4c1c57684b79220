"""PIVOT and UNPIVOT: which rows they make depends on every column they do not name."""

from dataclasses import replace

from sqlglot import exp

from console.planning.sql.meaning.scope import Scope
from console.planning.sql.meaning.values import Values
from console.planning.sql.relation import Relation, Value, mix
from console.planning.sql.tree import DIALECT


def pivoted(relation: Relation, pivot: exp.Expr, scope: Scope) -> Relation:
    """The relation turned; columns it does not name are grouped by, or repeated."""
    named = {column.name.lower() for column in pivot.find_all(exp.Column)}
    kept = {name: value for name, value in relation.columns.items() if name not in named}
    rests = tuple(rest.without(named) for rest in relation.rest)
    values = Values(replace(scope.beside(), sources={"": relation}), rows=relation.rows)
    grouped = sorted(value.hash for value in (*kept.values(), *(rest.value for rest in rests)))
    if pivot.args.get("unpivot"):
        made, part = _unpivot(relation, pivot, values, named)
    else:
        made, part = _pivot(relation, pivot, values, grouped)
    scope.run.notes.append(("UNPIVOT" if pivot.args.get("unpivot") else "PIVOT", mix(pivot.sql(DIALECT), *grouped)))
    reads = relation.reads.union(*(value.reads for value in made.values()))
    found = replace(relation, columns={**kept, **made}, rest=rests, reads=reads, unique=None)
    return found.sealed(part, "group")


def _pivot(relation: Relation, pivot: exp.Expr, values: Values, grouped: list[str]) -> tuple[dict[str, Value], str]:
    part = mix("pivot", relation.rows, *grouped)
    values.group = part
    fields = [values.value(field.this) for field in pivot.args.get("fields") or ()]
    options = [values.value(option) for field in pivot.args.get("fields") or () for option in field.expressions]
    results = [values.value(result) for result in pivot.expressions]
    names = [column.name.lower() for column in pivot.args.get("columns") or ()]
    said = [value.hash for value in (*fields, *options, *results)]
    made = {}
    for at, name in enumerate(names):
        hashes = said
        if len(fields) == 1 and len(names) == len(options) * len(results):
            option, result = options[at // len(results)], results[at % len(results)]
            hashes = [fields[0].hash, option.hash, result.hash]
        reads = frozenset().union(*(value.reads for value in (*fields, *results)))
        made[name] = Value(mix("pivoted", part, *hashes), reads)
    # without names for what it makes, its columns are as good as unknown
    return made, part if names else mix(part, *said)


def _unpivot(relation: Relation, pivot: exp.Expr, values: Values, named: set[str]) -> tuple[dict[str, Value], str]:
    turned = [values.value(column) for column in pivot.find_all(exp.Column)]
    reads = frozenset().union(*(value.reads for value in turned))
    part = mix("unpivot", relation.rows, pivot.sql(DIALECT), *(value.hash for value in turned))  # its labels are data
    labels = [part.name.lower() for part in pivot.expressions if isinstance(part, exp.Identifier)]
    for field in pivot.args.get("fields") or ():
        if isinstance(field.this, exp.Identifier):
            labels.append(field.this.name.lower())
    return {name: Value(mix("@", part, name), reads) for name in labels}, part
