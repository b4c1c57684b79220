"""Bugs planted in a copy of the package, each with the test that must fail on it.

    python -m tests.faults.mutants [NAME …]     runs them one after the other; results into tests/faults/mutants.jsonl

Those of a feed's rules and of rivals stand beside their tests, in `rules/mutants.py`, those of drawn landing tables in `tests/worlds/mutants.py`,
those of regions and readers elsewhere in `tests/objects/mutants.py`.
"""

import json
import sys
from pathlib import Path

from tests.faults.planted import Mutant, tried
from tests.faults.rules import mutants as rules
from tests.faults.rules import watch_mutants
from tests.objects import connect_mutants
from tests.objects import mutants as elsewhere
from tests.worlds import mutants as worlds

RESULTS = Path(__file__).resolve().parent / "mutants.jsonl"
POINT = "tests/faults/test_points.py::test_an_agent_killed_here_is_resumed_to_the_same_end"
BESIDE = "tests/faults/test_points.py::test_killed_beside_a_writer_no_row_is_lost_or_doubled"
DAMAGE = "tests/faults/test_damage.py::test_a_damaged_commit_is_named_and_never_passed_over"
DOCTOR = "tests/faults/test_damage.py::test_doctor_names_the_damaged_commit"
MIDWAY = "tests/faults/test_outside.py::test_a_rollout_under_this_ends_whole"
LAYOUT = "tests/agent/test_log.py::test_a_layout_is_read_again_only_where_a_commit_changed_it_or_another_table_is_there"
STATISTICS = (
    "tests/agent/test_log.py::test_statistics_in_memory_are_those_of_the_log_after_whatever_others_have_done_to_it"
)
AROUND = "tests/faults/test_cleanup_killed.py::test_killed_while"
SLEEP = "tests/agent/test_sleeper.py"
PRICES = "tests/planning/test_halves.py"
ONCE, BEFORE = "tests/agent/test_measured_before.py", "console/agent/receipts/measured_before.py"
SECOND = "tests/agent/test_second_spark.py"
SECOND_WRITES = f"{SECOND}::test_it_writes_and_the_agent_commits_and_what_fails_there_is_judged_here"
SECOND_LOST = "tests/faults/test_second_spark.py"


def only(*points: str) -> dict[str, str]:
    return {"FAULTS_ONLY": ",".join(points)}


