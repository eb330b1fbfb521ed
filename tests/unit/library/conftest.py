"""Servers that stay warm from one test to the next: each takes three imports of torch to start."""

import pytest

# Before pytest runs within pytest, which forgets what is imported meanwhile.
import kerneltruth.library.checking
import kerneltruth.library.judge
from kerneltruth.library.link import ServerLink


class _Servers:
    """Makes links, keeps them open when a judge closes its own, and ends them."""

    def __init__(self):
        self._links = {}

    def __call__(self, *settings):
        link = self._links.get(settings)
        if link is None or not link.usable:
            link = self._links[settings] = ServerLink(*settings)
            link.end, link.close = link.close, lambda: None
        return link

    def end(self):
        for link in self._links.values():
            link.end()


@pytest.fixture(scope="session")
def _servers():
    servers = _Servers()
    yield servers
    servers.end()


@pytest.fixture(scope="module")
def warm_servers(_servers):
    """Judges of one device and as many workers share a server, which has its own tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kerneltruth.library.judge, "ServerLink", _servers)
        yield
