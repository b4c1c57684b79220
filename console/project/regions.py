"""The inventory: regions/_defaults.yaml and one file per region, read into the model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from console import paths
from console.errors import Problem, Problems
from console.model.policy import Throttle
from console.model.region import BackfillSpark, Follow, Limits, Policy, Prices, Region, Spark, Ssh
from console.model.spark_master import spark_master
from console.project.documents import OverrideDoc, RegionDoc, SparkDoc
from console.project.explain import validated
from console.project.ineffective import unread
from console.project.names import did_you_mean, nearest, wrong_name
from console.project.yaml import Document, parse, read_text

DEFAULTS = "_defaults"
_ON_A_DISK = "to roll out, use a directory on a disk of the region's host (docs/stores.md)"
_ON_THE_HOST = "spark: {master: local[2]}, or a standalone cluster on the warehouse's own host (docs/clusters.md)"
_RUN_WITH_BUCKETS = "spark: {master: local[2]}, or {master: spark://HOST:PORT} (docs/clusters.md)"
_ELSEWHERE = {
    "connect": "is on a disk, which a Spark Connect server may not see",
    "yarn": "is on a disk, and the tasks of YARN run on other hosts",
    "kubernetes": "is on a disk, and the tasks of Kubernetes run in pods of their own",
}
_BUCKETS = ("s3://", "s3a://")
SCHEMES = frozenset(("s3", "s3a", "gs", "abfs", "abfss", "wasb", "wasbs", "hdfs", "file"))
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RegionEntry:
    """A region and its overrides, with their places.

    region     None if the file is invalid; its overrides are checked nevertheless
    document   the region's file over the defaults
    overrides  pipeline name → what differs there
    """

    name: str
    region: Region | None
    document: Document
    overrides: dict[str, OverrideDoc]


def read_regions(root: Path) -> tuple[tuple[RegionEntry, ...], list[Problem]]:
    """The inventory by name, and all its problems.

    root  the project, resolved
    """
    files, problems = _files(root / "regions", root)
    documents: dict[str, Document] = {}
    for path in files:
        try:
            documents[path.stem] = parse(read_text(path, root), path.relative_to(root).as_posix())
        except Problems as invalid:
            problems += invalid.problems
    defaults = documents.pop(DEFAULTS, Document(file=f"regions/{DEFAULTS}.yaml"))
    for key in ("name", "warehouse"):
        if key in defaults.data:
            message = f"`{key}` differs from region to region and cannot have a default"
            problems.append(
                Problem(
                    code="P010",
                    message=message,
                    where=defaults.place((key,), key=True),
                    hint="move it to the regions' files",
                )
            )
            defaults.drop((key,))
    entries: list[RegionEntry] = []
    for name, own in sorted(documents.items()):
        entry, wrong = _entry(root, name, _merged(defaults, own))
        problems += wrong
        entries.append(entry)
    if not documents and not problems:
        problems.append(
            Problem(code="P011", message="no region is declared", where="regions/:1:1", hint="write regions/eu.yaml")
        )
    return tuple(entries), [*problems, *_shared([entry.region for entry in entries if entry.region])]


def _files(folder: Path, root: Path) -> tuple[list[Path], list[Problem]]:
    files: list[Path] = []
    problems: list[Problem] = []
    for path in sorted(folder.iterdir()):
        shown = path.relative_to(root).as_posix()
        if path.name.startswith(".") or path.name == "README.md":
            continue
        if path.suffix != ".yaml":
            hint = f"rename it to {path.stem}.yaml" if path.suffix == ".yml" else "move it out of regions/"
            problems.append(Problem(code="P020", message="not a region's file", where=f"{shown}:1:1", hint=hint))
        elif path.stem != DEFAULTS and (wrong := wrong_name(path.stem)):
            hint = f"did you mean {DEFAULTS}.yaml?" if nearest(path.stem, [DEFAULTS]) else "rename the file"
            problems.append(Problem(code="P013", message=wrong, where=f"{shown}:1:1", hint=hint))
        else:
            files.append(path)
    return files, problems


def _merged(defaults: Document, own: Document) -> Document:
    """`own` merged over `defaults`, mappings key by key; an empty value removes the default."""
    merged = defaults.copy()
    merged.file = own.file
    merged.values[()] = own.place(())

    def overlay(path: tuple[str | int, ...]) -> None:
        for key, value in own.get(path).items():
            at = (*path, key)
            if isinstance(value, dict) and isinstance(merged.get(at), dict):
                merged.values[at] = own.place(at)
                merged.keys[at] = own.place(at, key=True)
                overlay(at)
            else:
                merged.put(at, own, at)

    overlay(())
    return merged


def _entry(root: Path, name: str, document: Document) -> tuple[RegionEntry, list[Problem]]:
    doc, problems = validated(RegionDoc, document, name)
    if doc is None:
        return RegionEntry(name, None, document, _parts(document)), problems

    def wrong(code: str, message: str, path: tuple[str | int, ...], hint: str = "") -> None:
        problems.append(Problem(code=code, message=message, where=document.place(path), hint=hint, node=name))

    if doc.name not in ("", name):
        wrong("P021", f"name: the file is named {name}.yaml, found `{doc.name}`", ("name",), "make them the same")
    remote = doc.transport.ssh is not None
    warehouse, why, hint = place_of(doc.warehouse, root, remote)
    if why:
        wrong("P040", f"warehouse: {why}", ("warehouse",), hint)
    ssh, why, hint = _ssh(doc, root)
    if why:
        wrong("P042", f"transport.ssh.known_hosts: {why}", ("transport", "ssh", "known_hosts"), hint)
    region = Region(
        name=name,
        warehouse=warehouse,
        environment=doc.environment,
        owner=doc.owner,
        zone=doc.zone,
        wave=doc.wave,
        canary=doc.canary,
        transport=ssh,
        spark=_spark(doc.spark, document, ("spark", "conf")), backfill_spark=_backfill_spark(doc, document),
        limits=Limits(doc.limits.rows, doc.limits.bytes, doc.limits.target_seconds),
        throttle=Throttle(lag_seconds=doc.throttle.lag, hours=doc.throttle.hours, zone=doc.zone, query=doc.throttle.query),
        follow=Follow(doc.follow.share, doc.follow.lag, doc.follow.idle),
        policy=Policy(
            promote=doc.policy.promote, on_failure=doc.policy.on_failure, keep_failed_hours=doc.policy.keep_failed, rollback_window_hours=doc.policy.rollback_window,
            quarantine_rows=doc.policy.quarantine_rows, preview_expires_hours=doc.policy.preview_expires, approvals=doc.policy.approvals, ticket=doc.policy.ticket,
            min_soak_seconds=doc.policy.min_soak, clean_intervals=doc.policy.soak.clean_intervals,
            watch_seconds=doc.policy.watch, on_breach=doc.policy.on_breach, watch_query=doc.policy.watch_query,
        ),
        prices=Prices(doc.prices.core_hour, doc.prices.tb_read, doc.prices.tb_month, doc.prices.currency),
        secrets=tuple(sorted(doc.secrets.items())), where=document.place(()), ineffective=(*unread(doc, document), *_planned_only(warehouse, doc, document, name)),
    )  # fmt: skip
    return RegionEntry(name, region, document, doc.overrides), problems


def _planned_only(warehouse: str, doc: RegionDoc, document: Document, name: str) -> tuple[Problem, ...]:
    """A refusal for plans of a region whose agent would not start: better said before the review than after it."""
    refused = _refused_spark(warehouse, doc.spark, document, name)
    second = doc.backfill_spark
    if refused or second is None or not second.names_one:
        return refused
    if doc.spark.remote:
        why = (
            f"{name}: a `backfill_spark` beside Spark Connect was never tried: nothing can be rolled out to the region"
        )
        hint = "leave `backfill_spark` out of the region's file (docs/clusters.md#spark-connect)"
        return (Problem(code="P043", message=why, where=document.place(("backfill_spark",)), hint=hint, node=name),)
    return _refused_spark(warehouse, second, document, name, second=True)


def _refused_spark(
    warehouse: str, doc: SparkDoc, document: Document, name: str, *, second: bool = False
) -> tuple[Problem, ...]:
    master = spark_master(doc.master or "local")
    kind = "connect" if doc.remote else master.kind
    hint, on_a_disk = _ON_A_DISK, "://" not in warehouse or warehouse.startswith("file://")
    if on_a_disk:
        if kind in ("local", "standalone"):
            return ()
        why, hint = _ELSEWHERE[kind], _ON_THE_HOST
    elif not warehouse.startswith(_BUCKETS):
        why = "is an object store other than S3"
    elif kind == "connect" and second:
        why, hint = "is in a bucket, and through Spark Connect no second Spark is tried", _ON_THE_HOST
    elif kind == "connect":
        return ()
    elif not master.reaches_buckets:
        why, hint = "is in a bucket, and its Spark is neither a local one nor a standalone cluster", _RUN_WITH_BUCKETS
    else:
        return ()
    where = document.place(("backfill_spark",) if second else ("warehouse",))
    by = f"`backfill_spark` {doc.remote or doc.master}: " if second else ""
    message = f"{name}: {by}{warehouse} {why}: the region can be planned, and nothing can be rolled out to it"
    return (Problem(code="P043", message=message, where=where, hint=hint, node=name),)


def _parts(document: Document) -> dict[str, OverrideDoc]:
    """The valid overrides of an invalid file, so that their problems are reported together with the others."""
    given = document.data.get("overrides")
    parts: dict[str, OverrideDoc] = {}
    for pipeline, differs in given.items() if isinstance(given, dict) else ():
        if isinstance(differs, dict) and (
            part := validated(OverrideDoc, Document(file=document.file, data=differs))[0]
        ):
            parts[pipeline] = part
    return parts


def _ssh(doc: RegionDoc, root: Path) -> tuple[Ssh | None, str, str]:
    """The region's transport, its problem or "", and a hint. A relative `known_hosts` is a file of the project."""
    ssh = doc.transport.ssh
    if ssh is None:
        return None, "", ""
    known, why, hint = ssh.known_hosts, "", ""
    if known and not known.startswith("~/"):
        known, why, hint = _local(known, root, False)
    return (
        Ssh(
            host=ssh.host,
            port=ssh.port,
            user=ssh.user,
            key=ssh.key,
            known_hosts=known,
            jump=ssh.jump,
            bootstrap=ssh.bootstrap,
        ),
        why,
        hint,
    )


