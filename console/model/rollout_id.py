"""Ids of rollouts (`web-7`) and of releases (`r7`). A rollout and the release it builds share one number."""

from collections.abc import Iterable


def rollout_id(pipeline: str, number: int) -> str:
    return f"{pipeline}-{number}"


def rollout_number(rollout: str) -> int:
    """The number in a rollout's id; the pipeline's own name may contain hyphens."""
    return int(rollout.rpartition("-")[2])


def newest_rollout(rollouts: Iterable[str]) -> str:
    """The id with the highest number, "" for none: `web-10` is newer than `web-9`."""
    return max(rollouts, key=rollout_number, default="")


def release_id(number: int) -> str:
    return f"r{number}"


def release_number(release: str) -> int:
    return int(release.removeprefix("r"))