UNDER_FIRE = (
    Mutant("an empty commit is passed over", f"{DAMAGE}[_console/web/rollouts-empty]", "console/agent/store/log.py",
           "        raise _empty_error(table, lost[0])", "        pass"),
    Mutant("an empty record of a promotion is passed over", f"{DAMAGE}[_console/web/releases-empty]",
           "console/agent/store/ledger.py", "    log.check_intact(str(path))\n", ""),
    Mutant("a cut commit is an error of the library's", f"{DAMAGE}[_console/web/rollouts-cut]",
           "console/agent/store/ledger.py", "except DeltaError as error", "except ZeroDivisionError as error"),
    Mutant("doctor looks away", f"{DOCTOR}[landing-cut]", "console/drivers/prerequisites.py",
           "            return file\n    return None", "            return None\n    return None"),
    Mutant("a lost answer to a rollback is asked for again",
           "tests/runner/test_resume.py::test_the_answer_to_a_rollback_may_be_lost_and_nobody_asks_for_the_way_back_twice",
           "console/runner/actions.py", ".live != previous:", ".live != live or True:"),
    Mutant("the second of two rollbacks undoes the first",
           "tests/runner/test_resume.py::test_what_somebody_else_rolled_back_stays_so_unless_the_release_is_named",
           "console/runner/actions.py", "or (not to and view.went_back):", "or False:"),
    Mutant("no agent without its log", "tests/faults/test_log_folder.py", "console/drivers/local.py",
           "    except OSError:\n        return Path(os.devnull)", "    except ZeroDivisionError:\n        return Path(os.devnull)"),
    Mutant("a crash point does not kill", f"{POINT}[after-propose]", "console/crash.py",
           "    os.kill(os.getpid(), signal.SIGKILL)", "    return", only("after-propose", "after-Accepted")),
    Mutant("a day is skipped", f"{POINT}[after-propose]", env={"CONSOLE_PLANT": "skip-day", **only("after-propose")}),
    Mutant("a batch is written twice", f"{POINT}[after-propose]",
           env={"CONSOLE_PLANT": "double-batch", **only("after-propose")}),
    Mutant("promoted too early", f"{POINT}[after-propose]",
           env={"CONSOLE_PLANT": "early-promote", **only("after-propose")}),
    Mutant("a promotion without its record is taken for none",
           "tests/agent/test_pipeline.py::test_a_promotion_whose_commit_was_made_is_recorded_once_by_the_next_agent",
           "console/agent/rollout/recover.py", "if live is None or live.row.id != status.release:", "if True:"),
    Mutant("a batch committed before its death is carried again", f"{POINT}[after-commit-history]",
           "console/agent/execution/backfill_step.py", "writer = commit.open_feed(session, app_id, target_path, 0)",
           "writer = commit.open_feed(session, app_id, target_path, 0); writer.position = 0; writer.epoch += 1",
           only("after-commit-history")),
    Mutant("a batch of rows is stored as often as it is sent", f"{BESIDE}[after-commit-landing]",
           "console/agent/ingest/landing.py", "here = opened.transaction_version(app_id) is not None", "here = False",
           only("after-commit-landing")),
    Mutant("what a full disk broke off stays broken off",
           "tests/agent/test_pipeline.py::test_what_was_broken_off_is_gone_on_with_though_nobody_asks", "console/agent/pipeline.py",
           "        if idle and not self._spark.lost", "        if False and not self._spark.lost"),
    Mutant("a signal counts as a failure", f"{MIDWAY}[SIGTERM]", "console/cli/interrupt.py",
           "        return 128 + self.number", "        return 1", only("none")),
    Mutant("what cannot be written down is done all the same",
           "tests/runner/test_journal.py::test_with_a_full_disk_nothing_is_handed_over_and_afterwards_it_goes_on",
           "console/runner/journal.py",
           '        written = self._write("intent", region, pipeline, 0, {"verb": verb, **body})\n',
           "        try:\n"
           '            written = self._write("intent", region, pipeline, 0, {"verb": verb, **body})\n'
           "        except ConsoleError:\n"
           "            written = 0\n", only("none")),
    Mutant("what an agent was dropping when it died stays", f"{AROUND}_tidying_up_only_what_nobody_names_is_gone[after-drop]",
           "console/agent/store/housekeeping.py", '    dropped = list(target.parent.glob(f".dropped-{target.name}-*"))',
           "    dropped: list[Path] = []", only("after-drop")),
    Mutant("a plan is written in place", f"{AROUND}_a_plan_is_saved_there_is_the_whole_file_or_none[console-before-plan-file-False]",
           "console/project/saved.py", 'handle, written = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)',
           "written = str(path); handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)", only("none")),
    Mutant("the history of a short log is left to the follower",
           "tests/agent/test_receipts.py::test_each_day_has_one_receipt_and_it_says_what_an_independent_count_says",
           "console/agent/execution/executor.py", "CAUGHT_UP_COMMITS and not live_feed.pending(history)[0]:", "CAUGHT_UP_COMMITS:"),
    Mutant("a batch that killed the JVM is carried as large again", "tests/faults/test_memory.py",
           "console/agent/execution/backfill_step.py", "    return rows\n\n\ndef open_history", "    return None\n\n\ndef open_history"),
    Mutant("a cold batch makes the next one smaller", "tests/agent/test_backfill_step.py", "console/agent/execution/backfill_step.py",
           "seconds / COLD if cold else seconds", "seconds"),
    Mutant("a Spark that was lost is still warm", "tests/agent/test_backfill_step.py", "console/agent/execution/backfill_step.py",
           "            case DriverLost():\n                cold = True\n", ""),
    Mutant("a day of many bytes is one batch", "tests/agent/test_backfill_step.py", "console/model/slices.py",
           " or (bytes_limit is not None and size > bytes_limit)", ""),
    Mutant("a history that was fenced before is cut anew", "tests/agent/test_backfill_step.py", "console/agent/execution/backfill_step.py",
           "if fenced is None or len(slices) == fenced:", "if True:"),
    Mutant("a day that takes many times the target is one batch", "tests/agent/test_backfill_step.py", "console/model/plan.py",
           "lowest(self.rows_limit, self.day_rows)", "self.rows_limit"),
    Mutant("the price of a heavy day forgets its time", "tests/planning/test_same.py", "console/planning/estimate.py",
           "lowest(limits.rows, limits.day_rows(live.rows_per_second))", "limits.rows"),
    Mutant("the rate of a few rows cuts every day", "tests/model/test_limits.py", "console/model/region.py",
           "max(int(DAY_TARGETS * self.target_seconds * rows_per_second), LEAST_DAY_ROWS)", "int(DAY_TARGETS * self.target_seconds * rows_per_second)"),
    Mutant("a preview's days are cut anew by its rollout", "tests/model/test_sandbox_plan.py", "console/model/sandbox_plan.py",
           ", day_rows=sandbox.day_rows)", ")"),
    Mutant("a preview of other slices is gone on with", "tests/model/test_sandbox_plan.py", "console/model/sandbox_plan.py",
           "    if (sandbox.rows_limit, sandbox.bytes_limit) != (plan.rows_limit, plan.bytes_limit):", "    if False:"),
    Mutant("the price of a heavy day forgets its bytes", PRICES, "console/planning/estimate.py", "hours, bytes_limit=limits.bytes)", "hours)"),
    Mutant("a screen is drawn while the console is shut down", "tests/screens/test_shutdown.py", "console/tui/app.py",
           "        if not self.is_running:\n            return", "        if False:\n            return"),
    Mutant("rows that came behind a measurement are in no receipt", ONCE, BEFORE,
           "tuple(file for commit in commits for file in commit.added))", "())"),
    Mutant("a table is as it was measured whatever was deleted since", ONCE, BEFORE, 'commit.kind != "rewrite" and', ""),
    Mutant("merged states are as they were measured", ONCE, BEFORE, ' and commit.note.get("kind") != log.MERGE', ""),
    Mutant("sums of other columns are taken for those of the step", ONCE, BEFORE, ", target.columns) == (", ", place.columns) == ("),
    Mutant("rows of one feed are taken for all", ONCE, BEFORE, "    return whole and one and", "    return one and"),
    Mutant("what was measured is read again", ONCE, "console/agent/receipts/step_receipts.py",
           "        before = measured_before(receipts_of(stored), place, path)", "        before = None"),
    Mutant("rows that came since a receipt are left out", "tests/faults/rules/test_measured_once.py", "console/agent/receipts/step_receipts.py",
           "later = _sums_of_files(session, path, place, before.files)", "later: dict[str, Sum] = {}"),
    Mutant("a JVM does not hold the region", "tests/faults/test_outside.py::test_the_jvm_holds_the_region_as_its_agent_does",
           "console/agent/spark_process.py", 'popen_kwargs={"pass_fds": (lock_fd,)} if lock_fd >= 0 else {}', "popen_kwargs={}",
           only("none")),
    Mutant("a second Spark does not hold the region", f"{SECOND}::test_it_holds_the_regions_lock_beside_the_agent_and_ends_with_it",
           "console/agent/second_spark/worker.py", "    leave(0)  # in the middle of a batch, too", "    pass"),
    Mutant("the JVM of a second Spark does not hold the region", SECOND_LOST, "console/agent/second_spark/worker.py",
           "SparkHandle(start.settings, start.lock_fd, warehouse)", "SparkHandle(start.settings, -1, warehouse)"),
    Mutant("a lost second Spark is for good", f"{SECOND}::test_a_batch_is_cancelled_by_the_end_of_its_process", "console/agent/errors.py",
           "LeaseLost, SecondSparkLost, ServerUnreachable)", "LeaseLost, ServerUnreachable)"),
    Mutant("a second Spark commits by itself", SECOND_WRITES, "console/agent/second_spark/worker.py",
           "            files = spark_files.write(session, batch.rows, order.target_path)\n",
           "            files = spark_files.write(session, batch.rows, order.target_path)\n"
           '            batch.rows.write.format("delta").mode("append").save(order.target_path)\n'),
    Mutant("what a second Spark judged is judged again", f"{SECOND}::test_a_failure_keeps_the_kind_that_it_was_given_where_it_happened", "console/agent/failure.py",
           "        return error.what\n", '        return "final"\n'),
    Mutant("a second Spark goes on after its build", f"{SECOND}::test_a_build_has_a_second_spark_of_its_own_if_it_was_planned_for_one",
           "console/agent/execution/batch.py", "    finally:\n        second.end()\n", "    finally:\n        pass\n"),
    Mutant("every build is large", "tests/planning/test_second_spark.py", "console/model/region.py",
           "return rows > self.rows or bytes > self.bytes", "return True"),
    Mutant("what failed is as old as the clock says", "tests/agent/test_watchdog.py", "console/agent/rollout/watchdog.py",
           "        return self._age + elapsed - self._seen > self.keep_failed_hours * HOUR and elapsed - self._started >= HOUR",
           "        return now - status.changed > self.keep_failed_hours * HOUR"),
    Mutant("a discard does not look again", "tests/agent/test_watchdog.py", "console/agent/rollout/watchdog.py",
           "            if status.rollout != seen.rollout:\n                return\n", ""),
    Mutant("a way back after a rollout that was cancelled is not recorded", "tests/agent/test_recover.py",
           "console/agent/rollout/recover.py", "    decided = own or _last_decision(rollouts)\n", "    decided = own\n"),
    Mutant("nothing may become live", "tests/agent/test_ledger.py", "console/agent/store/ledger.py",
           '        if to not in {each.row.id for each in stored if each.row.state != "live"}:', "        if False:"),
    Mutant("an event whose commit stands is numbered again", "tests/agent/test_full_disk.py",
           "console/agent/store/ledger.py", "        if not _is_stored(path, rows[0]):", "        if True:"),
    Mutant("a decision that found no room is forgotten", "tests/agent/test_full_disk.py",
           "console/agent/rollout/recorder.py", "            if self._unmirrored:  # of", "            if False:  # of"),
    Mutant("a commit is remembered by its number alone",
           "tests/agent/test_log.py::test_a_table_written_anew_in_the_place_of_one_that_was_dropped_is_read_anew",
           "console/agent/store/log.py", "    return _commit(table, version, found)", "    return _commit(table, version, (0, 0, 0))"),
    Mutant("a layout is remembered although another table is there", LAYOUT, "console/agent/store/shape.py",
           "    if version < known or log_files.stamp(table, known) != stamp:", "    if version < known:"),
    Mutant("a layout is remembered although a commit changed it", LAYOUT, "console/agent/store/shape.py",
           "    return None if changed else layout", "    return layout"),
    Mutant("the layout of a later version is given for an earlier one", LAYOUT, "console/agent/store/shape.py",
           "    if version < known or log", "    if log"),
    Mutant("a check that still asks for a session kills a Spark that is being stopped",
           "tests/agent/test_unresponsive_spark.py", "console/agent/spark_session.py",
           "(self.ending or self._stopping)", "self.ending"),
    Mutant("a JVM that is ended at rest counts as lost", SLEEP, "console/agent/spark_session.py",
           "not (self.ending or self._sleeping) and", "not self.ending and"),
    Mutant("a second JVM is started beside one that does not die", SLEEP, "console/agent/spark_session.py",
           "            if self._left is not None and self._left.poll() is None:", "            if False:"),
    Mutant("Spark is ended under a request", SLEEP, "console/agent/spark_session.py", "used = self._uses or time", "used = time"),
    Mutant("a session is given while Spark is ended", SLEEP, "console/agent/spark_session.py",
           "            with self._starting:  # a JVM that is being", "            with suppress():  # a JVM that is being"),
    Mutant("an agent at rest keeps what Spark left in it", SLEEP, "console/agent/sleeper.py",
           "return self.spark.rests and not ending", "return False and not ending"),
    Mutant("a process is replaced that a rollout needs", SLEEP, "console/agent/sleeper.py",
           "not ending and not self._is_needed()", "not ending"),
    Mutant("a process is replaced beside a JVM that does not die", SLEEP, "console/agent/spark_session.py",
           "self._left is not None and self._left.poll() is not None\n", "self._left is not None\n"),
    Mutant("a rollout at its gate keeps no Spark", SLEEP, "console/agent/sleeper.py", "    if in_progress(status) or", "    if"),
    Mutant("a region at rest starts Spark", SLEEP, "console/agent/feeds/live_feed.py",
           "writer = self.open(session)\n        commits =", "writer = self.open(session)\n        opened(session)\n        commits ="),
    Mutant("a rest forgets the tick that has just ended", "tests/agent/test_pacing.py", "console/agent/feeds/pacing.py",
           "lag - self._ticks[-1] - max(self._ticks)", "lag - max(self._ticks)"),
    Mutant("a log that cannot be written ends a feed", "tests/agent/test_failure_isolation.py", "console/agent/agent_log.py",
           "    with suppress(OSError, ValueError):  # its disk", "    with suppress(KeyError):  # its disk"),
    Mutant("a watch that cannot begin is silent", "tests/agent/test_failure_isolation.py", "console/agent/server.py",
           "            self._writer.close()\n            self._service.agent.report(", "            self._service.agent.report("),
    Mutant("VACUUM does not ask who is down", "tests/agent/test_failure_isolation.py", "console/agent/maintenance/maintainer.py",
           "        if failed := self._unloaded(controller):", "        if (failed := self._unloaded(controller)) and not failed:"),
    Mutant("a position over quiet commits is kept to oneself", "tests/agent/test_quiet_feed.py",
           "console/agent/feeds/follower.py", "0 if self._heartbeat_due(feed) else HEARTBEAT_COMMITS", "HEARTBEAT_COMMITS"),
    Mutant("a Spark that does not stop is waited for", "tests/agent/test_unresponsive_spark.py", "console/agent/execution/executor.py",
           "            self.context.spark.kill(why)\n", ""),
    Mutant("a survey may say as much as it likes",
           "tests/drivers/test_local.py::test_a_survey_that_does_not_answer_as_it_should_is_ended_and_told", "console/process.py",
           "            if len(buffer) > most:", "            if False:"),
    Mutant("who lives is told by a number alone",
           "tests/runner/test_races.py::test_a_console_that_asked_and_was_not_answered_lives_if_its_pid_is_still_the_same_process",
           "console/runner/actions.py", "birth(pid) == born", "bool(birth(pid))"),
    Mutant("a region that had nothing to do holds the next wave", "tests/runner/test_fleet.py", "console/runner/waves.py",
           "    return not _has_pending_change(view) and not _is_moving(view)\n", "    return False\n"),
    Mutant("what only a newer version understands is passed over", "tests/versions/test_ahead.py", "console/model/codec.py",
           "            elif newer:\n", "            elif False:\n"),
    Mutant("statistics of a table are remembered past its commits", STATISTICS, "console/agent/store/table_stats.py",
           "known[:2] == (wanted, stamp)", "known[0] <= wanted"),
    Mutant("half a character is text in a record that is read briefly",
           "tests/model/test_flat_records.py::test_whatever_is_written_is_read_as_every_other_record", "console/model/codec.py",
           "            if not values[at].isascii():", "            if False:"),
    Mutant("a table that loses its settings has not drifted",
           "tests/planning/test_fleet.py::test_a_setting_that_the_table_was_not_created_with_has_drifted_whatever_it_is",
           "console/planning/cache/releases.py", "state.version.settings, ", ""),
)  # fmt: skip

MUTANTS = (
    *UNDER_FIRE,
    *rules.MUTANTS,
    *watch_mutants.MUTANTS,
    *worlds.MUTANTS,
    *elsewhere.MUTANTS,
    *connect_mutants.MUTANTS,
)


def main() -> int:
    asked = sys.argv[1:]
    bad = 0
    for mutant in MUTANTS:
        if asked and mutant.name not in asked:
            continue
        result = tried(mutant)
        print(json.dumps(result), flush=True)
        bad += not result["caught"]
        known = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
        kept = [entry for entry in known if entry["mutant"] != mutant.name]
        RESULTS.write_text("".join(json.dumps(entry) + "\n" for entry in [*kept, result]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
