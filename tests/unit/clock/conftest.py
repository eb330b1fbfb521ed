import pytest
from timed_children import Clock


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass as the children's scripts say."""
    made = Clock()
    made.use(monkeypatch)
    return made
