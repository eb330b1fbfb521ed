"""Endpoints on loopback, and the requests that they receive."""

import asyncio
import inspect

import pytest

from chat_server import ChatServer
from kerneltruth.generate.account import Account, Budget, SpendingLimits
from kerneltruth.generate.chat import Message, Reply, Request, Sampling, Usage
from kerneltruth.generate.endpoint import Endpoint
from kerneltruth.generate.key import Key
from kerneltruth.generate.request_pool import Pace, RequestPool, RetryPolicy

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


class BlockingEndpoint:
    """An endpoint whose calls are waited for."""

    def __init__(self, endpoint, loop):
        self._endpoint, self._loop = endpoint, loop

    def call(self, request):
        return self._loop.run(self._endpoint.call(request))

    def close(self):
        self._loop.run(self._endpoint.close())


@pytest.fixture
def endpoint():
    """The endpoint of a server; closed at the end."""
    made = []

    with asyncio.Runner() as loop:

        def make(server, **options):
            options = {"sampling": Sampling(), "timeout_s": 10.0, **options}
            model = Endpoint(name="some-model", url=server.url, key=Key(KEY), **options)
            made.append(BlockingEndpoint(model, loop))
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
        self.requests = []

    async def call(self, request):
        self.requests.append(request)
        answer = self.script(len(self.requests) - 1, request)
        answer = await answer if inspect.isawaitable(answer) else answer
        if isinstance(answer, str):
            usage = Usage(prompt=10, completion=5)
            return Reply(text=answer, finish="stop", usage=usage)
        return answer

    async def close(self):
        pass


@pytest.fixture
def scripted():
    return Scripted


@pytest.fixture
def pool_of():
    """A pool that asks a model, and the outcomes that it has recorded."""

    def make(model, *, limits=None, account=None, **options):
        recorded = []
        settings = {
            "budget": Budget(limits or SpendingLimits(reply_tokens=10), account or Account()),
            "pace": Pace(),
            "retry": RetryPolicy(retries=2, first_s=0.001),
            "concurrency": 1,
            "record": recorded.append,
            **options,
        }
        pool = RequestPool(model, **settings)
        pool.recorded = recorded
        make.made.append(pool)
        return pool

    make.made = []
    yield make
    for pool in make.made:
        pool.close()
