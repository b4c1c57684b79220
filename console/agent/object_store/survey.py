"""The survey of a warehouse on an object store: its landing tables, by their Delta logs. Nothing is written there."""

import os
import re
from collections.abc import Mapping, Sequence

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from console.agent.object_store.credentials import of_profile
from console.agent.store.table_stats import table_stats
from console.errors import RegionError, Unreachable
from console.model.live import Live, TableStats

SCHEMES = ("s3", "s3a", "gs", "abfs", "abfss")
# A survey answers within a minute or not at all; by itself deltalake would try for three minutes.
_OPTIONS = {"timeout": "20s", "connect_timeout": "5s", "max_retries": "2", "retry_timeout": "30s"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CREDENTIALS = (
    "credentials come from the environment (AWS_PROFILE, AWS_ACCESS_KEY_ID …, AWS_ENDPOINT_URL) or the instance;"
    " `warehouse:` names the bucket"
)


def survey(warehouse: str, region: str, pipeline: str, landing: Sequence[str]) -> Live:
    """What the planner needs of a region that no console has rolled out to.

    Credentials are those of this process's environment, of the profile that it names, or of the instance.

    landing  names of the landing tables; those that do not exist are left out
    raises   RegionError E_STORE for a store that is not read, and for a region that has releases;
             E_CREDENTIALS for a profile that gives none; Unreachable if the store gives no usable answer
    """
    address = _address(warehouse, region)
    options = {**_OPTIONS, **(of_profile(os.environ) if address.startswith("s3://") else {})}
    if _has_table(f"{address}/_console/{pipeline}/releases", region, options):
        raise RegionError(
            f"{region}: {warehouse} has releases of {pipeline}, which are not read from an object store",
            hint="move the warehouse to a disk of the region's host, where its agent goes on",
            region=region,
            code="E_STORE",
        )
    stats = [found for name in landing if (found := _landing(region, name, f"{address}/{name}", options))]
    return Live(region=region, pipeline=pipeline, release=None, stats=tuple(stats))


def _has_table(path: str, region: str, options: Mapping[str, str]) -> bool:
    # not `is_deltatable`, which holds the interpreter's lock while it waits for the store
    try:
        DeltaTable(path, storage_options=dict(options))
    except TableNotFoundError:
        return False
    except (DeltaError, OSError) as error:
        raise _unreachable(region, path, error) from None
    return True


def _landing(region: str, name: str, path: str, options: Mapping[str, str]) -> TableStats | None:
    try:
        return table_stats(name, path, options=options)
    except Unreachable as error:
        raise _unreachable(region, path, error) from None


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


def _unreachable(region: str, place: str, error: Exception) -> Unreachable:
    reason = " ".join(_COLOUR.sub("", str(error)).split())[:300]
    return Unreachable(f"{region}: {place}: {reason}", hint=_CREDENTIALS, region=region)
