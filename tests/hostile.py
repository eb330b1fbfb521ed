"""Documents that nobody would write, and what reading them takes."""

import copy
import json
import tracemalloc
from contextlib import contextmanager

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# What reading a file of kilobytes may take.
MOST = 32 * 2**20

LEAVES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    *(st.just("\x1b[2J"), st.just("\ud800"), st.just("../../x"), st.just(10**400)),
)
VALUES = st.recursive(
    LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3)
)
FUZZED = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def places(value, path=()):
    """Where a document holds a value."""
    yield path
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*path, key))


@st.composite
def changed(draw, document):
    """A document with some of its values replaced, left out or added to."""
    made = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        known = [path for path in places(made) if path]
        if not known:
            break
        path, holder = draw(st.sampled_from(known)), made
        for key in path[:-1]:
            holder = holder[key]
        match draw(st.sampled_from(("replace", "drop", "add"))):
            case "replace":
                holder[path[-1]] = draw(VALUES)
            case "drop":
                del holder[path[-1]]
            case _ if isinstance(holder, dict):
                holder[draw(st.text(max_size=6))] = draw(VALUES)
    return made


@st.composite
def texts(draw, document):
    """The bytes of a changed document, whole or with some of them changed or cut off."""
    data = bytearray(json.dumps(draw(changed(document))).encode())
    if draw(st.booleans()):
        for _ in range(draw(st.integers(0, 4))):
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data)


class Reading:
    """How reading a hostile document ended.

    Attributes:
        refusal: the message of the exception that refused it; None if it was read.
        peak: how many bytes that took.
    """

    refusal = None
    peak = 0

    @property
    def problems(self):
        """What nobody should see: a refusal of several lines, or much memory."""
        refusal = [self.refusal] if "\n" in (self.refusal or "") else []
        return refusal + ([f"took {self.peak} bytes"] if self.peak >= MOST else [])


@contextmanager
def reading(*refusals):
    """Read within the block; exceptions of these types are refusals."""
    made = Reading()
    tracemalloc.start()
    try:
        yield made
    except refusals as error:
        made.refusal = str(error)
    finally:
        made.peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