def _spark(doc: SparkDoc, document: Document, path: tuple[str, ...]) -> Spark:
    conf = tuple(sorted((key, document.raw.get((*path, key), "")) for key in doc.conf))
    return Spark(doc.master or ("" if doc.remote else Spark().master), doc.remote, conf, doc.defaults)


def _backfill_spark(doc: RegionDoc, document: Document) -> BackfillSpark | None:
    second = doc.backfill_spark
    if second is None or not second.names_one:
        return None
    spark = _spark(second, document, ("backfill_spark", "conf"))
    above = {name: most for name in ("rows", "bytes") if (most := getattr(second.above, name)) is not None}
    return BackfillSpark(spark=spark, **above)


def place_of(warehouse: str, root: Path, remote: bool) -> tuple[str, str, str]:
    """A warehouse as an absolute path or URI.

    root    the project, resolved; a relative path lies below it, links followed
    remote  True where the path is another machine's
    returns (place, what is wrong or "", hint)
    """
    if not warehouse.strip() or any(ord(char) < 32 or char == "\x7f" for char in warehouse):
        return "", "expected a path or URI without control characters", ""
    path = warehouse
    if uri := _URI.fullmatch(warehouse):
        scheme, rest = uri[1].lower(), uri[2]
        if scheme not in SCHEMES:
            return "", f"`{scheme}:` is not a supported store", did_you_mean(scheme, SCHEMES, "known")
        if ".." in unquote(rest).split("/"):
            return "", "`..` leads out of that directory", "write the place itself"
        if scheme != "file":
            bucket = rest.removeprefix("//").split("/")[0]
            return (f"{scheme}:{rest.rstrip('/')}", "", "") if bucket else ("", "the bucket is missing", "")
        if not rest.startswith("///"):
            return "", "a file URI has three slashes: file:///path", ""
        path = "/" + unquote(rest).lstrip("/")
        if "\x00" in path:
            return "", "expected a path or URI without control characters", ""
    return _local(path, root, remote)


