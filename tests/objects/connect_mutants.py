"""Bugs of a region whose Spark is behind Spark Connect, each with the test that must fail on it. Run by `tests/faults/mutants`."""

from tests.faults.planted import Mutant

HERE = "tests/agent/test_connect.py"
SERVED = "tests/objects/test_region_on_connect.py"
RULES = "tests/objects/test_rules_on_connect.py"
FILES = "tests/objects/test_files_on_connect.py"
JOBS = "tests/objects/test_jobs_on_connect.py"
BUILDS = "tests/objects/test_builds_on_connect.py"
BATCH = f"{BUILDS}::test_a_batch_is_one_commit_of_the_rows_at_its_fence_and_what_it_has_read_and_warned_of_is_counted"
CALL = f"{BUILDS}::test_a_recorded_call_is_answered_by_both_releases_and_its_cost_is_unknown"
HANDLE = "console/agent/connect/handle.py"
OVER = "console/agent/query_over.py"
ATTEMPT = "console/agent/store/attempt_table.py"
SHARED = ("if isinstance(session, SparkSession):  # that", "if session:  # that")

MUTANTS = (
    Mutant("a region behind Spark Connect starts a JVM of its own", f"{SERVED}::test_the_live_release_is_read_without_a_jvm_of_the_agents_own",
           "console/agent/region_agent.py", "ConnectHandle(settings, warehouse) if settings.remote", "ConnectHandle(settings, warehouse) if settings.remote == '*'"),
    Mutant("a server is left to bind parameters", f"{SERVED}::test_the_live_release_is_read_without_a_jvm_of_the_agents_own", HANDLE,
           "session.sql(statement(sql, args))", "session.sql(sql, args=dict(args))"),
    Mutant("a server that may be elsewhere gets a disk", HERE, "console/agent/connect/sessions.py",
           "if not isinstance(warehouse, ObjectPath):", "if not warehouse:"),
    Mutant("a token stands in a file", "tests/model/test_connect_address.py", "console/model/connect_address.py",
           'named["name"] in _OURS or secret(named["name"])', 'secret(named["name"])'),
    Mutant("two versions have one name, and a comparison finds them equal", f"{RULES}::test_two_versions_that_differ_in_a_row_are_found_to_differ", OVER, *SHARED),
    Mutant("a joined table's rows are those of whatever has its name later", f"{RULES}::test_a_source_and_a_joined_table_keep_their_own_rows", OVER, *SHARED),
    Mutant("of two tables of an open release both are the last", f"{RULES}::test_two_tables_of_an_open_release_keep_their_own_rows", OVER, *SHARED),
    Mutant("braces in a query are fields of its format", f"{RULES}::test_a_query_may_give_its_own_names_and_has_any_text", OVER,
           'text.replace("{", "{{").replace("}", "}}")', "text"),
    Mutant("the causes that a server tells are passed over", f"{RULES}::test_a_job_that_writes_tells_the_cause_of_its_failure", "console/agent/failure.py",
           "_java_chain(origin) if origin is not None else _told_causes(error)", "_java_chain(origin)"),
    Mutant("an attempt's log stays behind", f"{FILES}::test_a_file_is_in_its_final_place_with_statistics_as_its_table_wants_them_and_the_attempts_log_is_gone",
           ATTEMPT, "    _forget(attempt)\n", ""),
    Mutant("an attempt has other statistics than its table", f"{FILES}::test_a_file_is_in_its_final_place_with_statistics_as_its_table_wants_them_and_the_attempts_log_is_gone",
           ATTEMPT, "**created.OFF, **settings", "**created.OFF"),
    Mutant("an attempt has what the server switches on", f"{FILES}::test_what_a_server_switches_on_for_new_tables_is_in_no_file",
           ATTEMPT, "**created.OFF, **settings", "**settings"),
    Mutant("a blank in a partition is committed as a value", "tests/agent/test_file_action.py",
           "console/agent/store/file_action.py", "(name, value or None)", "(name, value)"),
    Mutant("times are written without statistics through Spark Connect", f"{FILES}::test_a_file_is_in_its_final_place_with_statistics_as_its_table_wants_them_and_the_attempts_log_is_gone",
           "console/agent/connect/sessions.py", "{**WRITTEN, **conf, **FIXED_IN_SESSION}", "{**conf, **FIXED_IN_SESSION}"),
    Mutant("rows in other columns are written through Spark Connect", f"{FILES}::test_rows_in_other_columns_are_refused_before_anything_is_written",
           "console/agent/store/spark_files.py", "    if not schema:\n", "    if not schema and isinstance(session, SparkSession):\n"),
    Mutant("a name within an attempt is not that within its table", f"{FILES}::test_a_copy_replaces_rows_and_columns_in_one_commit_and_a_repeated_run_is_refused",
           ATTEMPT, 'added_file(table, action, f"{name}/")', "added_file(table, action)"),
    Mutant("an excerpt of a log in a bucket is on the agent's disk", f"{FILES}::test_rows_that_only_delta_can_read_flow_by_an_excerpt_in_the_bucket",
           "console/agent/rows/log_excerpt.py", "scratch = log_files.root_of(version) / FOLDER", "scratch = Path('/tmp') / FOLDER"),
    Mutant("an excerpt of a log stays in the bucket", f"{FILES}::test_rows_that_only_delta_can_read_flow_by_an_excerpt_in_the_bucket",
           "console/agent/rows/log_excerpt.py", "        _used.add(scratch)\n", "        pass\n"),
    Mutant("a path in a bucket stands in an excerpt as it is", f"{FILES}::test_rows_that_only_delta_can_read_flow_by_an_excerpt_in_the_bucket",
           "console/agent/rows/log_excerpt.py", 'quote(path, safe=":/")', "path"),
    Mutant("what is cancelled through Spark Connect goes on", f"{JOBS}::test_a_job_is_told_and_cancelled_and_by_no_other_session",
           "console/agent/connect/jobs.py", "    session.addTag(tag)\n", ""),
    Mutant("a job through Spark Connect is not told", f"{JOBS}::test_a_job_is_told_and_cancelled_and_by_no_other_session",
           "console/agent/connect/jobs.py", "self._running = () if done else", "self._running = () if not done else"),
    Mutant("an endpoint on the way back is asked as in a JVM", f"{JOBS}::test_an_endpoint_is_tried_on_the_way_back_and_one_that_does_not_answer_is_ended",
           "console/agent/way_back/endpoints.py", "spark.ask(session, endpoint.sql, arguments(args))", "session.sql(endpoint.sql, args=arguments(args))"),
    Mutant("a batch counts its rows as a JVM tells them", BATCH, HANDLE, "self.on_cluster = True", "self.on_cluster = False"),
    Mutant("a batch counts what it has written", BATCH, "console/agent/feeds/backfill.py",
           "return BatchResult(rows_in, written,", "return BatchResult(written.rows, written,"),
    Mutant("what a call reads is asked of a JVM", CALL, "console/agent/calls/cost.py", "    if not isinstance(session, SparkSession):", "    if not session:"),
    Mutant("a recorded call is asked as in a JVM", CALL, "console/agent/calls/replay.py",
           "context.spark.ask(session, side.query.sql, args)", "session.sql(side.query.sql, args=args)"),
    Mutant("a build takes every slot of a server", f"{JOBS}::test_a_build_takes_all_of_the_servers_slots_but_one", "console/agent/connect/size.py",
           "return size.session_settings(slots, conf) | size.build_settings(slots)", "return size.session_settings(slots + 1, conf)"),
    Mutant("a server is taken for larger than it is", f"{JOBS}::test_a_build_takes_all_of_the_servers_slots_but_one", "console/agent/connect/size.py",
           ".distinct().count())", ".count())"),
    Mutant("states that are merged are compared with themselves", f"{RULES}::test_states_that_do_not_unite_to_the_same_value_are_found",
           "console/agent/maintenance/merged_values.py", 'return query_over(session, merging.sql, {"stored": rows})',
           'rows.createOrReplaceTempView("stored"); return session.sql(merging.sql)'),
    Mutant("a server that does not answer once ends a rollout", f"{HERE}::test_a_server_that_does_not_answer_is_tried_again_and_is_no_reason_to_give_a_rollout_up",
           "console/agent/errors.py", "SecondSparkLost, ServerUnreachable)", "SecondSparkLost)"),
    Mutant("compaction through Connect commits what it has not read", f"{SERVED}::test_copies_sinks_and_compaction_run",
           "console/agent/maintenance/compaction.py", "rows.where(where) if where else rows, state)", "rows.where(where).limit(1) if where else rows, state)"),
    Mutant("a sink's output is written on the agent's disk", "tests/objects/test_exports_in_bucket.py", "console/agent/store/exports.py",
           "folder = export.stage / uuid.uuid4().hex", "folder = Path('/tmp') / uuid.uuid4().hex"),
)  # fmt: skip
