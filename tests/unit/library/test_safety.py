"""A judge is safe where people work: threads, asyncio, forks, interrupts, and the exit."""

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import kerneltruth as kt

pytestmark = pytest.mark.processes

RIGHT = "import torch\n\ndef relu(x):\n    return x.clamp(min=0)\n"
WRONG = "import torch\n\ndef relu(x):\n    return x.clamp(min=1)\n"
SLOW = "import time\ntime.sleep(60)\n" + RIGHT
FEW = {"task": "relu", "cases": 4}
# A judge that compiles for no GPU starts in two thirds of the time: `targets=()`.
# In every way.
USES = {
    "check": "judge.check(RIGHT, **FEW)",
    "check_many": "list(judge.check_many([RIGHT], **FEW))",
    "acheck": "asyncio.run(judge.acheck(RIGHT, **FEW))",
    "acheck_many": "asyncio.run(anext(judge.acheck_many([RIGHT], **FEW)))",
    "time": "judge.time(RIGHT, task='relu')",
    "with": "judge.__enter__()",
}


@pytest.fixture(scope="module")
def judge():
    with kt.Judge(device="cpu", workers=2, seed=1) as made:
        yield made


@pytest.fixture(scope="module")
def alone():
    """A judge with one worker, and its server, for what is done to them; the last test ends it."""
    before = servers()
    with kt.Judge(device="cpu", workers=1, targets=()) as made:
        made.check(RIGHT, **FEW)
        (server,) = servers() - before
        yield made, server


def script(text, *, timeout=60, **how):
    """Run a program that uses the library; return its end and what it printed."""
    program = "import os, subprocess, sys, threading, time\nfrom pathlib import Path\n"
    program += "import kerneltruth as kt\n"
    program += "".join(inspect.getsource(helper) for helper in (alive, below, servers))
    program += f"RIGHT = {RIGHT!r}\nSLOW = {SLOW!r}\nFEW = {FEW!r}\nUSES = {[*USES.values()]!r}\n"
    program += textwrap.dedent(text)
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **how,
    )


def alive(pid):
    """Whether a process runs; one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def below(pid):
    """The processes below another: its id, theirs, and their arguments."""
    found = subprocess.run(
        ["ps", "-ww", "-eo", "ppid,pid,args"], capture_output=True, text=True, check=True
    )
    return [line for line in found.stdout.splitlines() if line.split(None, 1)[0] == str(pid)]


def servers():
    """The processes of this process's judges."""
    lines = [line for line in below(os.getpid()) if "kerneltruth.library.server" in line]
    return {pid for line in lines if alive(pid := int(line.split()[1]))}


def eventually(what):
    """Return what a function returns once it is something; it takes seconds at most."""
    until = time.monotonic() + 20
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.01)
    return found


@pytest.mark.slow
def test_threads_share_a_judge(judge):
    found = {}

    def work(number):
        found[number] = judge.check(RIGHT if number % 2 else WRONG, **FEW).passed

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == {n: bool(n % 2) for n in range(8)}


