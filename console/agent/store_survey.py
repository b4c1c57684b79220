"""The survey of a warehouse on an object store to which nothing was rolled out: its landing tables, by their Delta logs."""

from collections.abc import Sequence

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from console import aws_profile
from console.agent.object_store.object_path import in_bucket
from console.agent.store.table_stats import table_stats
from console.errors import RegionError, Unreachable
from console.model.live import Live, TableStats
from console.text import one_line

SCHEMES = ("s3", "s3a", "gs", "abfs", "abfss")
# A survey answers within a minute or not at all; by itself deltalake would try for three minutes.
_OPTIONS = {"timeout": "20s", "connect_timeout": "5s", "max_retries": "2", "retry_timeout": "30s"}


def survey(warehouse: str, region: str, pipeline: str, landing: Sequence[str]) -> Live:
    """What the planner needs of a region that no console has rolled out to.

    Credentials are those of this process's environment, of the profile that it names, or of the instance.

    landing  names of the landing tables; those that do not exist are left out
    raises   RegionError E_STORE for a store that is not read; Unreachable if the store gives no usable answer
    """
    address = _address(warehouse, region)
    stats = [found for name in landing if (found := _landing(region, name, f"{address}/{name}"))]
    return Live(region=region, pipeline=pipeline, release=None, stats=tuple(stats))


def has_releases(warehouse: str, region: str, pipeline: str) -> bool:
    """Whether something was rolled out there; asked first, since it tells quickly whether a store answers at all.

    raises  RegionError E_STORE for a store that is not read, and for one other than S3 that has releases;
            E_CREDENTIALS for a profile that gives none; Unreachable if the store gives no usable answer
    """
    address = _address(warehouse, region)
    if in_bucket(address):
        aws_profile.export()
    path = f"{address}/_console/{pipeline}/releases"
    # not `is_deltatable`, which holds the interpreter's lock while it waits for the store
    try:
        DeltaTable(path, storage_options=dict(_OPTIONS))
    except TableNotFoundError:
        return False
    except (DeltaError, OSError) as error:
        raise unreachable(region, path, error) from None
    if not in_bucket(address):
        raise RegionError(
            f"{region}: {warehouse} has releases of {pipeline}, which are read from S3 alone",
            hint="move the warehouse to a disk of the region's host, where its agent goes on",
            region=region,
            code="E_STORE",
        )
    return True


def _landing(region: str, name: str, path: str) -> TableStats | None:
    try:
        return table_stats(name, path, options=_OPTIONS)
    except Unreachable as error:
        raise unreachable(region, path, error) from None


def _address(warehouse: str, region: str) -> str:
    scheme, _, rest = warehouse.partition("://")
    if scheme not in SCHEMES:
        raise RegionError(
            f"{region}: {warehouse}: warehouses of {scheme}:// are not read",
            hint=f"use a directory on a disk of the region's host, or {', '.join(SCHEMES)} for a plan alone",
            region=region,
            code="E_STORE",
        )
    return f"{'s3' if scheme == 's3a' else scheme}://{rest.rstrip('/')}"


def unreachable(region: str, place: str, error: Exception) -> Unreachable:
    hint = f"{aws_profile.SOURCES}; `warehouse:` names the bucket"
    return Unreachable(f"{region}: {place}: {one_line(error)}", hint=hint, region=region)
