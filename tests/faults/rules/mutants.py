"""The bugs with which the tests of rules and rivals were seen to fail; `tests.faults.mutants` plants them again."""

from tests.faults.planted import Mutant

RULES, RIVALS = "tests/faults/rules", "tests/faults/rivals"
JOINED, NEWEST = f"{RULES}/test_joined_versions.py", f"{RULES}/test_newest.py"


def bug(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    return Mutant(name, test, file, old, new)


FLOWS, TAKING, KEEPING, BATCHES = (
    f"{RULES}/test_{name}.py" for name in ("commit_kinds", "taking_over", "compaction_and_vacuum", "batches")
)
POSITIONS = f"{RULES}/test_positions.py"
REPLACED = f"{POSITIONS}::test_a_feed_is_replaced_by_another_in_one_commit"
RANGES, LOG, ONCE, FOREIGN = (
    f"console/agent/{name}.py" for name in ("feeds/ranges", "store/log", "feeds/commit", "feeds/foreign_commits")
)
COMPACT, BACKFILL, SUMS = (
    f"console/agent/{name}.py" for name in ("maintenance/compaction", "feeds/backfill", "feeds/checksum")
)
MERGED, MERGES = f"{RULES}/test_merged_states.py", f"{RULES}/test_mergeable.py"
MERGE, MAY_MERGE = (f"console/agent/maintenance/{name}.py" for name in ("merge", "mergeable"))
EDGE, LAYOUT = "console/agent/feeds/live_feed.py", "console/agent/feeds/file_layout.py"
LOG = "console/agent/store/log.py"
OPEN_TABLES, OPENED = "console/agent/store/open_tables.py", "tests/agent/test_open_tables.py"
EXPECTED, BEFORE, COMPILED = (
    f"tests/{name}.py" for name in ("agent/test_expectations", "agent/test_expected_days", "planning/test_expectations")
)
AS_EXPECTED, AT_THE_GATE = (f"console/agent/expectations/{name}.py" for name in ("guard", "at_gate"))
PROVEN, JUDGED_BACK = "tests/agent/test_way_back.py", "tests/model/test_way_back.py"
ASKING, ASKED = "tests/agent/test_way_back_endpoints.py", "console/agent/way_back/endpoints.py"
PROOF, THERE = "console/model/way_back.py", "console/agent/rows/release_files.py"
ANSWERED, CALLED = "tests/agent/test_call_answers.py", "tests/planning/test_recorded_calls.py"
DIFFERENCE, JUDGED = "console/agent/calls/difference.py", "console/agent/calls/verdict.py"
CALLING = "console/planning/derived/calls.py"
GROUPS, OF_STATES = "console/planning/reuse/groups.py", "console/planning/routes/of_states.py"
GROUPED, OLDER = "tests/planning/test_groups.py", "tests/planning/test_older_values.py"
REMEDIES, NARROWER = "tests/planning/test_remedies.py", "tests/planning/test_narrower.py"
APPENDED, BY_LOG = "console/agent/rows/appended.py", f"{RULES}/test_read_by_log.py"
SMALL, COLLECTED = f"{RULES}/test_small_batches.py", "tests/agent/test_live_feed.py::test"
READINGS, SHARED = "console/agent/feeds/readings.py", f"{RULES}/test_shared_readings.py"
FOLLOW, HEALTH = "console/agent/feeds/follower.py", "console/agent/feeds/health.py"
READING, CARRY, KILLED = "console/agent/queries.py", "console/agent/execution/executor.py", f"{RULES}/test_killed.py"
LOAD, SENDING, LOADS = "console/model/load.py", "console/runner/ingest/upload.py", "tests/agent/test_loads.py"
AT_GATE = "tests/faults/test_gate.py"
FENCE, BY_HAND = "tests/faults/test_fence.py", f"{RULES}/test_by_hand.py"
CHECKS, BY_DAY, COMPARED = (
    "console/agent/compared/checks.py",
    "console/agent/compared/by_day.py",
    f"{RULES}/test_compared.py",
)
VERIFY, DOUBLES, DOUBLE_SUMS = (
    "console/agent/compared/comparison.py",
    "console/agent/recount/doubles.py",
    f"{RULES}/test_doubles.py",
)
EDGE, RECOUNT, RECOUNTED = (
    "console/agent/feeds/live_feed.py",
    f"{RULES}/test_recount.py",
    "console/agent/recount/rows.py",
)
RIGHT = "test_what_was_moved_right_is_equal_whatever_became_of_the_tables_since"
MOVED = "computed = compute(session, self, appended, join_pins)"
NULLS = 'computed = compute(session, self, appended.selectExpr(*(f"CAST(NULL AS {t}) AS `{c}`" for c, t in appended.dtypes)), join_pins)'
MANGLED = 'computed = compute(session, self, appended.selectExpr(*("reverse(city) AS city" if c == "city" else f"`{c}`" for c in appended.columns)), join_pins)'
REPORTS, REPORTING = "console/cli/reports", "tests/cli/test_reporting.py"
STANDING, GATE = "tests/agent/test_failing_feed.py", "tests/agent/test_gate.py"
SWAP = """        if table.version() != self.version():
            raise _moved_error(live, self.in_state("live"))
        crash.point("before-swap")
        try:
            table.update("""
MUTANTS: tuple[Mutant, ...] = (
    # rules 3 to 6
    bug("restore is an append", LOG, "or replaced else", "else", f"{FLOWS}::test_a_restore_that_only_brings_rows_back_is_no_append"),
    bug("maintenance flows", LOG, 'if add.get("dataChange", True):', "if True:", f"{FLOWS}::test_maintenance_is_quiet_and_rows_around_it_flow_once"),
    bug("feeds that take other commits share rows", READINGS, "key = (source, commits,", "key = (source, commits.last,",
        f"{SHARED}::test_feeds_with_another_policy_or_another_position_have_other_rows"),
    bug("each feed plans a range of its own", READINGS, "if key not in self._planned:", "if True:",
        f"{SHARED}::test_feeds_at_one_position_share_what_is_planned_and_have_every_row"),
    bug("an excerpt stays behind the tick", READINGS, "self._folders.close()", "pass",
        f"{SHARED}::test_feeds_at_one_position_share_what_is_planned_and_have_every_row"),
    bug("rows of an ended session are read", READINGS, "if session is not self._session:", "if self._session is None:",
        f"{SHARED}::test_a_session_that_was_replaced_is_asked_for_nothing"),
    bug("rewrites flow", RANGES, 'return policy != "take_inserts" or commit.replaces', "return False", f"{FLOWS}::test_a_rewriting_commit_stops_the_feed_in_front_of_it"),
    bug("retention stops feeds", RANGES, 'if commit.is_retention or policy == "ignore":', 'if policy == "ignore":', f"{FLOWS}::test_deletes_by_our_own_retention_pass_without_a_word_under_every_policy"),
    bug("a range crosses metaData", RANGES, "if commit.metadata and files:", "if False:", f"{FLOWS}::test_a_range_ends_in_front_of_a_metadata_action"),
    bug("a range is clamped", RANGES, "min(end, position + MAX_COMMITS)", "min(end, position + MAX_COMMITS, log.latest_version(source))", f"{FLOWS}::test_a_range_past_the_end_of_the_log_is_refused_and_never_clamped"),
    bug("a shorter source is drained", RANGES, "if end < position:", "if False:", f"{FLOWS}::test_a_source_shorter_than_its_feeds_position_was_replaced"),
    bug("no limit of bytes", RANGES, "or size + more_bytes > bytes_limit", "", f"{FLOWS}::test_one_range_holds_no_more_than_its_limits_of_rows_and_of_bytes"),
    bug("what the log lost is passed over", LOG, "        yield commit(table, version)", '        if (local(table) / "_delta_log" / f"{version:020}.json").exists():\n            yield commit(table, version)', f"{FLOWS}::test_commits_older_than_the_log_are_refused_and_never_passed_over"),
    bug("a batch's first stage takes every slot", BACKFILL, "rows = rows.coalesce(tasks)", "pass",
        f"{BATCHES}::test_the_stages_of_a_batch_have_no_more_tasks_than_the_limit_though_the_files_do_not_fit_evenly"),
    # rules 1 and 2
    bug("a missing position is 0", ONCE, "foreign_commits.check_unclaimed(target, app_id)", "pass", f"{TAKING}::test_a_missing_position_is_never_taken_for_zero"),
    bug("positions may expire", ONCE, "foreign_commits.check_retains_positions(target)", "pass", f"{TAKING}::test_a_table_that_may_forget_positions_is_not_fed"),
    bug("the id names no table", "console/agent/feeds/app_ids.py", 'own = f"live/{target_id}/{feed.materialization}"', 'own = f"live/{feed.materialization}"', f"{TAKING}::test_a_replaced_table_never_looks_as_if_it_were_fed_already"),
    bug("nothing is taken over", ONCE, "            result = take_over(writer)", "            return writer", f"{TAKING}::test_a_zombie_that_writes_between_its_successors_read_and_write_changes_nothing"),
    bug("the position is read before the version", ONCE, "epoch, position = _last_position(target, app_id, seen, start, source)", "epoch, position = _last_position(target, app_id, seen, start, source)\n        seen = log.latest_version(target)", f"{TAKING}::test_a_rival_that_commits_while_a_feed_is_taken_over_is_counted"),
    bug("a dead one's take-over is believed", ONCE, 'if last is not None and (read := last.note.get("read")) is not None:', "if read := 0:", f"{TAKING}::test_a_take_over_whose_maker_died_before_it_could_look_hides_no_rival"),
    bug("a feed is replaced by one that has no position", ONCE, "writer.position, noted, (Transaction(new, number),))", "writer.position, noted)", REPLACED),
    bug("a feed is placed in the epoch of its last writer", ONCE, "app_ids.split(number)[0] + 1 if number is not None else 1", "app_ids.split(number)[0] if number is not None else 1", REPLACED),
    bug("who replaces a feed does not say what it has read", ONCE, '{**note, "closed": writer.position, "read": writer.seen}', '{**note, "closed": writer.position}', REPLACED),
    bug("a rival behind a replaced feed is not counted", ONCE, "if not any(app_id in commit.txn for commit in log.commits(target, seen + 1, result.version - 1)):", "if True:", f"{POSITIONS}::test_a_rival_that_commits_while_a_feed_is_taken_over_is_counted"),
    bug("a feed is not replaced while Spark writes", ONCE, "            raise _Apart\n", "            return CommitResult(-1, 0, 0)\n", f"{TAKING}::test_a_feed_is_replaced_in_two_commits_while_spark_writes_the_table"),
    bug("a skipped write is not noticed", ONCE, "    raise _skipped(writer, position)\n\n\ndef _skipped", "    return CommitResult(-1, 0, 0)\n\n\ndef _skipped", f"{TAKING}::test_a_late_position_is_refused_and_a_skipped_write_is_noticed"),
    bug("a late position is tried", ONCE, "if position <= writer.position:", "if False:", f"{TAKING}::test_a_late_position_is_refused_and_a_skipped_write_is_noticed"),
    bug("cdc files are passed over", LOG, 'if removed or rewritten or replaced', 'if removed or replaced', f"{FLOWS}::test_a_commit_that_keeps_a_change_feed_of_its_own_is_no_append"),
    bug("a clone is an append", LOG, '"CREATE OR REPLACE", "CLONE")', '"CREATE OR REPLACE")', f"{FLOWS}::test_a_clone_into_an_emptied_table_is_no_append"),
    bug("what a delete leaves is inserted", RANGES, " or (commit.removed > 0 and len(commit.added) > 0)", "", f"{FLOWS}::test_rows_that_a_delete_leaves_in_place_are_no_inserts"),
    # rule 5
    bug("a restored target is fed on", FOREIGN, 'if commit.kind == "rewrite" and not commit.is_retention:', "if False:", f"{TAKING}::test_a_target_that_somebody_restored_or_overwrote_is_not_fed_on_until_a_person_decides"),
    # rule 6
    bug("values of partitions come from folders", LOG, '(add.get("partitionValues") or {}).items()', '(part.split("=", 1) for part in unquote(str(add["path"])).split("/") if "=" in part)', f"{BY_LOG}::test_values_of_partitions_come_from_the_log_and_an_empty_one_is_null"),
    bug("an empty partition is a text", LOG, "(name, value or None)", "(name, value)", f"{BY_LOG}::test_values_of_partitions_come_from_the_log_and_an_empty_one_is_null"),
    bug("names in the files are ignored", APPENDED, '    if mapping == "none":\n        return str', '    if True:\n        return str', f"{BY_LOG}::test_columns_are_found_by_the_names_and_numbers_that_they_have_in_the_files"),
    bug("a path is a pattern", APPENDED, "*map(_escaped, by_path)", "*by_path", f"{BY_LOG}::test_a_path_is_no_pattern"),
    bug("files that Spark hides are passed over", APPENDED, "if uris.keys() != by_path.keys():", "if False:", f"{BY_LOG}::test_files_that_spark_hides_are_read"),
    bug("what a vector deletes flows", APPENDED, "any(file.vector for file in files) or", "", f"{BY_LOG}::test_what_deletion_vectors_delete_is_neither_read_nor_counted"),
    bug("what a vector deletes is counted", "console/agent/store/table_stats.py", 'if "deletionVectors" in (protocol.reader_features or ()):', "if False:", f"{BY_LOG}::test_what_deletion_vectors_delete_is_neither_read_nor_counted"),
    # rules 7 and 8
    bug("a pinned compaction", COMPACT, 'session.read.format("delta").load(table)', 'session.read.format("delta").option("versionAsOf", log.latest_version(table)).load(table)', f"{KEEPING}::test_compaction_loses_no_row_that_is_appended_meanwhile_and_moves_none_for_a_reader"),
    bug("compaction changes data", COMPACT, '.option("dataChange", "false")', "", f"{KEEPING}::test_compaction_loses_no_row_that_is_appended_meanwhile_and_moves_none_for_a_reader"),
    bug("totals are not compared", COMPACT, "if before_totals != after_totals:", "if False:", f"{KEEPING}::test_a_compaction_that_lost_a_row_is_found"),
    # merged states (docs/decisions/0029)
    bug("merged values are not compared", MERGE, "    if differences:\n", "    if False:\n", f"{MERGED}::test_a_merge_that_would_change_a_value_is_refused_and_changes_nothing"),
    bug("a file that a feed has not passed is merged", MERGE, "if wanted.passed >= pinned:", "if True:", f"{MERGED}::test_files_with_rows_that_a_feed_below_has_not_passed_are_left_alone"),
    bug("a merge is news for feeds", "console/agent/maintenance/replaced_files.py", "dict(f.values), f.modified, False, f.stats)", "dict(f.values), f.modified, True, f.stats)", f"{MERGED}::test_one_state_of_each_key_is_left_and_every_value_and_no_feed_sees_a_new_row"),
    bug("a receipt is not measured again", MERGE, "for rows in (before, after))", "for rows in (before, before))", f"{MERGED}::test_receipts_of_before_hold_after_merges_and_once_their_files_are_gone"),
    bug("verify knows of no merge", "console/agent/receipts/audit.py", "            sums = as_written(", "            as_written(", f"{MERGED}::test_receipts_of_before_hold_after_merges_and_once_their_files_are_gone"),
    bug("a merge that is not allowed any more is committed", MERGE, "if why := wanted.refused():", "if why := '':", f"{MERGED}::test_what_is_not_allowed_any_more_is_not_committed"),
    bug("merged files hide what was erased", MERGE, "modified=oldest", "modified=f.modified", f"{MERGED}::test_one_state_of_each_key_is_left_and_every_value_and_no_feed_sees_a_new_row"),
    bug("states are merged beside a rollout", MAY_MERGE, 'if controller.recorder.status.state not in (*ENDED, "none"):', "if False:", f"{MERGES}::test_nothing_is_merged_beside_a_rollout_or_at_its_gate"),
    bug("states are merged under an unknown reader", MAY_MERGE, "    if readers.failed:\n", "    if False:\n", f"{MERGES}::test_nothing_is_merged_while_a_pipeline_whose_readers_are_unknown_fails_to_load"),
    bug("another pipeline's rows are merged", MAY_MERGE, 'if any(state.table.kind == "landing" for', 'if any(False and state for', f"{MERGES}::test_nothing_is_merged_that_another_pipeline_takes_for_rows"),
    bug("the positions of feeds below are not asked for", MAY_MERGE, "min([latest, *(need.version for need in readers.needs)])", "latest", f"{MERGES}::test_only_what_every_feed_below_has_passed_is_merged"),
    bug("one release's merging is enough", MAY_MERGE, "if merging is None or others:", "if merging is None:", f"{MERGES}::test_nothing_is_merged_unless_all_kept_releases_agree_how"),
    bug("states under other names are merged by their query's", "console/planning/derived/release.py", "made is None or read != wanted.read or", "made is None or", "tests/planning/test_merging.py::test_states_that_are_stored_under_each_other_s_names_are_not_united_by_the_query_s"),
    bug("VACUUM asks nobody", "console/agent/maintenance/vacuum.py", "if any(stamp < oldest for stamp in _removals(table, version)):", "if False:", f"{KEEPING}::test_vacuum_leaves_a_table_alone_while_a_feed_has_not_read_what_optimize_replaced"),
    bug("time travel ends with the retention", "console/agent/spark_process.py", 'enforceTimeTravelWithinDeletedFileRetentionDuration": "false"', 'enforceTimeTravelWithinDeletedFileRetentionDuration": "true"', f"{KEEPING}::test_a_fence_older_than_the_file_retention_can_still_be_read"),
    bug("missing files are passed over", "console/agent/spark_process.py", '"spark.sql.files.ignoreMissingFiles": "false"', '"spark.sql.files.ignoreMissingFiles": "true"', f"{KEEPING}::test_vacuum_leaves_a_table_alone_while_a_feed_has_not_read_what_optimize_replaced"),
    bug("damaged files are passed over", "console/agent/spark_process.py", '"spark.sql.files.ignoreCorruptFiles": "false"', '"spark.sql.files.ignoreCorruptFiles": "true"', f"{KEEPING}::test_a_file_that_is_damaged_is_never_passed_over"),
    bug("our tables keep a week", "console/model/created.py", "hours = max(int(keep_hours), _LEAST_HOURS)", "hours = _LEAST_HOURS", f"{KEEPING}::test_our_tables_keep_files_and_log_for_the_rollback_window_and_the_longest_rollout"),
    # rules 10 to 13
    bug("the inventory's features", ONCE, "**properties, **created.OFF, userMetadata", "**properties, userMetadata", f"{BATCHES}::test_nor_have_those_that_only_spark_can_create"),
    bug("a range whose rows could not be collected is collected again", EDGE, "size <= small_batch.BYTES and writer.app_id not in _TOO_LARGE",
        "size <= small_batch.BYTES", f"{COLLECTED}_rows_that_could_not_be_collected_are_written_by_spark_from_then_on"),
    bug("a feed is marked for good as one whose ranges are too large", EDGE, "_TOO_LARGE.discard(writer.app_id)\n        return", "return",
        f"{COLLECTED}_a_range_that_was_collected_leaves_no_mark"),
    bug("a batch is collected again after it failed", BACKFILL, "if not retried and ", "if ",
        f"{SMALL}::test_the_agent_writes_the_rows_that_spark_writes"),
    bug("a batch is collected though deltalake would write it otherwise", BACKFILL,
        " and exact_appends.supports_small_appends(history.target_path)", "", f"{SMALL}::test_what_deltalake_would_write_otherwise_is_left_to_spark"),
    bug("a batch is collected whatever its size", "console/model/small_batch.py", " and size <= BYTES", "",
        "tests/model/test_small_batch.py"),
    bug("a quiet source's sample is taken on one path alone", EDGE, "rows.where(sample) if sample else rows", "rows",
        f"{RULES}/test_recount.py::test_of_a_large_commit_of_a_quiet_source_the_same_sample_is_computed_on_both_paths"),
    bug("a batch takes every slot", LAYOUT, "rows.coalesce(tasks)", "rows", f"{BATCHES}::test_a_batch_leaves_a_slot_to_live"),
    bug("every task writes a file into each day", LAYOUT, "    if not files:", "    if True:", f"{RULES}/test_file_layout.py::test_a_day_has_few_files_and_every_row_once_however_many_tasks_build_it"),
    bug("one task writes a large day alone", LAYOUT, "    if files == 1:", "    if True:", f"{RULES}/test_file_layout.py::test_a_day_has_few_files_and_every_row_once_however_many_tasks_build_it"),
    bug("hours are days of their own", LAYOUT, "days[piece.label[:10]]", "days[piece.label]", f"{RULES}/test_file_layout.py::test_days_are_brought_together_only_where_their_files_would_be_small_and_many"),
    bug("counters of a lost stage count", BACKFILL, "count_rows(session, self.history, self.run) if spark.on_cluster else int(self.counted.get[\"rows\"])", "int(self.counted.get[\"rows\"])", f"{BATCHES}::test_rows_read_on_a_cluster_rest_on_no_counter_of_sparks"),
    bug("days overlap", BACKFILL, "condition & (col(column) < _bound(", "condition & (col(column) <= _bound(", f"{BATCHES}::test_days_are_half_open_with_one_batch_for_the_rows_without_a_time_and_read_no_other_days_files"),
    bug("no batch for rows without a time", BACKFILL, "if len(bounded) < len(run):", "if False:", f"{BATCHES}::test_days_are_half_open_with_one_batch_for_the_rows_without_a_time_and_read_no_other_days_files"),
    bug("days do not prune", BACKFILL, "(col(column) < _bound(", '(col(column).cast("string").cast("timestamp") < _bound(', f"{BATCHES}::test_days_are_half_open_with_one_batch_for_the_rows_without_a_time_and_read_no_other_days_files"),
    bug("sums by XOR", SUMS, "from pyspark.sql.functions import sum as total", "from pyspark.sql.functions import bit_xor as total", f"{BATCHES}::test_sums_tell_apart_what_weaker_sums_do_not"),
    bug("NULLs are not hashed", SUMS, "for part in (value.isNull(), value)", "for part in (value,)", f"{BATCHES}::test_sums_see_in_which_column_a_null_stands"),
    bug("states are not cast", "console/planning/sql/aggregates.py", "partial = cast(_filtered(state.partial.copy(), condition), state.type)", "partial = _filtered(state.partial.copy(), condition)", f"{BATCHES}::test_states_keep_their_types_through_every_merge_and_end_in_the_declared_ones"),
    # partial states and their comparison
    bug("ties are chance", "console/planning/sql/states.py", "exp.Min(this=pair) if least else exp.Max(this=pair)", "(exp.ArgMin if least else exp.ArgMax)(this=pair, expression=call.expression.copy())", f"{RULES}/test_states.py"),
    bug("rows without an order take part", "console/planning/sql/states.py", '"CASE WHEN y IS NOT NULL THEN struct(y AS o, x AS v) END"', '"struct(y AS o, x AS v)"', f"{RULES}/test_states.py"),
    bug("moments unite without their distance", "console/planning/sql/states.py", "    a.sx + b.sx + (b.mx - a.mx) * (b.mx - a.mx) * (a.n * (b.n / (a.n + b.n))) AS sx) END)", "    a.sx + b.sx AS sx) END)", f"{RULES}/test_states.py"),
    bug("pairs are counted one by one", "console/planning/sql/states.py", '_template("CASE WHEN y IS NOT NULL THEN x END", x=a, y=b)', "a", f"{RULES}/test_states.py"),
    bug("a set is a list", "console/planning/sql/states.py", "array_sort(array_distinct(flatten(collect_list(x))))", "array_sort(flatten(collect_list(x)))", f"{RULES}/test_states.py"),
    bug("all is any", "console/planning/sql/states.py", 'merge="min" if all_of else "max"', 'merge="max"', f"{RULES}/test_states.py"),
    bug("a FILTER is forgotten", "console/planning/sql/aggregates.py", "    if condition is None:\n", "    if True:\n", f"{RULES}/test_states.py"),
    bug("moments are never apart", "console/agent/recount/moments.py", "    return ~a.eqNullSafe(b) & ~coalesce(", "    return lit(False) & ~coalesce(", f"{RULES}/test_states.py"),
    bug("rounding has no bound", "console/agent/recount/moments.py", "lit(NEAR) * sqrt(sx) * sqrt(sy) + rounding * lit(_MARGIN) * first + second", "lit(NEAR) * sqrt(sx) * sqrt(sy)", f"{RULES}/test_states.py"),
    bug("a condition on rows is one on groups", GROUPS, "    return over if all(over) else None", "    return tuple(one for one in over if one)", GROUPED),
    bug("a filter that went is still there", GROUPS, "    if not live <= wanted:", "    if False:", GROUPED),
    bug("other rows are the same", GROUPS, "    if new.rows().rows != old.rows().rows or rows.reads & widened:", "    if rows.reads & widened:", GROUPED),
    bug("what may give NULL is widened", GROUPS, "*(cast(plain.this.copy(), type) for", '*(exp.TryCast(this=plain.this.copy(), to=exp.DataType.build(type), safe=plain.args.get("safe")) for', GROUPED),
    bug("a minute is made of hours", GROUPS, "    units = _UNITS[: _UNITS.index(unit) + 1]", "    units = _UNITS", GROUPED),
    bug("a week is cut by the day", GROUPS, '    return _cut(part.this, "DAY" if unit == "WEEK" else unit)', '    return _cut(part.this, "DAY")', GROUPED),
    bug("states are taken by their names", GROUPS, "        if same.get(column) == own[column]:", "        if column in same:", GROUPED),
    bug("a wider sum keeps its narrow feed", GROUPS, "by_column[column] = StoredState(spelled[hits[0]], wider=True)", "by_column[column] = StoredState(spelled[hits[0]])", GROUPED),
    bug("any function of a wider column", GROUPS, "        fine = {column for column in touched if _is_plain(parts[column])}", "        fine = touched", GROUPED),
    bug("groups are copied without their filter", "console/planning/reuse/regroup.py", "    query = query.where(*conditions) if conditions else query\n", "", GROUPED),
    bug("a week is cut in two", OF_STATES, "    if not groups.cuts_by_day(wanted.table.time, feed, now, source.table.time):", "    if False:", GROUPED),
    bug("the oldest day is whole", OF_STATES, "    return day_after(whole[0]) if whole else", "    return whole[0] if whole else", GROUPED),
    bug("a changed column gives up its values", OF_STATES, "        *changed,\n", "", GROUPED),
    bug("days go without a word", "console/planning/rules.py", "    if verdict.filters and (verdict.recomputed is None or verdict.recomputed.since):", "    if False:", GROUPED),
    # remedies, and what a table itself gives
    bug("a forward query helps against every loss", "console/planning/routes/history/choice.py", "given = change.diff.rows and", "given =", REMEDIES),
    bug("a stale forward query may always be dropped", "console/planning/rules.py", 'if all(problem.severity != "refuse" for problem in again):', "if True:", REMEDIES),
    bug("a default stands for every state", "console/planning/routes/of_states.py", "if not columns or any(column.default is not None or not _placeable(change, stored, column) for column in columns):", "if not columns:", REMEDIES),
    bug("what may fail and what is tried are one cast", "console/planning/reuse/proof.py", 'isinstance(node, exp.Cast) and not node.args.get("safe") and kind', "isinstance(node, exp.Cast) and kind", NARROWER),
    bug("any filter keeps the newest rows", "console/planning/reuse/narrower.py", "judging = kept_values(bare_before, live, _of_keys(live)) if live.table.key else kept", "judging = kept", "tests/planning/test_merged_rows.py"),
    bug("what equal rows do not give is copied from them", "console/planning/reuse/narrower.py", "(conditions or wanted.table.is_distinct) and not missing", "(conditions or wanted.table.is_distinct)", "tests/planning/test_merged_rows.py"),
    bug("a key is offered that does not help", "console/planning/landing/forward_query.py", "either & refused.keys() - stored", "either & refused.keys()", "tests/planning/test_accepts.py"),
    bug("merged rows are to be as many as are stored", "console/agent/receipts/cross_check.py", "(reported[0] <= counted[0] if merged else reported[0] == counted[0])", "reported[0] == counted[0]", "tests/agent/test_ops.py"),
    bug("a word is offered that is refused as well", "console/planning/routes/history/choice.py", "if choice.older and isinstance(_by_kind(change, plain), Verdict)", "if choice.older", OLDER),
    bug("a choice without effect takes a table its read", "console/planning/routes/__init__.py", "v if v is same.get(n) else", "v if n in same else", "tests/planning/test_history.py"),
    bug("what is hidden behind another row is carried", "console/planning/routes/history/carried.py", "not (table.is_distinct and live.is_distinct)", "not (table.is_distinct or live.is_distinct)", "tests/planning/test_merged_rows.py"),
    bug("joins may differ under a filter", "console/planning/reuse/narrower.py", "if _rows(_unfiltered(before)).rows != _rows(_unfiltered(after)).rows:", "if False:", NARROWER),
    # a landing table's versions, and what older rows show
    bug("a value that no version has is taken", "console/agent/ingest/other_shapes.py", "    _check_kept(rows, again, lines.numbered)\n", "", "tests/agent/test_other_shapes.py"),
    bug("rows in quarantine are no last copy", "console/agent/store/housekeeping.py", "if (by.rollout, relay.table) in left_out and", "if False and", "tests/agent/test_relay.py::test_a_version_with_rows_that_the_next_one_has_in_quarantine_is_a_last_copy"),
    bug("one word lets every last copy go", "console/agent/store/housekeeping.py", "if each.table not in let_go]", "if not let_go]", "tests/agent/test_relay.py::test_the_last_copy_of_values_is_dropped_by_the_operators_word_alone"),
    bug("older rows show what they always would", "console/planning/routes/history/carried.py", "_chosen_value(change, column, older_values) if older_values else _older_value(change, column)", "_older_value(change, column)", OLDER),
    bug("a copy is offered that is refused as well", "console/planning/routes/history/choice.py", "return other is None or isinstance(_by_kind(change, other), Verdict)", "return True", OLDER),
    bug("a word is offered that starves a table below", "console/planning/routes/history/choice.py", " and not _is_too_little(change):", ":", OLDER),
    bug("files are copied where links were promised", "console/agent/execution/linked_history.py", "        os.link(source, target)", "        target.write_bytes(Path(source).read_bytes())", "tests/agent/test_linked_history.py::test_a_million_rows_are_less_than_a_second_of_work_and_no_data_file"),
    bug("every word reads files in one way", "console/planning/routes/history/linked.py", "_TAKEN_OVER[older]", '_TAKEN_OVER[""]', OLDER),
    bug("files show other values than they hold", "console/planning/routes/history/linked_columns.py", "return bool(self._older) and column in self._change.diff.computed", "return False", OLDER),
    # feeds that stand still
    bug("a follower passes over a shorter source", FOLLOW, "while feed.seen != end and", "while feed.seen < end and", STANDING),
    bug("any source is believed", ONCE, "if last is not None and source and (recorded", "if last is None and source and (recorded", STANDING),
    bug("a value is tried for ever", HEALTH, 'elif what in ("value", "day") or', "elif", STANDING),
    bug("no rest between tries", HEALTH, "return time.monotonic() >= self._paused_until", "return not self.stopped", STANDING),
    bug("one that fails for ever is waited for", HEALTH, "self.tries < TRIES", "True", STANDING),
    bug("nothing heals", HEALTH, "if isinstance(why, HEALING):", "if False:", STANDING),
    bug("what hangs below is level", FOLLOW, "if path not in stalled", "if True", STANDING),
    bug("an ending agent is waited for", FOLLOW, "        _fail(requests)  # waiting", "        # waiting", STANDING),
    bug("the new policy is not heeded", "console/agent/rollout/rebind.py", "    follower.redefine(pipeline, live_feeds.values())\n", "", GATE),
    bug("an old feed shuts the gate", "console/agent/rollout/rebind.py", "needed=lambda live_feed: all_feeds or live_feed.key in live_feeds", "needed=lambda live_feed: True", GATE),
    bug("a feed that goes on is taken for level", FOLLOW, "return followed.aligned and all(feed.health.standing for feed in followed.stalled)", "return followed.aligned", STANDING),
    bug("an ending agent fails its rollout", "console/agent/execution/validation.py", "except AgentEnding:", "except ZeroDivisionError:", GATE),
    bug("the first release's retention counts", "console/agent/maintenance/maintainer.py", "_longer(tables[path], state) if path in tables else state", "tables.get(path, state)", f"{RULES}/test_maintainer.py"),
    bug("a spoiled table is compacted again", "console/agent/maintenance/maintainer.py", "self._spoiled[path] = error", "pass", f"{RULES}/test_maintainer.py"),
    bug("a column that differs is none", CHECKS, "    if differing:\n", "    if False:\n", f"{BY_HAND}::test_what_somebody_wrote_to_the_new_version_is_a_difference_named_by_its_day"),
    bug("rows a day are not compared", CHECKS, "unequal = [day for day in days if", "unequal = [day for day in () if", f"{BY_HAND}::test_what_somebody_wrote_to_the_new_version_is_a_difference_named_by_its_day"),
    bug("a killed comparison begins anew", BY_DAY, "        if not recorded:\n", "        if True:\n", f"{COMPARED}::test_a_killed_comparison_compares_no_finished_day_again"),
    bug("rows in quarantine are missing", BY_DAY, "(total or 0) - (others.get(name) or 0)", "(total or 0)", f"{COMPARED}::test_rows_that_history_left_out_are_no_doubt_and_what_else_differs_is_a_difference"),
    bug("values may change places", BY_DAY, "if alike and not _same", "if False and not _same", f"{COMPARED}::test_values_that_have_changed_places_are_a_difference_of_the_rows"),
    bug("what quarantine explains in part is a difference", CHECKS, "if any(day.day not in lacking for day in differing)", "if True", f"{COMPARED}::test_rows_that_history_left_out_are_no_doubt_and_what_else_differs_is_a_difference"),
    bug("a check that failed opens the gate", "console/model/gate.py", '"passed" if check.ok else "failed"', '"passed"', f"{BY_HAND}::test_no_gate_opens_past_a_check_that_found_a_difference"),
    bug("hours of a day begin late", "console/model/slices.py", "start + timedelta(hours=hour)", "start + timedelta(hours=hour + 1)", "tests/faults/test_clocks.py"),
    bug("events are told by their time", "console/model/status.py", "if recorded.seq and recorded.seq <= status.seq and", "if recorded.seq and recorded.at <= status.changed and", "tests/faults/test_clocks.py"),
    bug("the first kept day expires", "console/agent/maintenance/retention.py", "< lit(keep)", "<= lit(keep)", f"{KEEPING}::test_the_first_kept_day_is_kept_from_its_first_moment"),
    bug("a joined table is read as it stands", EDGE, "stored_at(session, path, versions[state.table.name])", 'session.read.format("delta").load(path)', f"{BATCHES}::test_a_joined_table_stays_at_one_version_while_a_commit_is_computed"),
    bug("no history is incomplete", "console/agent/execution/validation.py", "read == fenced.rows", "True", "tests/agent/test_gate.py::test_a_history_is_complete_when_its_batches_read_every_row_of_its_fence_once"),
    bug("days without a name are days", "console/agent/store/days.py", "if({column} IS NULL OR ", "if(true OR ", "tests/days/test_far_days.py"),
    bug("days without a name have no slice", "console/model/slices.py", "    if late:\n", "    if False:\n", "tests/days/test_slices.py"),
    bug("a feed that stands still is well", "console/agent/feeds/ailing.py", "if feed.health.tries or feed.health.standing)", "if False)", f"{STANDING}::test_a_feed_that_fails_is_told_from_its_first_try_and_is_well_once_its_cause_is_gone"),
    bug("no gate waits for rows", "console/agent/rollout/promotion.py", "            with rebind.level(self.follower, self.pipeline, stored, to, self.resolve, all_feeds=moving):\n", "            if True:\n", f"{AT_GATE}::test_while_rows_wait_the_gate_stays_shut_says_how_many_and_gives_up_unchanged"),
    bug("two releases stay previous", "console/agent/store/ledger.py", " WHEN state = 'previous' THEN 'retired'", "", f"{AT_GATE}::test_back_and_back_again_and_on_after_that_until_what_was_before_is_cleaned_up"),
    bug("a compaction before a death flows", COMPACT, '.option("dataChange", "false")', "", f"{RULES}/test_maintenance_killed.py"),
    bug("retention before a death stops feeds", RANGES, 'if commit.is_retention or policy == "ignore":', 'if policy == "ignore":', f"{RULES}/test_maintenance_killed.py::test_killed_around_a_retention_delete_whole_days_are_gone_once_and_no_feed_below_notices"),
    bug("a fence's own commit is live as well", RANGES, "log.commits(source, position + 1, min(end", "log.commits(source, position, min(end", f"{FENCE}::test_of_a_thousand_fences_taken_among_rows_in_flight_each_parts_history_from_what_is_live"),
    bug("who takes a feed over begins anew", ONCE, "    return epoch, position\n\n\ndef close_feed", "    return epoch, start\n\n\ndef close_feed", f"{FENCE}::test_a_landing_row_that_was_delivered_twice_is_two_rows_and_a_step_done_twice_is_one"),
    # the gate's and `verify`'s own arithmetic
    bug("one half of a column's checksum is not compared", BY_DAY, '("n", "lo", "hi")', '("n", "lo")', f"{RULES}/test_checksum.py"),
    bug("the other half of a column's checksum is not compared", BY_DAY, '("n", "lo", "hi")', '("n", "hi")', f"{RULES}/test_checksum.py"),
    bug("one half of a row's checksum is lost", SUMS, 'row["hi"])', "0)", f"{RULES}/test_checksum.py"),
    bug("the other half of a row's checksum is lost", SUMS, '(row["lo"],', "(0,", f"{RULES}/test_checksum.py"),
    bug("sums of doubles have the sketches' tolerance", DOUBLES, "NEAR = 1e-9", "NEAR = 0.08", f"{DOUBLE_SUMS}::test_sums_that_are_not_the_same_shut_the_gate"),
    bug("a sum near infinity is near", DOUBLES, "close = finite & (", "close = (", f"{DOUBLE_SUMS}::test_sums_that_are_not_the_same_shut_the_gate"),
    bug("sums are taken for estimates", VERIFY, "    sum_states = sums.sum_states(plan.pairs, old, new)\n", "    sum_states: tuple[sums.SumState, ...] = ()\n", f"{DOUBLE_SUMS}::test_sums_that_are_not_the_same_shut_the_gate"),
    bug("whatever its source adds up to is right", DOUBLES, "<= self.n * UNIT * self.size", ">= 0", "tests/agent/test_doubles.py"),
    bug("a sum in another order is another sum", DOUBLES, "<= self.n * UNIT * self.size", "== 0", "tests/agent/test_doubles.py"),
    # live rows that went wrong, and a gate that looks
    bug("live rows are all NULL", EDGE, MOVED, NULLS, f"{RECOUNT}::{RIGHT}"),
    bug("live rows come in twice", EDGE, MOVED, MOVED + "\n        computed = computed.union(computed)", f"{RECOUNT}::{RIGHT}"),
    bug("a live partition value is mangled", EDGE, MOVED, MANGLED, f"{RECOUNT}::{RIGHT}"),
    bug("it is not noted which version of a joined table was read", EDGE, 'note["joined"] = joined_paths(self.joins)', "pass", f"{JOINED}::test_rows_are_checked_with_the_version_that_they_joined_whatever_its_table_is_now"),
    bug("a joined version that is gone is taken for readable", "console/agent/recount/joined.py", 'return f"the version of {pin.state.table.name} that was joined was dropped"', 'return ""', f"{JOINED}::test_of_a_version_that_is_dropped_it_says_until_when_rows_cannot_be_checked"),
    # the newest row of each key
    bug("NULL is the newest", "console/planning/sql/newest.py", "order = f\"struct({listed((*newest.order, ROW_HASH))}", "order = f\"struct({', '.join(f'isnull({o})' for o in newest.order) or 1}, {listed((*newest.order, ROW_HASH))}", f"{NEWEST}::test_in_any_order_with_kills_and_batches_redone_each_key_has_the_newest_row"),
    bug("rows of one order are told by chance", "console/model/newest.py", "{hashed(self.tie)} AS {ROW_HASH}", "CAST(rand() * 1000 AS BIGINT) AS {ROW_HASH}", f"{NEWEST}::test_in_any_order_with_kills_and_batches_redone_each_key_has_the_newest_row"),
    bug("rows that are merged when they are read are counted as they are stored", "console/agent/execution/backfill_step.py", " or (source.newest is not None and not step.stored)", "", "tests/life/test_newest.py"),
    bug("a batch keeps any row of a key", "console/agent/feeds/newest.py", 'return query_over(session, newest.merged, {"stored": rows})', "return rows.dropDuplicates([*newest.key])", f"{NEWEST}::test_in_any_order_with_kills_and_batches_redone_each_key_has_the_newest_row"),
    bug("the hash of a live row is not looked at", "console/agent/recount/live.py", "        if state.newest is not None and inexact & {*state.newest.tie}:", "        if state.newest is not None:", f"{NEWEST}::test_a_wrong_hash_of_a_live_row_is_found"),
    bug("no joined version is noted", EDGE, 'note["joins"] = join_pins', "pass", f"{RECOUNT}::{RIGHT}"),
    bug("rows are counted and not compared", RECOUNTED, '"missing > 0 OR extra > 0 OR estimates > 0 OR sums > 0"', '"false"', f"{RECOUNT}::test_a_bug_of_the_live_path_is_found_in_rows_and_in_states"),
    bug("a commit that was made twice is passed over", "console/agent/recount/sample.py", "if after.first <= before.last:", "if False:", f"{RECOUNT}::test_a_live_commit_that_was_made_twice_is_found"),
    # a copy, and a column added in place
    bug("a copy's commit does not say which run it is", READING, "options(txnAppId=app_id, txnVersion=\"1\", userMetadata=note)", "options(userMetadata=note)", f"{KILLED}::test_a_copy_that_was_killed_and_asked_for_again_has_its_rows_once"),
    bug("a copy does not look whether its run is in", READING, "if open_tables.position(path, app_id) is not None:", "if False:", f"{KILLED}::test_a_copy_that_replaces_is_not_done_anew_by_asking_again"),
    bug("two runs of one name at once", READING, "with _exclusive(path):", "with threading.Lock():", f"{KILLED}::test_two_who_ask_for_one_run_at_once_have_one"),
    bug("a copy is not read back", READING, "    raise RegionError(f\"{path}: the run's commit", "    return 0\n    raise RegionError(f\"{path}: the run's commit", f"{KILLED}::test_a_copys_commit_that_is_not_in_the_log_is_no_success"),
    bug("the columns that a table lacks are not added", "console/agent/execution/empty_commits.py", " + _fields(session, columns)", "", f"{KILLED}::test_killed_around_a_column_added_in_place_the_rollout_reaches_its_gate_with_that_column_once"),
    # files into a landing table
    bug("lines are written before all are checked", SENDING, "if self._file.count == progress.rows or _fits_one_request(self._file, progress.rows):", "if True:", f"{LOADS}::test_every_line_lands_once_whoever_sends_dies_edits_and_tries_again"),
    bug("a file that differs goes on", SENDING, "end.rows in chains and chains[end.rows].hex() == end.chain", "end.rows in chains", f"{LOADS}::test_every_line_lands_once_whoever_sends_dies_edits_and_tries_again"),
    bug("lines follow wherever their sender believes", LOAD, "fits = (head.rows, head.chain) == (run.after, run.before)", "fits = True", f"{LOADS}::test_every_line_lands_once_whoever_sends_dies_edits_and_tries_again"),
    bug("a new load asks nobody", LOAD, "new = run.named or not self.alike(run.load, run.first)", "new = True", f"{LOADS}::test_one_file_sent_under_several_names_at_once_lands_once"),
    bug("what landed is forgotten with the log", "console/agent/ingest/loads.py", "        _add(table_loads.loads, table_id, transactions)\n\n", "        pass\n\n", f"{LOADS}::test_every_line_lands_once_whoever_sends_dies_edits_and_tries_again"),
    bug("a refusal names the line after", "console/model/load.py", "return next((at // MARK_BYTES + 1 for", "return next((at // MARK_BYTES + 2 for", f"{LOADS}::test_every_line_lands_once_whoever_sends_dies_edits_and_tries_again"),
    bug("nanoseconds are cut", "console/agent/ingest/parsing.py", "if _FINER.search(value):", "if False:", "tests/agent/test_landing.py"),
    bug("an empty text partitions", "console/agent/ingest/parsing.py", "        if field.name in partitions:", "        if False:", "tests/agent/test_ingest.py::test_what_delta_would_change_is_refused_by_its_line"),
    bug("times of others are cut live", RANGES, "    nanoseconds.refuse(source, (file.path for file in commits.files), nanoseconds.time_columns(layout.schema, foreign))\n", "", f"{RULES}/test_nanosecond_times.py"),
    bug("the old type is always fine", "console/agent/rows/nanoseconds.py", 'leaf.physical_type == "INT96" and', "False and", "tests/agent/test_nanoseconds.py"),
    bug("a row that is not as expected is committed", AS_EXPECTED, "    if not conditions:", "    if True:", f"{EXPECTED}::test_a_bad_day_stops_its_batch_before_the_commit_and_a_killed_agent_says_it_again"),
    bug("today is over", AT_THE_GATE, "if day < today - timedelta(days=1)", "if day < today", BEFORE),
    bug("a day without rows is none", AT_THE_GATE, "number = known[before], known.get(day, 0)", "number = known[before], known.get(day, known[before])", BEFORE),
    bug("an unknown condition holds", "console/planning/expectations/compile.py", "NOT coalesce({render(row)}, false)", "NOT coalesce({render(row)}, true)", COMPILED),
    bug("a failing row is named by the value in question", "console/planning/expectations/compile.py", "if key.lower() not in about", "if key", COMPILED),
    bug("a condition reads other tables", "console/planning/sql/compile.py", "        if isinstance(node, _NOT_OF_A_ROW):", "        if False:", COMPILED),
    bug("live rows of a build are not looked at", EDGE, "if self.guarded else ()", "if False else ()", f"{EXPECTED}::test_a_live_row_that_is_not_as_expected_stops_the_version_that_is_built_and_never_the_live_one"),
    bug("a live version goes on being held to it", FOLLOW, "    current.guarded = feed.guarded\n", "", f"{EXPECTED}::test_a_live_version_takes_every_row_whatever_was_expected_of_it"),
    # recorded calls
    bug("a file that is gone proves nothing", THERE, "folder.gone = frozenset(folder.names.difference(entry.name for entry in entries))", "folder.gone = frozenset()", PROVEN),
    bug("a folder is never listed again", THERE, "if not whole and changed == folder.changed:", "if not whole and folder.changed >= 0:", PROVEN),
    bug("a removal in the tick of a listing is overlooked", THERE, "folder.changed = changed if now - changed > TICK_NANOSECONDS else -1", "folder.changed = changed", PROVEN),
    bug("a removed file is still looked for", THERE, "self._folders[folder].names.discard(name)", "pass", PROVEN),
    bug("feeds move between their alignment and the swap", "console/agent/rollout/promotion.py", "                if not moving:\n                    yield\n                    return\n", "                pass\n            if not moving:\n                yield\n                return\n            if True:\n", "tests/agent/test_pipeline.py::test_no_feed_moves_between_its_alignment_and_the_swap"),
    bug("feeds move between their alignment and a rebinding", "console/agent/rollout/promotion.py", "                    return\n                switched = ", "                    return\n            if True:\n                switched = ", "tests/agent/test_pipeline.py::test_no_feed_moves_between_its_alignment_and_the_last_table_that_is_rebound"),
    bug("nobody reads who opens a gate", "console/agent/rollout/promotion.py", 'Entered("promoting", by=by)', 'Entered("promoting")', "tests/agent/test_pipeline.py::test_while_a_gate_is_opened_everybody_can_read_by_whom"),
    bug("a gate that is closed again was opened by somebody", "console/model/status.py", 'event.by or ("" if back else status.decided_by)', "event.by or status.decided_by", "tests/agent/test_pipeline.py::test_while_a_gate_is_opened_everybody_can_read_by_whom"),
    bug("who promotes second reads no name", "console/runner/together/readiness.py", 'case "promoting":', 'case "cleaned":', "tests/cli/test_change.py::test_who_promotes_while_another_does_learns_who"),
    # long logs
    bug("the end of a log is not looked for again", LOG, "    while (found := stamp(table, version + 1)) is not None:\n        version, newest = version + 1, found\n", "", "tests/agent/test_log.py"),
    bug("another log in the place of a known one is not noticed", LOG, "or stamp(table, known.version) != known.stamp:", "or False:", OPENED),
    bug("a log is never listed again", LOG, "or time.monotonic() - known.listed > LISTED_SECONDS or", "or", "tests/agent/test_log.py"),
    bug("empty commits behind a checkpoint are not looked for", LOG, "            if not found[2]:\n                raise _empty_error(table, version)\n", "", "tests/agent/test_log.py"),
    bug("expired commits are looked for with each commit", "console/agent/store/commits.py", "cleanup_expired_logs=None if is_due else False", "cleanup_expired_logs=None", OPENED),
    bug("expired commits are never looked for", "console/agent/store/commits.py", "cleanup_expired_logs=None if is_due else False", "cleanup_expired_logs=False", OPENED),
    # tables that are kept open
    bug("a kept table is not read on", OPEN_TABLES, "            _read_on(path, kept.table)\n", "            pass\n", OPENED),
    bug("a kept table is read on only where its log is short", OPEN_TABLES, "missing_ok=True) != table.version():", "missing_ok=True) < 1:", OPENED),
    bug("another table in the place of a kept one is not noticed", OPEN_TABLES, "                if kept.is_at(path):", "                if True:", OPENED),
    bug("another table in the place of one in use is kept", OPEN_TABLES, "used.whole >= MOST_PARTS or not used.is_at(path):", "used.whole >= MOST_PARTS:", OPENED),
    bug("a kept table is never opened anew", OPEN_TABLES, "version - used.whole >= MOST_PARTS or ", "", OPENED),
    bug("a compaction removes rows that a rollout counts", "console/agent/maintenance/maintainer.py", "        if state.newest is not None and under_way(controller):", "        if False:", f"{RULES}/test_maintainer.py"),
    bug("two threads have one table", OPEN_TABLES, "kept = self._kept.pop(path, None)", "kept = self._kept.get(path)", OPENED),
    bug("a table is kept although its use failed", OPEN_TABLES, "        del in_use[path]\n    _TABLES.keep(path, taken)", "        del in_use[path]\n        _TABLES.keep(path, taken)", OPENED),
    bug("releases are read once", "console/agent/store/ledger.py", "if log_files.stamp(path, version) == stamp and log_files.stamp(path, version + 1) is None:", "if log_files.stamp(path, version) == stamp:", "tests/agent/test_ledger.py"),
    bug("another release table of the same length is not noticed", "console/agent/store/ledger.py", "if log_files.stamp(path, version) == stamp and log_files.stamp(path, version + 1) is None:", "if log_files.stamp(path, version + 1) is None:", "tests/agent/test_ledger.py"),
    bug("a rollback looks at no file", "console/agent/rollout/promotion.py", "        self._check_files(previous.release, self.releases.in_state(\"live\"))\n", "", PROVEN),
    bug("live's own loss shuts the way back", "console/agent/rollout/promotion.py", "if state.version.path not in shared}", "}", PROVEN),
    bug("a release that is no longer fed is proven", "console/agent/way_back/prover.py", "if releases != known.releases:", "if False:", PROVEN),
    bug("a region at rest asks its endpoints", ASKED, "(last.read == read and last.finding is None)", "(last.read == read and last.finding is not None)", ASKING),
    bug("an endpoint that failed is not asked again", ASKED, "(last.read == read and last.finding is None)", "last.read == read", ASKING),
    bug("a slow endpoint is asked each minute", ASKED, "SHARE * (ended - began)", "0.0", ASKING),
    bug("values that nobody recorded count", ASKED, "    if not given:", "    if False:", ASKING),
    bug("a stopped feed is proven", PROOF, "    if feed.stopped:", "    if False:", JUDGED_BACK),
    bug("rows that wait are proven", PROOF, "    if feed.aligned or not feed.behind", "    if feed.aligned or feed.behind", JUDGED_BACK),
    bug("a doubt hides a failure", PROOF, 'key=lambda finding: finding.state != "failed"', 'key=lambda finding: finding.state == "failed"', JUDGED_BACK),
    bug("an old proof holds for ever", PROOF, 'if self.state == "passed" and now - self.at > STALE_SECONDS:', "if False:", JUDGED_BACK),
    bug("a row more on one side is not seen", DIFFERENCE, "return [*left, *ours[i:]], [*right, *theirs[j:]]", "return left, right", ANSWERED),
    bug("rows are compared as sets", DIFFERENCE, "return [*ours[both:]], [*theirs[both:]]", "return [*ours[both:]] if not theirs else [], [*theirs[both:]] if not ours else []", ANSWERED),
    bug("the order of an answer is not compared", DIFFERENCE, "reordered=not (only_live or only_new) and not near.ordered", "reordered=False and not near.ordered", ANSWERED),
    bug("any limited answer may differ", DIFFERENCE, "and len(only_live) == len(only_new)\n", "", ANSWERED),
    bug("an old `differs` hides a new fault", JUDGED, "if call.changed and call.differs:", "if call.differs:", ANSWERED),
    bug("an expected difference needs no reason", JUDGED, "    if call.changed:\n        return None,", "    if call.changed:\n        return True,", ANSWERED),
    bug("a call whose cost on live is not known is as cheap", "console/agent/calls/replay.py", "    if cost is None or (before is not None and was is None):", "    if cost is None:", f"{ANSWERED}::test_a_run_of_which_spark_has_forgotten_the_stages_is_no_fault_of_an_answer[forgotten0]"),
    bug("a budget does not decide", JUDGED, "verdict = False if over else slow", "verdict = slow", ANSWERED),
    bug("one slow run is slow", JUDGED, "or min(after) <= max(before):", "or max(after) <= max(before):", ANSWERED),
    bug("an endpoint's own edit is not called", CALLING, "why.get(endpoint.name) or _reached(", "_reached(", f"{CALLED}::test_an_edited_endpoint_is_called_although_no_table_is_built"),
    bug("a rebuilt table below an endpoint is not called", CALLING, "if state is not None and before is not None and _shown(state) != _shown(before):", "if False:", f"{CALLED}::test_a_rebuilt_table_below_an_endpoint_leaves_its_meaning_alone"),
    bug("a recorded call is a change", "console/model/pipeline.py", "            calls=(),\n", "", f"{CALLED}::test_a_recorded_call_is_no_change_and_nothing_is_called_where_nothing_changes"),
    bug("a recorded call loses what is behind it", "console/project/pipeline/calls.py", "made = f\"{head}{indent}- {_entry(call)}\\n\"", "made = f\"calls:\\n  - {_entry(call)}\\n\"", "tests/project/test_calls.py"),
    # rivals
    bug("a region's lock is shared", "console/agent/lock.py", "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH | fcntl.LOCK_NB", f"{RIVALS}/test_holding.py"),
    bug("a swap commits over another's", "console/agent/store/ledger.py", SWAP, "        try:\n            DeltaTable(str(self.path)).update(", f"{RIVALS}/test_rounds.py"),
    bug("who was deposed may go on", "console/agent/rollout/ownership.py", "if console and status.console and console != status.console and in_progress(status):", "if False:", f"{RIVALS}/test_steering.py::test_a_console_whose_rollout_was_taken_over_is_refused_and_told_by_whom"),
    bug("the first is not told", "console/runner/region_run.py", 'return under_way(status) and status.console not in ("", self._actions.who.console)', "return False", f"{RIVALS}/test_attach.py"),
    bug("anybody may promote again", "console/agent/rollout/promotion.py", "if isinstance(decided, Promoted) and (status.rollout != rollout or status.state == \"live\"):", "if False:", f"{RIVALS}/test_steering.py::test_of_two_who_promote_or_roll_back_at_once_exactly_one_does_and_the_other_learns_who"),
    # reports of a run
    bug("a report's text is markup", "console/markup.py", "parts.append(child if node.name in _RAW and not xml else texts[child])", "parts.append(child)", "tests/hostile/test_reports.py::test_s06_a_run_s_reports_hold_others_texts_as_text"),
    bug("an attribute's text ends it", "console/markup.py", """'"': "&quot;", """, "", "tests/reports/test_markup.py"),
    bug("the page's policy is of another style", f"{REPORTS}/html.py", "sha256(STYLE.encode())", "sha256(STYLE.strip().encode())", "tests/reports/test_page.py"),
    bug("a share is rounded up", "console/cli/format.py", "min(99, int(100 * part / whole))", "round(100 * part / whole)", "tests/reports/test_course.py"),
    bug("a check without a result passes", f"{REPORTS}/junit.py", "if check.ok is True:", "if check.ok is not False:", "tests/reports/test_junit.py"),
    bug("a failed case names no day", f"{REPORTS}/words.py", "differ = unequal(check.days)\n", "differ = unequal(())\n", "tests/reports/test_junit.py"),
    bug("an earlier rollout is taken for the run's own", f"{REPORTS}/run_report.py", "return carried or status.plan == plan.digest()", "return True", f"{REPORTING}::test_regions_that_had_nothing_to_do_pass_without_the_checks_of_earlier_rollouts"),
    bug("an interrupted run leaves its first report", f"{REPORTS}/reporter.py", "        _broken_off(reporter, error)\n        try:\n            _finish(reporter, output)", "        _broken_off(reporter, error)\n        try:\n            pass", f"{REPORTING}::test_files_that_are_wrong_leave_a_report_of_what_is_wrong"),
    bug("a report is written in place", f"{REPORTS}/files.py", 'with open(beside, "x"', 'with open(path, "w"', "tests/reports/test_files.py"),
    bug("a forge's section can be ended from outside", f"{REPORTS}/forge.py", '"\\n".join([begin, *map(safe_text, lines), ', '"\\n".join([begin, *lines, ', "tests/reports/test_markdown.py"),
)  # fmt: skip
