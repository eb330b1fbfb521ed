import pytest
from timed_children import Clock


@pytest.fixture
def clock():
    """Seconds that pass as the children's scripts say."""
    return Clock()
