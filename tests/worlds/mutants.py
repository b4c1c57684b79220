"""Bugs about landing tables that others write; `python -m tests.faults.mutants NAME …` plants them."""

from tests.faults.planted import Mutant

READ = (
    "tests/worlds/test_worlds.py::test_a_drawn_landing_table_is_read_and_copied_row_by_row_whoever_wrote_it_and_however"
)
DEMANDS = "tests/agent/test_reader_features.py"
VALUES = "tests/agent/test_landing.py::test_a_value_that_lands_in_a_partition_is_read_as_it_was_sent"
PLACES = "tests/project/test_warehouses_and_values.py::test_a_warehouse_is_a_place_below_the_project_an_absolute_path_or_a_uri"
TYPES = "tests/planning/test_problems.py::test_a_managed_landing_table_is_not_partitioned_by_what_would_be_misspelt"
SWAPPED = {"WORLDS_SEED": "15", "WORLDS_MANY": "0", "WORLDS_READ": "1"}

MUTANTS = (
    Mutant("a table that nobody can open is a region that is away", DEMANDS, "console/agent/survey.py",
           "        if features <= READABLE:", "        if True:"),
    Mutant("what a table demands is asked of its commits alone", DEMANDS, "console/agent/rows/demands.py",
           'actions = _lines(path) if path.suffix == ".json"', 'actions = _lines(path) if path.suffix == ".json" and "checkpoint" not in path.name'),
    Mutant("a landing table behind a link is where its link is", DEMANDS, "console/agent/survey.py",
           "    if folder := paths.unfit_here(path):", "    if folder := paths.unfit(path):"),
    Mutant("a warehouse behind a link is where its link is", PLACES, "console/project/regions.py",
           "if what := paths.unfit(place) if remote else paths.unfit_here(place):", "if what := paths.unfit(place):"),
    Mutant("a negative decimal lands in a partition", VALUES, "console/agent/ingest/parsing.py",
           "        case Decimal() if value < 0 and value != value.to_integral_value():", "        case Decimal() if False:"),
    Mutant("bytes land in a partition", VALUES, "console/agent/ingest/parsing.py",
           "        case str() if raw:", "        case str() if False:"),
    Mutant("a managed landing table is partitioned by decimals", TYPES, "console/planning/loss/protocol.py",
           r'"double|binary|decimal\(\d+,\s*[1-9]\d*\)"', '"double|binary"'),
    Mutant("a text that no partition can hold is a difference",
           "tests/faults/rules/test_recount.py::test_a_computed_text_that_no_partition_can_hold_is_no_difference",
           "console/agent/recount/live.py", "if c.name in version.partition_by and c.type == \"string\":", "if False:"),
    Mutant("a value of a partition that is none is NULL",
           "tests/faults/rules/test_read_by_log.py::test_a_value_of_a_partition_that_nobody_can_read_is_no_null",
           "console/agent/rows/appended.py", "    return f\"CAST(CAST(", "    return f\"try_cast(CAST("),
    Mutant("live rows are read by the schema of now", READ, "console/agent/feeds/ranges.py",
           "    layout = layout_of(source, commits.last)", "    layout = layout_of(source, log.latest_version(source))", SWAPPED),
    Mutant("columns of a mapped table are read by the names they show", READ, "console/agent/rows/appended.py",
           '    if mapping == "none":\n        return str(field["name"])', '    if mapping:\n        return str(field["name"])', SWAPPED),
)  # fmt: skip
