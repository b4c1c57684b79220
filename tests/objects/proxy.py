"""A proxy between a client and its store, which a test cuts: before a request arrives, or before its answer does."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

# of one request: answered, carried out and never answered, or silently dropped
Fate: TypeAlias = Literal["pass", "lose answer", "drop"]
Rule: TypeAlias = Callable[[str, str], Fate]

SECONDS = 60.0


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what these tests are about."""


class Proxy:
    """address  what clients are given
    rule        fate of a request, by method and path; may block, which holds the request back
    """

    def __init__(self, upstream: str, host: str = "127.0.0.1") -> None:
        self.rule: Rule = lambda method, path: "pass"
        self._server = Server((host, 0), self._handler(urlsplit(upstream).netloc))
        self.address = f"http://{host}:{self._server.server_port}"

    def partition(self) -> None:
        """From now on nothing arrives and nothing comes back."""
        self.rule = lambda method, path: "drop"

    def heal(self) -> None:
        self.rule = lambda method, path: "pass"

    def _handler(self, upstream: str) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fate = proxy.rule(self.command, self.path)
                if fate == "drop":
                    self.close_connection = True
                    return
                link = http.client.HTTPConnection(upstream, timeout=SECONDS)
                try:
                    link.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for name, value in self.headers.items():
                        link.putheader(name, value)
                    link.endheaders(body)
                    answer = link.getresponse()
                    content = answer.read()
                finally:
                    link.close()
                if fate == "lose answer":
                    self.close_connection = True
                    return
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
                self.send_header("Content-Length", length or "0")
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler

    def run(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def between(upstream: str, host: str = "127.0.0.1") -> Iterator[Proxy]:
    """host: the address of this machine at which clients reach it"""
    proxy = Proxy(upstream, host)
    thread = threading.Thread(target=proxy.run, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join(SECONDS)
