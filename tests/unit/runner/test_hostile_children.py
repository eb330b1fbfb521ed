"""What a hostile child answers, writes later and takes costs the judge little."""

import os
import re
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from children import CPU, POISON, call, floats, vector

from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.link import Ended, Link
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.protocol import EarlierContents
from kerneltruth.runner.sandbox import ResourceLimits, processes_beside
from kerneltruth.runner.wire import MAGIC, VERSION, encode

pytestmark = pytest.mark.processes

MOST = 300 * 2**20
FORGING = """
import os, socket, stat, time
from kerneltruth.runner.wire import _PREFIX, MAGIC, VERSION

def send(header, *payload):
    for fd in range(3, 64):
        try:
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
        except OSError:
            continue
        wire, size = socket.socket(fileno=os.dup(fd)), sum(map(len, payload))
        head = _PREFIX.pack(MAGIC, VERSION, len(header), size) + header.encode()
        for piece in (head, *payload):
            wire.sendall(piece)

def observed(field, value):
    return '{"~kind": "Observation", "ended": "returned", "' + field + '": ' + value + '}'

MANY = 2**21 - 200

def f(x):
    {body}
    time.sleep(60)
"""
GIGABYTE = "import torch\ndef f(x): return torch.empty(2**30, dtype=torch.uint8)"
ANSWERS = {
    "a length of 2 GB": "send('', b'', bytes(100)) or send('{' * 9, bytes(2**31))",
    "nested lists": "send(observed('results', '[[[' + '[],' * (MANY // 3 - 9) + '[]]]]'))",
    "objects": "send('[' + '{},' * (MANY // 3 - 1) + '{}]')",
    "objects of one key": "send('[' + '{\"a\":1},' * (MANY // 8 - 1) + '{}]')",
    "deep lists": "send('[' * MANY)",
    "deep objects": "send('{\"a\":' * (MANY // 5))",
    "numbers by name": (
        "send(observed('timings', '{' + ','.join('\"%d\":1' % n for n in range(MANY // 11)) + '}'))"
    ),
    "one content many times": (
        "send(observed('buffers', '{' + ','.join("
        "'\"%d\": {\"~bytes\": [1, %d]}' % (n, 2**25 - 2) for n in range(40)) + '}'), bytes(2**25))"
    ),
    "a large number": "send('9' * MANY)",
}
SOURCES = {
    "a gigabyte": GIGABYTE,
    "all of the shared memory": "import torch\ndef f(x): return torch.ones(2**12, 7000).t()",
    **{name: FORGING.replace("{body}", body) for name, body in ANSWERS.items()},
}


def grown(session):
    """The peak of the judge's memory during a call, beyond what it had."""
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmHWM")
    seen = call(session, vector(1.0), deadline_s=10)
    return seen, resident("VmHWM") - before


def resident(which):
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{which}:\s+(\d+) kB", status)[1]) * 1024


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_no_answer_takes_much_of_the_judges_memory(opened, source):
    session = opened(source)
    assert session.loaded.ended == "returned"
    seen, grew = grown(session)

    assert seen.ended in ("died", "flooded", "timeout", "returned")
    assert grew < MOST


@pytest.mark.slow
def test_more_results_than_can_be_right_are_not_received(opened):
    seen = call(opened(GIGABYTE), vector(1.0))

    assert seen.ended == "flooded"
    assert re.fullmatch(r"an answer of \d+ bytes is over 134217764", seen.message)


def test_large_results_that_may_be_right_are_received(opened):
    seen = call(opened("def f(x): return x.expand(2**22).contiguous()"), vector(1.0))

    assert len(seen.results[0].data) == 2**24


def test_a_candidate_that_leaves_no_room_for_inputs_is_to_blame_itself(opened):
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**20, 2**20))\n"
    seen = call(opened(f"{limit}def f(x): return x"), vector(1.0))

    assert (seen.ended, seen.error) == ("raised", "MemoryError")
    assert seen.message.startswith("its process cannot map inputs: ")


LATE = """
import threading, time
def f(x):
    out = x.clone()
    def later():
        time.sleep(0.03)
        {what}.fill_(7.0)
    threading.Thread(target=later).start()
    return out
"""


