"""The bugs with which the tests of a watch after a promotion were seen to fail: each check taken out, and each rule of what follows."""

from tests.faults.planted import Mutant

ROUNDS, CHECKS = "console/agent/soak/after_promotion.py", "console/agent/soak/watch_checks.py"
WAVES, AFTER = "console/runner/wave_run.py", "console/runner/after_promotion.py"
DECIDED, HELD, FOLDED = (
    "tests/agent/test_watch_decisions.py",
    "tests/runner/test_after_promotion.py",
    "tests/model/test_breach.py",
)
_DEFECTS = "tests/agent/test_watch.py::test_a_defect_that_shows_only_after_the_promotion_is_taken_back_in_the_first_round_that_could_see_it"
_BY_SPARK = "tests/agent/test_watch.py::test_what_only_spark_can_see_is_taken_back_as_well"
_DAYS = "tests/agent/test_newest_days.py"
_REPEATED = "tests/agent/test_repeated_calls.py::test_a_call_that_fails_is_called_once_more_and_fails_only_by_both"
_UNSURE = "tests/agent/test_watch.py::test_what_is_inconclusive_takes_nothing_back_and_holds_nothing"


def bug(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    return Mutant(name, test, file, old, new)


MUTANTS: tuple[Mutant, ...] = (
    # without its check no defect is found
    bug("no feed is looked at after a promotion", ROUNDS, "list(_feeds_go_on(context))", "[]", f"{_DEFECTS}[a_new_shape]"),
    bug("a feed that keeps failing goes on", ROUNDS, "list(_feeds_go_on(context))", "[]", f"{_DEFECTS}[stands_still]"),
    bug("no commit is looked at after a promotion", ROUNDS, "[*made.rows(), *(", "[*(", f"{_DEFECTS}[moved_twice]"),
    bug("no row is counted after a promotion", ROUNDS, "*(made.tables() if context.before else ())", "", f"{_DEFECTS}[lost]"),
    bug("the policy's query never fails", CHECKS, "ok=answer if isinstance(answer, bool) else None", "ok=answer or None", f"{_BY_SPARK}[the query turns false]"),
    bug("no call is run after a promotion", CHECKS, "for check in call_checks(context, own, pins):", "for check in list[Checked]():", f"{_BY_SPARK}[more files than its budget]"),
    bug("no answer is compared after a promotion", CHECKS, "for check in call_checks(context, own, pins):", "for check in list[Checked]():", f"{_BY_SPARK}[another answer]"),
    bug("no live row is computed again", CHECKS, "            if result is None:\n", "            if True:\n", f"{_BY_SPARK}[other values of live rows]"),
    bug("nothing is expected of what is live", CHECKS, "for check in expectations.checks(context, context.spark.session(), pins):", "for check in list[Checked]():", f"{_BY_SPARK}[an expectation]"),
    bug("no commit that changed rows is noticed", "console/agent/soak/gate_checks.py", " or samples.rewritten_rows(feed.target_path, after)", "", "tests/agent/test_gate_defects.py::test_a_defect_at_the_gate_closes_it_by_name_in_the_first_round_that_could_see_it"),
    bug("a day whose bytes alone have changed is passed over", "console/agent/soak/newest_days.py", "(day.rows, day.bytes) != seen.get(name)", "day.rows != seen.get(name, (0, 0))[0]", f"{_DAYS}::test_a_day_that_changed_by_rows_or_by_bytes_alone_is_compared_whichever_it_is"),
    bug("rows of a clock that is ahead are the newest", "console/agent/soak/newest_days.py", "if name and name <= tomorrow]", "if name]", f"{_DAYS}::test_the_newest_days_are_not_those_of_a_clock_that_is_ahead"),
    bug("commits with a gap between them are computed as one", "console/agent/recount/sample.py", "(runs[-1].version, runs[-1].last) == (commit.version - 1, commit.first - 1)", "runs[-1].version == commit.version - 1", f"{_DAYS}::test_commits_are_taken_together_as_long_as_both_logs_go_on_without_a_gap"),
    bug("a gate asks Spark nothing", "console/agent/soak/at_gate.py", "        self._ask_spark(controller, known, pins)", "        pass", "tests/agent/test_gate_rounds.py::test_what_spark_finds_in_a_later_round_closes_the_gate_and_is_asked_again_only_when_due"),
    bug("a call that failed once has failed", "console/agent/execution/endpoint_calls.py", "replay(context, call, live, new)) if first.failed", "first) if first.failed", f"{_REPEATED}[results1-True-None-2]"),
    bug("an answer that differed once differs", "console/agent/calls/verdict.py", "if first.same is False and again.same is not False:", "if False:", f"{_REPEATED}[results4-None-True-2]"),
    bug("a call that is too slow to be repeated is fast enough", "console/agent/calls/verdict.py", "if more < FEW_SECONDS or new.seconds < live.seconds * MUCH_SLOWER:", "if True:", "tests/agent/test_call_answers.py::test_time_alone_decides_from_twice_as_slow_and_is_inconclusive_below"),
    # what follows, and what does not
    bug("a breach waits for the end of its check", ROUNDS, "                        for check in results:  #", "                        for check in list(results):  #", f"{DECIDED}::test_what_fails_is_acted_on_before_the_next_result_of_the_same_check"),
    bug("what is unclear is taken back", ROUNDS, "if check.ok is False and not recorder.status.watched.knows", "if check.ok is not True and not recorder.status.watched.knows", _UNSURE),
    bug("a query that answers nothing is false", CHECKS, "ok=answer if isinstance(answer, bool) else None", "ok=bool(answer)", _UNSURE),
    bug("a feed that neither release can move is taken back", ROUNDS, "and context.path(state.version.path) in stalled", "and False", f"{DECIDED}::test_a_row_that_neither_version_converts_is_no_reason_to_go_back"),
    bug("nothing is taken back", ROUNDS, "controller.rollback(controller.recorder.status.release", "str(controller.recorder.status.release", f"{_DEFECTS}[lost]"),
    bug("a person who pauses is passed over", ROUNDS, "or controller.recorder.status.watched.held_by:", "or False:", f"{DECIDED}::test_a_person_who_pauses_first_keeps_the_agent_from_taking_it_back"),
    bug("a decision that came first is overtaken", ROUNDS, "            if _to_take_back(controller, known):  # and not since a person had the lock", "            if True:", f"{DECIDED}::test_a_persons_decision_that_has_the_lock_first_wins"),
    bug("a breach is acted on in every round", ROUNDS, " and not recorder.status.watched.knows(check.table, check.check)", "", f"{DECIDED}::test_a_breach_pauses_or_is_only_told_and_is_stored_once"),
    bug("a watch has no end", ROUNDS, "if plan is not None and began >= known.since + plan.gate.watch:", "if False:", f"{DECIDED}::test_clean_rounds_with_and_without_traffic_leave_nothing_in_the_log_and_end_the_watch"),
    bug("a gate opens itself after a return", "console/model/gate.py", "    if status.taken_back:\n", "    if False:\n", f"{DECIDED}::test_after_a_return_no_gate_opens_by_itself_until_a_person_has_promoted"),
    bug("--yes promotes after a return", "console/runner/actions.py", "or (yes and taken_back)", "", f"{HELD}::test_a_release_that_was_taken_back_ends_the_run_and_is_promoted_by_a_person_alone"),
    bug("what is sent to a landing table is held against it", "console/agent/execution/validation.py", "    if context.before is not None:\n        ours", "    if False:\n        ours", f"{DECIDED}::test_what_is_sent_to_a_promoted_landing_version_is_not_held_against_it"),
    # waves
    bug("no wave waits for a watch", WAVES, "if order[index + 1 :] and may_go_on", "if False and may_go_on", f"{HELD}::test_the_next_wave_begins_once_the_checks_after_the_promotion_have_ended"),
    bug("a breach holds no wave", AFTER, '    if status.state == "live" and status.watched.holds:\n        hint', '    if False:\n        hint', f"{HELD}::test_a_breach_holds_the_next_wave_until_a_person_lets_it_begin"),
    bug("an ended watch lets every wave begin", AFTER, "return view.status.watched.holds or (", "return (", f"{HELD}::test_opened_by_hand_the_waves_that_waited_begin_when_the_watch_lets_them"),
    bug("an answer is for all that fails later", "console/model/breach.py", "if breach.action != \"tell\" and not breach.answered)", "if breach.action != \"tell\" and not any(each.answered for each in self.breaches))", FOLDED),
    bug("a breach restarts the rollback window", "console/model/status.py", "        case Checked() if status.state in ENDED:\n            return False\n", "", FOLDED),
)  # fmt: skip
