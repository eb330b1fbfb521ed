"""A real HTTP server on loopback that speaks the chat completions API, by a script.

A script is a function from the number of a call, from 0, and its body to what is sent back: a text
(the answer), or a `ServedResponse` for everything else that endpoints do.
"""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class ServedResponse:
    """A response as it goes over the wire."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict = field(default_factory=dict)
    kind: str = "application/json"
    after_s: float = 0.0
    cut: bool = False
    drip_s: float = 0.0


def completion(text, *, finish="stop", usage=(100, 20), **message):
    """The body of a response with an answer."""
    data = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served-model",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
    }
    if usage is not None:
        prompt, said = usage
        data["usage"] = {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": 0}
    return json.dumps(data).encode()


def events(pieces, *, finish="stop", usage=(100, 20), done=True):
    """The body of a response that is streamed."""
    chunks = [{"choices": [{"index": 0, "delta": {"content": p}}]} for p in pieces]
    if finish is not None:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
        chunks.append({"choices": [], "usage": counts})
    lines = [f"data: {json.dumps({'id': 'x', 'model': 'served-model', **c})}\n\n" for c in chunks]
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


def streamed(*pieces, **options):
    return ServedResponse(body=events(pieces, **options), kind="text/event-stream")


def error(status, message="no", code=None, **headers):
    body = json.dumps({"error": {"message": message, "code": code, "type": None}}).encode()
    return ServedResponse(
        status=status, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


class ChatServer:
    """Serves until it is closed; remembers what it was asked, with which headers and when."""

    def __init__(self, script):
        self.script = script
        self.bodies = []
        self.headers = []
        self.times = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length))
                server.answer(self, body)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                """A client that hung up is what some tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler, body):
        with self._lock:
            number = len(self.bodies)
            self.bodies.append(body)
            self.headers.append({k.lower(): v for k, v in handler.headers.items()})
            self.times.append(time.monotonic())
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            sent = self.script(number, body)
            if handler.path != "/v1/chat/completions":
                sent = error(404, f"no route {handler.path}")
            if isinstance(sent, str):
                sent = ServedResponse(body=completion(sent))
            _send(handler, sent)
        finally:
            with self._lock:
                self._at_once -= 1


def _send(handler, sent):
    time.sleep(sent.after_s)
    handler.send_response(sent.status)
    handler.send_header("Content-Type", sent.kind)
    handler.send_header("Content-Length", str(len(sent.body)))
    for name, value in sent.headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    if sent.drip_s:
        for i in range(len(sent.body)):
            handler.wfile.write(sent.body[i : i + 1])
            handler.wfile.flush()
            time.sleep(sent.drip_s)
    elif sent.cut:
        handler.wfile.write(sent.body[: len(sent.body) // 2])
        handler.wfile.flush()
        handler.close_connection = True
        handler.connection.close()
    else:
        handler.wfile.write(sent.body)
