"""The demo's reader: how often it reads."""

from console.demo.reader import AFTERWARDS_PER_SECOND, READS_PER_SECOND, ReadLog, rate


def test_reads_are_frequent_from_the_last_promotion_until_there_are_as_many_as_wanted() -> None:
    eu, us = ReadLog(reads=90, releases=["r1"]), ReadLog(reads=90, releases=["r1", "r2"])
    log = {"eu": eu, "us": us}
    assert rate(log, 200) == READS_PER_SECOND, "eu is still being prepared"
    eu.releases.append("r2")
    assert rate(log, 200) == AFTERWARDS_PER_SECOND
    us.reads = 200
    assert rate(log, 200) == AFTERWARDS_PER_SECOND, "eu was read 90 times"
    eu.reads = 200
    assert rate(log, 200) == READS_PER_SECOND, "an open screen goes on for hours"