@pytest.mark.parametrize(
    ("what", "seen"), [("out", (True, ())), ("x", (False, ("x",))), ("x.clone()", (False, ()))]
)
def test_what_is_written_after_a_call_has_returned_is_seen(opened, what, seen):
    session = opened(LATE.replace("{what}", what))
    observation = session.call([vector(1.0)], poison=POISON, deadline_s=10)

    assert floats(observation.results[0].data) == (1.0,)
    assert (observation.results_changed, observation.inputs_changed) == seen


SEES = """
import torch
seen = []
def f(x):
    seen.append((x.data_ptr(), x._version, float(x[0])))
    if float(x[0]) == 2.0:
        raise ValueError
    same = len({pointer for pointer, _, _ in seen}) == 1
    return torch.tensor([value for _, _, value in seen]), torch.tensor(same), torch.tensor(
        [version - seen[0][1] for _, version, _ in seen]
    )
"""


@pytest.mark.parametrize(("in_sight", "versions"), [(False, (0, 0, 0)), (True, (0, 1, 2))])
def test_inputs_change_in_the_same_memory_between_calls(opened, in_sight, versions):
    earlier = tuple(EarlierContents(buffers={"x": vector(value).buffer}) for value in (2.0, 3.0))
    seen = opened(SEES).call(
        [vector(1.0)], poison=POISON, deadline_s=10, earlier=earlier, in_sight=in_sight
    )
    values, same, counts = (result.data for result in seen.results)
    assert floats(values) == (2.0, 3.0, 1.0)
    assert bytes(same) == b"\x01"
    assert struct.unpack("<3q", counts) == versions
    assert floats(seen.buffers["x"]) == (1.0,)


@pytest.mark.parametrize(("ends", "left"), [("thread.join()", 0), ("pass", 1)])
def test_threads_that_run_on_after_a_call_are_counted(opened, ends, left):
    source = LATE.replace("{what}", "x.clone()").replace(
        "threading.Thread(target=later).start()",
        f"thread = threading.Thread(target=later)\n    thread.start()\n    {ends}",
    )
    session = opened(source)
    observation = session.call([vector(1.0)], poison=POISON, deadline_s=10)
    assert (observation.ended, observation.threads_left) == ("returned", left)


def test_processes_that_run_on_are_counted_orphans_among_them(opened):
    session = opened(
        """
        import os, time
        def f(x):
            if os.fork() == 0:
                os.fork()
                time.sleep(60)
            return x.clone()
        """
    )
    call(session, vector(1.0))
    time.sleep(0.2)
    assert processes_beside(session.pid) == 2


@pytest.mark.parametrize(
    "returned",
    [
        "type('T', (tuple,), {'__iter__': lambda self: iter((x,))})()",
        "torch.Tensor._make_subclass(type('S', (torch.Tensor,), {}), x)",
        "type('L', (list,), {})([x])",
    ],
)
def test_what_only_looks_like_a_result_is_none(opened, returned):
    (result,) = call(opened(f"import torch\ndef f(x): return {returned}"), vector(1.0)).results

    assert result.type in "TSL"


SMALL = ResourceLimits(processes=20, memory=2**28, disk=2**24, files=200)
GREEDY = {
    "ran more than 20 processes": "while True: os.fork()",
    "took more than 256 MiB of memory, with all its processes": (
        "for _ in range(4):\n        if os.fork() == 0: kept = bytes(10**8).replace(b'\\0', b'1'); "
        "time.sleep(60)"
    ),
    "wrote more than 16 MiB of files": (
        "for n in range(20):\n        with open(str(n), 'wb') as file: file.write(bytes(2**20))"
    ),
    "wrote more than 200 files": "for n in range(300): open(f'{n}', 'w').close()",
}


@pytest.fixture(scope="module")
def small_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def small(small_cache):
    limits = replace(SMALL, kept=2**20)
    with Runner(device=CPU, limits=limits, cache_root=small_cache) as runner:
        runner.versions()
        yield runner


def opened_in(runner, source):
    candidate = read_candidate(source, "f.py", task_names=("f",), task="f")
    return runner.open(candidate)