def _local(path: str, root: Path, remote: bool) -> tuple[str, str, str]:
    place, why, hint = _on_disk(path, root, remote)
    if what := paths.unfit(place) if remote else paths.unfit_here(place):
        return "", f"no Delta table can be stored below `{what}`", paths.UNFIT
    return place, why, hint


def _on_disk(path: str, root: Path, remote: bool) -> tuple[str, str, str]:
    if "\\" in path or re.match(r"[A-Za-z]:", path) or path.startswith("~"):
        return "", f"`{path[:60]}` is neither a plain path nor a URI", "write an absolute path"
    pure = PurePosixPath(path)
    if ".." in pure.parts:
        return "", "`..` leads out of that directory", "write an absolute path, or one below the project"
    if pure.is_absolute():
        place = "/" + "/".join(pure.parts[1:])
        return (place, "", "") if place != "/" else ("", "the root of the disk cannot be a warehouse", "")
    if remote:
        return "", "a region behind ssh needs an absolute path or a URI", ""
    if not pure.parts:
        return "", "the project itself cannot be a warehouse", "name a folder below it"
    resolved = (root / pure).resolve()
    if not resolved.is_relative_to(root):
        return "", "a link leads out of the project", "write the absolute path"
    return str(root / pure), "", ""


def _shared(regions: Sequence[Region]) -> list[Problem]:
    """Regions whose warehouses are the same, or nested."""
    problems: list[Problem] = []
    checked: list[tuple[tuple[str, ...], Region]] = []
    for region in sorted((r for r in regions if r.warehouse), key=lambda region: region.name):
        in_store = not region.warehouse.startswith("/")  # one place, whichever host its agent is on
        host = region.transport.host if region.transport and not in_store else ""
        local = not in_store and not host
        where = str(Path(region.warehouse).resolve()) if local else region.warehouse
        parts = (host, *where.replace("s3a://", "s3://").split("/"))
        for other, owner in checked:
            if other == parts:
                message = f"regions {owner.name} and {region.name} have the same warehouse"
            elif other == parts[: len(other)] or parts == other[: len(parts)]:
                message = f"the warehouses of {owner.name} and {region.name} are nested"
            else:
                continue
            hint = f"the other one is in {owner.where.rsplit(':', 2)[0]}"
            problems.append(Problem(code="P041", message=message, where=region.where, hint=hint, node=region.name))
        checked.append((parts, region))
    return problems
