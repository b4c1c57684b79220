"""A region in a bucket whose agent is on another host. The host reaches the store by another address than we do."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from console import paths
from tests.objects.proxy import between
from tests.objects.region import Region, environment
from tests.objects.server import BUCKET, OWNED, options, owner
from tests.ssh.host import Host

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
NO_INSTANCE = {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:9"}  # none of ours has one to ask


@contextmanager
def far_region(host: Host, server: str, home: Path, name: str) -> Iterator[Region]:
    """A region whose folder only its owner opens.

    Neither host nor console has credentials in its environment; the region's file leads to those of the owner, on our side.
    """
    account = owner(name)
    home.mkdir()
    token = home / "token"
    token.write_text(f"{account['AWS_SESSION_TOKEN']}\n")
    token.chmod(0o600)
    named = {"LAKE_KEY": account["AWS_ACCESS_KEY_ID"], "LAKE_SECRET": account["AWS_SECRET_ACCESS_KEY"]}
    with between(server, host.near) as proxy:
        jars = {"CONSOLE_JARS": str(paths.jars_dir())}
        host.environment = {**_without_keys(proxy.address), **NO_INSTANCE, **jars}
        host.restart()
        region = Region(
            home=home,
            warehouse=f"s3://{BUCKET}/{OWNED}{name}",
            store={**options(server), **account},
            environment={**environment(home, _without_keys(server), home), **named},
            more=f"{transport(host)}{secrets(token)}",
        )
        try:
            yield region
        finally:
            region.end()


def transport(host: Host, **more: object) -> str:
    ssh = {"host": host.address, "user": "root", "key": f"file:{host.folder}/key", **more}
    return f"transport: {json.dumps({'ssh': {**ssh, 'known_hosts': str(host.folder / 'known_hosts')}})}\n"


def secrets(token: Path) -> str:
    named = {"aws_access_key_id": "env:LAKE_KEY", "aws_secret_access_key": "cmd:printenv LAKE_SECRET"}
    return f"secrets: {json.dumps({**named, 'aws_session_token': f'file:{token}'})}\n"


def _without_keys(address: str) -> dict[str, str]:
    return {name: value for name, value in options(address).items() if name not in KEYS}