@pytest.mark.slow
@pytest.mark.parametrize(("message", "body"), GREEDY.items(), ids=GREEDY)
def test_what_a_child_and_all_that_it_starts_take_is_limited(small, message, body):
    source = f"import os, time\ndef f(x):\n    {body}\n    time.sleep(30)"
    start = time.monotonic()
    with opened_in(small, source) as session:
        seen = call(session, vector(1.0))
    if seen.ended == "raised":
        # A control group refuses to start one more.
        assert (seen.error, body) == ("BlockingIOError", "while True: os.fork()")
    else:
        # It counts threads, too.
        assert (seen.ended, seen.message.removesuffix(" and threads")) == ("flooded", message)
    assert time.monotonic() - start < 60
    with opened_in(small, "def f(x): return x") as session:
        assert call(session, vector(1.0)).ended == "returned"


@pytest.mark.slow
@pytest.mark.parametrize(("size", "stays"), [(2**10, True), (2**22, False)])
def test_a_large_compile_cache_does_not_stay_on_the_disk(small, small_cache, size, stays):
    source = (
        "import os\ndef f(x):\n    place = os.environ['TRITON_CACHE_DIR']\n"
        f"    os.makedirs(place)\n    open(place + '/it', 'wb').write(bytes({size}))"
    )
    with opened_in(small, source) as session:
        assert call(session, vector(1.0)).ended == "returned"
        made = small_cache / session.candidate.sha256 / "triton" / "it"
        assert made.exists()
    assert made.exists() is stays


@pytest.fixture
def ends():
    """A link whose messages may pass for 0.2 s more, and the other ends: channel, wire, output."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wire, far = socket.socketpair()
    output, printed = os.pipe()
    link = Link(wire, ours, output, arrival_s=0.2)
    yield link, theirs, far, printed
    link.close()
    theirs.close()
    far.close()
    os.close(printed)


def ending_of(link, deadline_s):
    start = time.monotonic()
    with pytest.raises(Ended) as end:
        link.receive(deadline=start + deadline_s)
    assert time.monotonic() - start < 10
    return end.value.observation


@pytest.mark.parametrize(
    "packet",
    [
        *(b"{", b"[]", b"7", b"[" * 4000),
        *(b'{"child": "1"}', b'{"child": -1}', b'{"signal": 1e999}'),
        *(b'{"gone": true}', b'{"over": {}}'),
    ],
)
def test_a_packet_that_no_warden_sends_loses_the_child(ends, packet):
    link, channel, _, _ = ends
    channel.send(packet)

    assert ending_of(link, 5).message == "the warden of the child spoke nonsense"


def test_a_child_whose_warden_ends_without_a_reason_is_lost(ends):
    link, channel, _, _ = ends
    channel.send(b'{"gone": 1}')

    seen = ending_of(link, 5)
    assert (seen.ended, seen.message) == ("lost", "the warden of the child is gone")


def dripping(descriptor, data):
    """A thread that writes byte by byte, until nobody reads.

    Its descriptor is its own: the number of one that the test closes is soon another file's.
    """
    own = os.dup(descriptor)

    def drip():
        with suppress(OSError):
            while True:
                os.write(own, data)
        os.close(own)

    return threading.Thread(target=drip, daemon=True)


@pytest.mark.parametrize("end", ["an answer", "output"])
def test_what_comes_byte_by_byte_keeps_no_call_beyond_its_deadline(ends, end):
    link, _, wire, printed = ends
    wire.send(struct.pack("<4sHIQ", MAGIC, VERSION, 2**20, 0))
    dripping(wire.fileno() if end == "an answer" else printed, b" ").start()

    assert ending_of(link, 0.2).ended == "timeout"


def test_an_answer_that_waited_for_its_reader_counts(ends):
    link, _, wire, _ = ends
    wire.send(encode(Observation(ended="raised")))
    time.sleep(0.3)

    assert link.receive(deadline=time.monotonic() - 0.25).ended == "raised"


@pytest.mark.slow
def test_the_judges_own_programs_are_not_limited_so(small):
    source = (
        "import os, time\ndef f(x):\n    for n in range(300): open(f'{n}', 'w').close()\n"
        "    time.sleep(1.2)\n    return x"
    )
    candidate = read_candidate(source, "f.py", task_names=("f",), task="f")
    with small.open(replace(candidate, trusted=True)) as session:
        assert call(session, vector(1.0)).ended == "returned"