@pytest.mark.slow
def test_no_thread_is_left_when_no_question_is_open(judge):
    judge.check(RIGHT, **FEW)
    until = time.monotonic() + 5
    while any(t.name == "kerneltruth-answers" for t in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.slow
def test_asyncio_judges_side_by_side(judge):
    async def both():
        return await asyncio.gather(judge.acheck(RIGHT, **FEW), judge.acheck(WRONG, **FEW))

    assert [report.passed for report in asyncio.run(both())] == [True, False]


def test_an_async_stream_names_its_candidates(judge):
    async def stream():
        pairs = [("right", RIGHT), ("wrong", WRONG)]
        return {r.name: r.passed async for r in judge.acheck_many(pairs, **FEW)}

    assert asyncio.run(stream()) == {"right": True, "wrong": False}


def test_candidates_may_come_one_by_one_from_a_coroutine(judge):
    async def answers():
        yield "first", RIGHT
        await asyncio.sleep(0.5)
        yield "second", WRONG

    async def stream():
        seen, start = {}, time.monotonic()
        async for report in judge.acheck_many(answers(), **FEW):
            seen[report.name] = report.index, report.passed, time.monotonic() - start
        return seen

    seen = asyncio.run(stream())
    assert {name: said[:2] for name, said in seen.items()} == {
        "first": (0, True),
        "second": (1, False),
    }
    assert seen["first"][2] < 0.5 < seen["second"][2]


def test_an_async_stream_that_is_left_drops_the_rest(judge):
    async def first_of_many():
        async for report in judge.acheck_many([RIGHT, SLOW, SLOW, SLOW], **FEW):
            return report.passed

    assert asyncio.run(first_of_many())
    assert judge.check(RIGHT, **FEW).passed


@pytest.mark.slow
def test_a_cancelled_check_frees_its_judge(alone):
    async def cancelled(judge):
        slow = asyncio.create_task(judge.acheck(SLOW, **FEW))
        await asyncio.sleep(0.5)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return await judge.acheck(RIGHT, **FEW)

    start = time.monotonic()
    assert asyncio.run(cancelled(alone[0])).passed
    assert time.monotonic() - start < 20


@pytest.mark.slow
def test_a_stream_yields_what_ends_first_and_keeps_places(judge):
    late = "import time\ntime.sleep(2)\n" + RIGHT
    reports = list(judge.check_many([late, RIGHT, "def (:\n"], **FEW))

    assert [r.index for r in reports][-1] == 0
    assert {r.index: r.verdict for r in reports} == {0: "pass", 1: "pass", 2: "compile_error"}


def test_candidates_have_tasks_of_their_own(judge):
    mixed = [
        kt.NamedCandidate(RIGHT, task="relu", name="a"),
        kt.NamedCandidate("import torch\ndef gelu(x):\n    return x\n", task="gelu", name="b"),
    ]
    reports = {r.name: r for r in judge.check_many(mixed, cases=4)}

    assert (reports["a"].passed, reports["b"].passed) == (True, False)
    assert reports["b"].task == "gelu"


def test_a_closed_stream_leaves_the_judge_usable(judge):
    stream = judge.check_many([SLOW, SLOW, RIGHT], **FEW)
    stream.close()

    assert judge.check(RIGHT, **FEW).passed


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_judge_cannot_be_used_after_it_is_closed(use):
    judge = kt.Judge(device="cpu")
    judge.close()

    with pytest.raises(kt.UserError, match="this Judge is closed; make another"):
        eval(use)


@pytest.mark.slow
def test_a_judge_that_is_closed_while_it_judges_says_so():
    with kt.Judge(device="cpu", workers=1, targets=()) as judge:
        threading.Timer(1.0, judge.close).start()
        with pytest.raises(kt.UserError, match="closed before the answer came; keep it open"):
            judge.check(SLOW, **FEW)


@pytest.mark.slow
def test_a_judge_that_is_closed_while_its_server_starts_leaves_none():
    before = servers()
    judge = kt.Judge(device="cpu", workers=1, targets=())
    starting = threading.Thread(target=judge.__enter__)
    starting.start()
    (server,) = eventually(lambda: servers() - before)
    judge.close()
    starting.join()

    assert not alive(server)
    with pytest.raises(kt.UserError, match="this Judge is closed"):
        judge.check(RIGHT, **FEW)


@pytest.mark.slow
def test_a_killed_process_between_judge_and_kernels_is_replaced(alone):
    judge, server = alone
    (zygote,) = [line for line in below(server) if "runner.zygote" in line]
    os.kill(int(zygote.split()[1]), signal.SIGKILL)

    assert judge.check(RIGHT, **FEW).passed


@pytest.mark.slow
def test_a_dead_server_is_one_clear_line(alone):
    judge, server = alone
    os.kill(server, signal.SIGKILL)
    assert eventually(lambda: not alive(server))
    with pytest.raises(kt.EnvironmentFault, match="the judging server is gone: killed by SIGKILL"):
        judge.check(RIGHT, **FEW)


@pytest.fixture(scope="module")
def shared():
    """A program that judges with the shared server, kills it, and judges again: what it says."""
    ran = script("""
        print("kerneltruth.library" in sys.modules)
        report = kt.check(RIGHT, device="cpu", **FEW)
        str(report), repr(report), report.to_json(), report.findings
        print("torch" in sys.modules, "numpy" in sys.modules)
        (server,) = servers()
        os.kill(server, 9)
        while alive(server):
            time.sleep(0.01)
        print(kt.check(RIGHT, device="cpu", **FEW).verdict)
    """)
    assert (ran.stderr, ran.returncode) == ("", 0)
    return ran.stdout.splitlines()


@pytest.mark.slow
def test_a_dead_shared_server_is_replaced(shared):
    assert shared[2:] == ["pass"]


@pytest.mark.slow
def test_neither_the_import_nor_a_report_needs_torch(shared):
    assert shared[:2] == ["False", "False False"]


def test_a_device_that_is_not_there_is_one_clear_line():
    with (
        pytest.raises(kt.EnvironmentFault, match=r"this machine shows \d CUDA devices"),
        kt.Judge(device="cuda:7"),
    ):
        pass


@pytest.mark.parametrize("device", ["tpu", "cuda:x"])
def test_a_device_that_nothing_is_called_is_the_users_mistake(device):
    with pytest.raises(kt.UserError, match="must be auto, cpu, cuda"):
        kt.check(RIGHT, device=device, **FEW)


@pytest.mark.slow
def test_a_forked_child_judges_with_a_server_of_its_own():
    ran = script("""
        judge = kt.Judge(device="cpu", workers=1, targets=())
        judge.check(RIGHT, **FEW)
        kt.check(RIGHT, device="cpu", **FEW)
        sys.stdout.flush()
        if os.fork() == 0:
            import asyncio
            for use in USES:
                try:
                    eval(use)
                except kt.UserError as error:
                    print(" ".join(str(error).split()[:3]), end=", ")
            judge.close()
            print("child", kt.check(RIGHT, device="cpu", **FEW).verdict)
            sys.exit()
        print("ended", os.wait()[1])
        again = kt.check(RIGHT, device="cpu", **FEW)
        print("parent", judge.check(RIGHT, **FEW).verdict, again.verdict)
    """)

    refused = "this Judge belongs, " * len(USES)
    assert ran.stdout.splitlines() == [f"{refused}child pass", "ended 0", "parent pass pass"]
    assert ran.stderr == ""


@pytest.mark.slow
@pytest.mark.sampled(by=lambda use: [("used", use != ""), ("shared", "kt.check" in use)])
@pytest.mark.parametrize(
    "use",
    [
        "",
        "kt.Judge(device='cpu', targets=()).__enter__()",
        "judge = kt.Judge(device='cpu', targets=()); judge.check(RIGHT, **FEW)",
        "kt.check(RIGHT, device='cpu', **FEW)",
        "next(kt.Judge(device='cpu', targets=()).check_many([RIGHT, SLOW], **FEW))",
    ],
)
def test_the_interpreter_ends_at_once_silently_and_leaves_nothing(use):
    ran = script(
        f"{use}\n"
        "import atexit\n"
        "ended = time.monotonic()\n"
        "print(os.getpid(), flush=True)\n"
        # Registered last, so that it runs before what the library does at the exit.
        "atexit.register(lambda: os.write(1, b'exit\\n'))\n"
    )

    pid, end = ran.stdout.split()
    assert (end, ran.stderr, ran.returncode) == ("exit", "", 0)
    assert below(pid) == []


@pytest.mark.slow
def test_a_server_ends_with_its_caller_even_while_a_forked_child_lives_on():
    ran = script("""
        judge = kt.Judge(device="cpu", workers=1, targets=())
        judge.check(RIGHT, **FEW)
        print(*servers(), flush=True)
        if os.fork() == 0:
            os.close(1), os.close(2)
            time.sleep(20)
        os._exit(0)
    """)

    server = int(ran.stdout)
    assert eventually(lambda: not alive(server))


@pytest.mark.slow
def test_an_interrupt_ends_the_check_and_not_the_judge():
    ran = script("""
        import signal
        # A shell starts what runs in its background with the signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        judge = kt.Judge(device="cpu", workers=1, targets=())
        judge.check(RIGHT, **FEW)
        before = signal.getsignal(signal.SIGINT)
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            judge.check(SLOW, **FEW)
        except KeyboardInterrupt:
            print("interrupted")
        print(signal.getsignal(signal.SIGINT) is before, judge.check(RIGHT, **FEW).verdict)
    """)

    assert ran.stdout.splitlines() == ["interrupted", "True pass"]
    assert ran.stderr == ""


@pytest.mark.slow
def test_nothing_of_the_caller_changes():
    ran = script("""
        import signal
        import torch
        torch.set_num_threads(3)
        def state():
            handlers = [signal.getsignal(n) for n in (2, 15, 17)]
            return dict(os.environ), handlers, torch.get_num_threads(), os.getcwd(), sys.path[:]
        before = state()
        torch.ones(200, 200) @ torch.ones(200, 200)
        print(kt.check(RIGHT, device="cpu", **FEW).verdict, state() == before)
    """)

    assert (ran.stdout, ran.stderr) == ("pass True\n", "")


@pytest.mark.slow
def test_a_caller_may_ignore_that_its_children_end():
    ran = script("""
        import signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        with kt.Judge(device="cpu", workers=1, targets=()) as judge:
            print(judge.check(RIGHT, **FEW).verdict)
            (server,) = servers()
            for line in below(server):
                if "library.server" in line:
                    os.kill(int(line.split()[1]), signal.SIGKILL)
            print(judge.check(RIGHT, **FEW).verdict)
    """)

    assert (ran.stdout, ran.stderr, ran.returncode) == ("pass\npass\n", "", 0)


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_not_run_again(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import kerneltruth as kt\n"
        + RIGHT
        + "print(kt.check(relu, device='cpu', cases=4).verdict)\n"
    )
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)

    assert (ran.stdout, ran.stderr) == ("pass\n", "")


