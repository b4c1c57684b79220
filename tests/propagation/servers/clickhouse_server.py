"""A ClickHouse for tests: owns one chdb folder and speaks ClickHouse's HTTP protocol on a loopback port.

    python clickhouse_server.py FOLDER        prints its port on stdout, serves until it is ended

source  https://clickhouse.com/docs/interfaces/http
"""

import gzip
import os
import sys
import tempfile
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import lz4.frame
import zstandard
from chdb import session

# parameters of the transport; every other one is a setting of the query
TRANSPORT = frozenset(
    (
        "query", "database", "default_format", "user", "password", "session_id", "session_timeout", "session_check",
        "query_id", "quota_key", "wait_end_of_query", "compress", "decompress", "buffer_size", "enable_http_compression",
        "client_protocol_version", "send_progress_in_http_headers", "http_headers_progress_interval_ms", "role",
        "cancel_http_readonly_queries_on_client_close", "http_write_exception_in_output_format",
    )
)  # fmt: skip


class Engine:
    """The folder's one session: statements go through it one at a time, each from a clean set of settings."""

    def __init__(self, folder: str) -> None:
        self._session = session.Session(folder)
        self._lock = threading.Lock()
        self._database = "default"

    def run(self, query: bytes, arguments: dict[str, str]) -> bytes:
        """One statement; what follows `FORMAT Native` in an INSERT is its data."""
        head, data = split_data(query)
        with self._lock:
            wanted = arguments.get("database") or "default"
            if wanted != self._database:
                self._session.query(f"USE `{wanted}`")
                self._database = wanted
            bound = {key[6:]: value for key, value in arguments.items() if key.startswith("param_")}
            settings = {k: v for k, v in arguments.items() if k not in TRANSPORT and not k.startswith("param_")}
            for key, value in settings.items():
                self._session.query("SET {} = '{}'".format(key, value.replace("'", "\\'")))
            try:
                return self._answer(head, data, arguments.get("default_format", "TabSeparated"), bound)
            finally:
                for key in settings:
                    self._session.query(f"SET {key} = DEFAULT")

    def _answer(self, head: str, data: bytes | None, form: str, bound: dict[str, str]) -> bytes:
        if data is None:
            # chdb takes the format as an argument, a client writes it at the end
            words = head.rstrip().rstrip(";").rsplit(None, 2)
            if len(words) == 3 and words[1].upper() == "FORMAT":
                head, form = words[0], words[2]
            answer = self._session.query(head, form, params=bound or None)
            return bytes(answer.bytes())
        with tempfile.NamedTemporaryFile(suffix=".native") as file:
            file.write(data)
            file.flush()
            target = head[: head.upper().rindex("FORMAT")]
            self._session.query(f"{target} SELECT * FROM file('{file.name}', 'Native')")
        return b""


def split_data(query: bytes) -> tuple[str, bytes | None]:
    """An INSERT's statement and the block behind it; None where no data follows."""
    if not query[:2000].lstrip().upper().startswith(b"INSERT"):
        return query.decode(), None
    at = query.find(b"FORMAT Native")
    if at < 0:
        return query.decode(), None
    end = at + len(b"FORMAT Native")
    return query[:end].decode(), query[end:].lstrip(b" ")[1:]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # head and body leave in one packet, else each answer waits 40 ms for the other side's acknowledgement
    wbufsize = -1
    disable_nagle_algorithm = True
    engine: Engine

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/ping":
            self._reply(200, b"Ok.\n", {})
        else:
            self._run(dict(parse_qsl(address.query, keep_blank_values=True)), b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) if not self._chunked() else self._chunks()
        match self.headers.get("Content-Encoding"):
            case "gzip":
                body = gzip.decompress(body)
            case "deflate":
                body = zlib.decompress(body)
            case "lz4":
                body = lz4.frame.decompress(body)
            case "zstd":
                body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
        self._run(dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True)), body)

    def _chunked(self) -> bool:
        return self.headers.get("Transfer-Encoding", "").lower() == "chunked"

    def _chunks(self) -> bytes:
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _run(self, arguments: dict[str, str], body: bytes) -> None:
        query = arguments.get("query", "").encode()
        query = query + b"\n" + body if query and body else query or body
        try:
            answer = self.engine.run(query, arguments)
        except Exception as error:  # whatever the engine says is the client's to read
            text = str(error)
            code = text[5:].split(".", maxsplit=1)[0].strip() if text.startswith("Code:") else "1000"
            self._reply(404 if code in ("60", "81") else 500, text.encode(), {"X-ClickHouse-Exception-Code": code})
            return
        headers = {"X-ClickHouse-Format": arguments.get("default_format", "Native"), "X-ClickHouse-Timezone": "UTC"}
        self._reply(200, answer, {**headers, "X-ClickHouse-Summary": "{}"})

    def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test reads what the client says."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone, be it killed in the middle, is nothing to tell."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def end_with_starter() -> None:
    """Whoever started this holds its stdin open, be it killed or not."""
    sys.stdin.read()
    os._exit(0)


def main(folder: str) -> None:
    Handler.engine = Engine(folder)
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    threading.Thread(target=end_with_starter, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main(str(Path(sys.argv[1])))
