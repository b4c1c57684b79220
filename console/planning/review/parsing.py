"""C147: queries that parse one JSON text several times a row. A note with the measured gain of one `from_json`.

Never rewritten silently: `get_json_object` gives texts, and finds values that a schema's types would make NULL.
"""

from collections import Counter

from sqlglot import exp

from console.errors import Problem
from console.model.pipeline import Materialization, Pipeline
from console.planning.review.parsing_gain import GAIN
from console.planning.sql.tree import Text, parse
from console.remedy import Edit

FEWEST = 3  # calls; with fewer the gain is not worth the edit


def parsed_often(pipeline: Pipeline) -> list[Problem]:
    """One for each materialization that does so, of the text that it parses most often."""
    found = []
    for node in pipeline.materializations:
        text, calls = _most_parsed(node)
        if calls < FEWEST:
            continue
        gain = measured_gain(calls)
        took = f"; `from_json` once took {gain:.0%} less of a batch where that was measured" if gain > 0 else ""
        found.append(
            Problem(
                code="C147",
                message=f"{node.name} parses `{text}` {calls} times for each row{took}",
                where=node.where,
                severity="note",
                node=node.name,
                remedies=(
                    Edit(
                        node=node.name,
                        how=f"parse `{text}` once, by `from_json` in a subquery; its values of odd texts may differ",
                    ),
                ),
            )
        )
    return found


def measured_gain(calls: int) -> float:
    """Share of a batch's processor time that one `from_json` saved in place of so many calls, or of fewer; 0.0 if unknown."""
    return max((gain for number, gain in GAIN.items() if number <= calls), default=0.0)


def _most_parsed(node: Materialization) -> tuple[str, int]:
    """The column that one SELECT parses most often, and how often; ("", 0) if none does."""
    if node.sql.lower().count("get_json_object") < FEWEST:  # most queries need not be parsed
        return "", 0
    tree = parse(Text(sql=node.sql, where=node.where, node=node.name))
    calls: Counter[tuple[int, str]] = Counter()
    for call in tree.find_all(exp.JSONExtractScalar) if tree is not None else ():
        if isinstance(call.this, exp.Column):
            calls[id(call.find_ancestor(exp.Select)), call.this.name.lower()] += 1
    return max(((name, number) for (_, name), number in calls.items()), key=lambda item: item[1], default=("", 0))
