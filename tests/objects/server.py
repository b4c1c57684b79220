"""A local S3 server for tests: moto's, with one request at a time.

moto knows `If-None-Match: *`, but looks and then puts, so two of its threads can both win a key. Here each request is
read whole, and then answered under one lock: the server arbitrates as S3 does, which `test_server.py` shows by a race.

    python -m tests.objects.server [--racing]      prints its port; --racing leaves the lock out
"""

import io
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

BUCKET = "lake"
ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
OWNED = "owned-"  # folders of the bucket that begin so are opened by the key and the token of their name alone

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]


class OneAtATime:
    """A WSGI application whose requests are read whole, then answered one after the other."""

    def __init__(self, application: Wsgi, gate: AbstractContextManager[Any]) -> None:
        self._application = application
        self._gate = gate

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        # outside of the gate, since a client that is cut off may never send the rest
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        with self._gate:
            return list(self._application(environ, start_response))


class Owned:
    """Refuses requests for a folder `owned-NAME` without the key id KEY-NAME and the session token TOKEN-NAME: moto itself
    takes any credentials. The key id READER-NAME may read there, with the same token.
    """

    def __init__(self, application: Wsgi) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        asked = f"{environ['PATH_INFO']}?{unquote(environ.get('QUERY_STRING', ''))}"
        if named := re.search(rf"[/=]{OWNED}(\w+)", asked):
            ids = ("KEY", "READER") if environ["REQUEST_METHOD"] in ("GET", "HEAD") else ("KEY",)
            signed = environ.get("HTTP_AUTHORIZATION", ""), environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")
            known = any(f"Credential={each}-{named[1]}/" in signed[0] for each in ids)
            if not known or signed[1] != f"TOKEN-{named[1]}":
                start_response("403 Forbidden", [("Content-Type", "application/xml")])
                return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]
        return self._application(environ, start_response)


def listed(page: Mapping[str, Any]) -> bytes:
    """A page of ListObjectsV2, as moto has made it, as XML: moto's own serializer takes a millisecond and a half for each object."""
    root = ElementTree.Element("ListBucketResult", xmlns="http://s3.amazonaws.com/doc/2006-03-01/")
    for name, value in page.items():
        for entry in value if isinstance(value, list) else [value]:
            element = ElementTree.SubElement(root, name)
            if isinstance(entry, dict):
                for key, text in entry.items():
                    ElementTree.SubElement(element, key).text = str(text)
            else:
                element.text = str(entry).lower() if isinstance(entry, bool) else str(entry)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def list_quickly() -> None:
    from moto.s3.responses import S3Response

    serialized = S3Response.serialized

    def quickly(response: Any, result: Any) -> Any:
        if response.data["Action"] != "ListObjectsV2" or isinstance(result.result, Exception):
            return serialized(response, result)
        return 200, {"Content-Type": "application/xml"}, listed(result.result)

    S3Response.serialized = quickly


def serve(racing: bool) -> None:
    import logging

    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    if racing:
        sys.setswitchinterval(1e-6)
    list_quickly()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    WSGIRequestHandler.protocol_version = "HTTP/1.1"
    WSGIRequestHandler.disable_nagle_algorithm = True
    gate: AbstractContextManager[Any] = nullcontext() if racing else threading.Lock()
    application = OneAtATime(Owned(DomainDispatcherApplication(create_backend_app)), gate)
    server = make_server("127.0.0.1", 0, application, threaded=True)
    print(server.port, flush=True)
    server.serve_forever()


@contextmanager
def running(*, racing: bool = False) -> Iterator[str]:
    """A server with an empty bucket `BUCKET`, as a process of its own. Yields its address."""
    command = [sys.executable, "-m", "tests.objects.server", *(["--racing"] if racing else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = f"http://127.0.0.1:{int(process.stdout.readline())}"
        make_bucket(address)
        yield address
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def options(address: str) -> dict[str, str]:
    """deltalake's storage options for the server."""
    return {**ACCOUNT, "AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true"}


def owner(name: str) -> dict[str, str]:
    """The account that may read and write `owned-NAME`."""
    keys = {"AWS_ACCESS_KEY_ID": f"KEY-{name}", "AWS_SECRET_ACCESS_KEY": f"SECRET-{name}"}
    return {**ACCOUNT, **keys, "AWS_SESSION_TOKEN": f"TOKEN-{name}"}


def reader(name: str) -> dict[str, str]:
    """The account that may read `owned-NAME`, and write nothing."""
    return {**owner(name), "AWS_ACCESS_KEY_ID": f"READER-{name}"}


def client(address: str, account: Mapping[str, str] = ACCOUNT) -> Any:
    """obstore's client of the bucket."""
    from obstore.store import S3Store

    names = ("access_key_id", "secret_access_key", "session_token", "region")
    account = {name: account[f"AWS_{name.upper()}"] for name in names if f"AWS_{name.upper()}" in account}
    return S3Store(BUCKET, endpoint=address, client_options={"allow_http": True}, **account)


def make_bucket(address: str) -> None:
    from urllib.request import Request, urlopen

    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request"}
    with urlopen(Request(f"{address}/{BUCKET}", method="PUT", headers=signed), timeout=30):
        pass


if __name__ == "__main__":
    serve("--racing" in sys.argv)
