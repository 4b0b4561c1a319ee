"""A small HTTP server to try the transport against. It plays connections and answers, never a scheduler."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kubectl_ghost.cluster.kubeconfig import Target
from kubectl_ghost.cluster.transport import Transport


@dataclass
class Seen:
    """A request as it arrived. `connection` numbers the connections."""

    method: str
    path: str
    headers: dict[str, list[str]]
    body: bytes
    connection: int

    def json(self):
        return json.loads(self.body)


@dataclass
class Answer:
    """What to answer. `lines` are sent in chunks, one each; `hang_up` closes the connection afterwards, unannounced.

    `cut_off` closes it without an answer, or after the lines, before the answer has ended.
    """

    body: object = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    lines: list[object] | None = None
    hang_up: bool = False
    cut_off: bool = False


class FakeServer:
    """Answers each request with what `handle` makes of it, and remembers all requests."""

    def __init__(self):
        self.seen: list[Seen] = []
        self.handle: Callable[[Seen], Answer] = lambda _: Answer()
        self.connections = 0
        self.open = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                fake.connections += 1
                self.number = fake.connections
                fake.open.append(self)

            def log_message(self, *_):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                names = {name: self.headers.get_all(name) for name in self.headers}
                seen = Seen(self.command, self.path, names, body, self.number)
                fake.seen.append(seen)
                fake.send(self, fake.handle(seen))

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                """A client that hangs up is part of the tests."""

        self.http = Server(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def send(self, handler, answer):
        handler.close_connection = answer.hang_up
        if answer.cut_off:
            handler.close_connection = True
            if answer.lines is None:
                return
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        if answer.lines is not None:
            self.send_lines(handler, answer.lines)
            if not answer.cut_off:
                handler.wfile.write(b"0\r\n\r\n")
            return
        body = answer.body
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def send_lines(self, handler, lines):
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for line in lines:
            data = json.dumps(line).encode() + b"\n"
            handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def hang_up(self):
        """Close every connection, as a server does that restarts."""
        for handler in self.open:
            handler.connection.shutdown(2)
        self.open.clear()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server():
    fake = FakeServer()
    yield fake
    fake.close()


@pytest.fixture
def answer():
    """The class of answers, for tests to make some."""
    return Answer


@pytest.fixture
def status():
    """Make an error answer as the API server words it."""

    def make(code: int, reason: str, message: str, headers: dict[str, str] | None = None, **details) -> Answer:
        body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
        return Answer(body, code, headers or {})

    return make


@pytest.fixture
def connect(server):
    """Make a transport to the fake server."""
    made = []

    def make(user=None, cluster=None, **options):
        target = Target("ctx", server.url, "default", user=user or {}, cluster=cluster or {})
        options.setdefault("environ", {})
        options.setdefault("sleep", lambda _: None)
        made.append(Transport(target, **options))
        return made[-1]

    yield make
    for transport in made:
        transport.close()