@pytest.fixture
def shell():
    found = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    yield found
    found.reset()


@pytest.mark.slow
def test_a_task_of_a_cell_of_ipython_is_the_task(shell):
    shell.run_cell("import kerneltruth as kt\nFACTOR = 2\ndef twice(x):\n    return FACTOR * x\n")
    shell.run_cell(
        "ROLES = {'M': 'batch', 'N': 'spatial'}\n"
        "DOUBLED = kt.task('doubled(x[M, N])', dims=ROLES, reference=twice)\n"
        "LATER = kt.task('later(x[M, N])', dims=ROLES, reference=lambda x: x + 1)\n"
        "raise SystemExit\n"
    )
    few = {"device": "cpu", "cases": 4}
    kernel = "def mine(x): return x + x"

    assert kt.check(kernel, task=shell.user_ns["DOUBLED"], **few).task == "notebook/doubled"
    assert kt.check(kernel, task=shell.user_ns["DOUBLED"], **few).passed
    assert kt.check(kernel, task=shell.user_ns["LATER"], **few).kind == "value"


def test_a_task_of_a_cell_without_a_name_is_one_line(shell):
    shell.run_cell(
        "import kerneltruth as kt\nfound = []\n"
        "found.append(kt.task('f(x[M])', dims={'M': 'batch'}, reference=lambda x: x))\n"
    )
    with pytest.raises(kt.UserError, match="line 3 of its cell gives it no name; assign what"):
        kt.check("def f(x): return x", task=shell.user_ns["found"][0], device="cpu")


def test_a_cell_of_ipython_is_judged(shell):
    shell.run_cell("import torch")
    shell.run_cell("def relu(x):\n    return torch.clamp(x, min=0)\n")

    assert kt.check(shell.user_ns["relu"], device="cpu", cases=4).passed
