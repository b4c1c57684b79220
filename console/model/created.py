"""The Delta settings that a version of ours is created with; its release keeps them, so that any other is somebody's doing."""

TableSettings = tuple[tuple[str, str], ...]  # `delta.*` → value, sorted

CHECKPOINT_COMMITS = 50  # Delta's 10 makes every tenth small live commit a heavy one
_LEAST_HOURS = 24 * 7

# what a session may have on for every new table, and no feed can read or deltalake write (docs/design.md, rule 9); as good as unset
OFF = {
    **dict.fromkeys(("delta.enableDeletionVectors", "delta.enableRowTracking", "delta.enableTypeWidening"), "false"),
    **dict.fromkeys(("delta.enableInCommitTimestamps", "delta.appendOnly"), "false"),
    "delta.columnMapping.mode": "none",
    "delta.checkpointPolicy": "classic",
}


def table_settings(keep_hours: float) -> TableSettings:
    """keep_hours: how long removed files and the log are kept at least, the rollback window plus the longest rollout"""
    hours = max(int(keep_hours), _LEAST_HOURS)
    return (
        ("delta.checkpointInterval", str(CHECKPOINT_COMMITS)),
        ("delta.deletedFileRetentionDuration", f"interval {hours} hours"),
        ("delta.logRetentionDuration", f"interval {2 * hours} hours"),
    )


def changed(was: TableSettings, now: TableSettings) -> tuple[tuple[str, str, str], ...]:
    """Key, value then and value now ("" for none) of the settings that are no longer those that a table was created with."""
    before, after = dict(was), dict(now)
    return tuple(
        (key, before.get(key, ""), after.get(key, ""))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key) and not (key not in before and after[key].lower() == OFF.get(key))
    )
