"""The Delta settings of new versions. Releases record them, so that later changes show as drift."""

TableSettings = tuple[tuple[str, str], ...]  # `delta.*` → value, sorted

CHECKPOINT_COMMITS = 50  # Delta's 10 makes every tenth small live commit a heavy one
_LEAST_HOURS = 24 * 7

# features that a session may turn on by default, but that feeds cannot read or deltalake cannot write (docs/design.md, rule 9)
OFF = {
    **dict.fromkeys(("delta.enableDeletionVectors", "delta.enableRowTracking", "delta.enableTypeWidening"), "false"),
    **dict.fromkeys(("delta.enableInCommitTimestamps", "delta.appendOnly"), "false"),
    "delta.columnMapping.mode": "none",
    "delta.checkpointPolicy": "classic",
}


def table_settings(keep_hours: float) -> TableSettings:
    """Settings of a new version. keep_hours: minimum hours that removed files are kept: rollback window plus longest rollout"""
    hours = max(int(keep_hours), _LEAST_HOURS)
    return (
        ("delta.checkpointInterval", str(CHECKPOINT_COMMITS)),
        ("delta.deletedFileRetentionDuration", f"interval {hours} hours"),
        ("delta.logRetentionDuration", f"interval {2 * hours} hours"),
    )


def changed(was: TableSettings, now: TableSettings) -> tuple[tuple[str, str, str], ...]:
    """(key, value at creation, value now), "" for none, of the settings that differ from those of the table's creation."""
    before, after = dict(was), dict(now)
    return tuple(
        (key, before.get(key, ""), after.get(key, ""))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key) and not (key not in before and after[key].lower() == OFF.get(key))
    )
