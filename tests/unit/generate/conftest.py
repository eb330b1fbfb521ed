"""Endpoints on loopback, and what is asked of them."""

import threading

import pytest

from chat_server import ChatServer
from kerneltruth.generate.account import Account, Budget, SpendingLimits
from kerneltruth.generate.asking import Desk, Patience
from kerneltruth.generate.chat import Message, Reply, Request, Sampling, Usage
from kerneltruth.generate.endpoint import Endpoint
from kerneltruth.generate.key import Key
from kerneltruth.generate.pace import Pace

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def serve():
    """Start a server with a script; closed at the end."""
    servers = []

    def start(script):
        servers.append(ChatServer(script if callable(script) else lambda *_: script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def endpoint():
    """The endpoint of a server; closed at the end."""
    made = []

    def make(server, **options):
        options = {"sampling": Sampling(), "timeout_s": 10.0, **options}
        made.append(Endpoint(name="some-model", url=server.url, key=Key(KEY), **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def request_of():
    """A request for a task."""

    def make(task="suite/relu", sample=0, round=0, text="Write relu."):
        messages = (Message(role="system", content="s"), Message(role="user", content=text))
        return Request(task=task, sample=sample, round=round, messages=messages)

    return make


class Scripted:
    """A model that answers by a script: a function from the number of a call and its request."""

    label = "scripted"

    def __init__(self, script):
        self.script = script if callable(script) else lambda *_: script
        self.asked = []
        self._lock = threading.Lock()

    def call(self, request):
        with self._lock:
            number = len(self.asked)
            self.asked.append(request)
        answer = self.script(number, request)
        if isinstance(answer, str):
            usage = Usage(prompt=10, completion=5)
            return Reply(text=answer, finish="stop", usage=usage)
        return answer

    def close(self):
        pass


@pytest.fixture
def scripted():
    return Scripted


@pytest.fixture
def desk_of():
    """A desk that asks a model, and the outcomes that it has recorded."""

    def make(model, *, limits=None, account=None, **options):
        recorded = []
        settings = {
            "budget": Budget(limits or SpendingLimits(reply_tokens=10), account or Account()),
            "pace": Pace(),
            "patience": Patience(retries=2, first_s=0.001),
            "workers": 1,
            "record": recorded.append,
            **options,
        }
        desk = Desk(model, **settings)
        desk.recorded = recorded
        return desk

    return make
