"""Judge kernels in pytest: the mark `kernel`, the fixture `judge`, `--kt-cases` and `--kt-seed`.

pytest imports this module at its start, so it imports the library when a kernel is judged.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import pytest

if TYPE_CHECKING:
    from kerneltruth.library.candidates import Judgeable
    from kerneltruth.library.judge import Judge
    from kerneltruth.library.options import CheckOptions
    from kerneltruth.library.report import Report

    class TestedOptions(CheckOptions, total=False):
        """Options of the mark and the fixture; `device` is that of the judge."""

        device: str


R = TypeVar("R")
# Whether a marked test returns its kernel, since it takes no `judge`.
_RETURNS = pytest.StashKey[bool]()
_SEED = pytest.StashKey[int]()
_FILES: tuple[Literal["reference", "tasks"], ...] = ("reference", "tasks")
_SEED_BITS = 32
_MARK = (
    "kernel(task, reference, tasks, contract, cases, device, ...): judge the kernel that the test "
    "returns, or gives to the fixture `judge`."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("kerneltruth", "kernels (kerneltruth)")
    group.addoption("--kt-cases", metavar="N", help="Judge each kernel on N cases.")
    group.addoption("--kt-seed", metavar="N", help="Seed of all cases; by default it is drawn.")


def pytest_configure(config: pytest.Config) -> None:
    """Check the options, and draw a seed that the processes of pytest-xdist share.

    Raises:
        pytest.UsageError: an option is wrong.
    """
    config.addinivalue_line("markers", _MARK)
    config.option.kt_cases = _number("--kt-cases", config.option.kt_cases, least=1)
    config.option.kt_seed = _number("--kt-seed", config.option.kt_seed, least=0)
    shared = getattr(config, "workerinput", {}).get("kt_seed")
    config.stash[_SEED] = secrets.randbits(_SEED_BITS) if shared is None else shared


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the seed to a process of pytest-xdist."""
    node.workerinput["kt_seed"] = node.config.stash[_SEED]


def _number(option: str, given: str | int | None, *, least: int) -> int | None:
    if given is None or isinstance(given, int):
        return given
    if not given.isdecimal() or int(given) < least:
        raise pytest.UsageError(f"{option} {given}: must be a whole number, at least {least}")
    return int(given)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Prepare a marked test that takes no `judge` to be judged by what it returns."""
    if not isinstance(item, pytest.Function) or item.get_closest_marker("kernel") is None:
        return
    item.stash[_RETURNS] = not {"judge", "_kernel_judge"}.intersection(item.fixturenames)
    if item.stash[_RETURNS]:
        item.fixturenames.append("_kernel_judge")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Refuse a mark that would have no effect: pytest does not call such methods itself."""
    if not item.stash.get(_RETURNS, False):
        return
    from unittest import TestCase

    if issubclass(getattr(item, "cls", None) or object, TestCase):
        pytest.fail(
            f"{item.name} has the mark kernel and is a method of unittest.TestCase, which cannot "
            "return a kernel; write a function",
            pytrace=False,
        )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Judge the kernel that a marked test returns."""
    if not pyfuncitem.stash.get(_RETURNS, False):
        return None
    taken = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    judge: KernelJudge = pyfuncitem.funcargs["_kernel_judge"]  # type: ignore[assignment]
    kernel = pyfuncitem.obj(**taken)
    wrong = ""
    if kernel is not None:
        wrong = _said_of(kernel, judge)
    elif any(mark.name == "kernel" for mark in pyfuncitem.own_markers):
        wrong = (
            f"{pyfuncitem.name} has the mark kernel and judges none: return a function, a path or "
            "a source text, or take the fixture judge and call it with one"
        )
    if wrong:
        # No line of the test says more.
        pytest.fail(wrong, pytrace=False)
    return True


def _said_of(kernel: Judgeable, judge: KernelJudge) -> str:
    """Return the fault of a kernel, or of the question; empty if the kernel is right."""
    from kerneltruth.errors import EnvironmentFault, UserError
    from kerneltruth.library.checking import KernelIncorrect

    try:
        judge(kernel)
    except (KernelIncorrect, UserError, EnvironmentFault) as error:
        return str(error)
    return ""


class KernelJudge:
    """Judges kernels in a test, with the options of its mark.

    What this machine cannot run is skipped, with the reason. Relative paths of kernels, references
    and tasks begin in the folder of the test's file.
    """

    def __init__(self, test: pytest.Item, judge_on: Callable[[str], Judge]) -> None:
        self._test = test
        self._judge_on = judge_on

    def __repr__(self) -> str:
        return f"<judge of {self._test.name}>"

    def __call__(self, kernel: Judgeable, **options: Any) -> Report:
        """Fail the test unless the kernel holds all that its contract asks; return its report.

        Args:
            kernel: a path, a source text, a function, or a `kt.NamedCandidate`.
            **options: those of `kt.check`, instead of the mark's.

        Raises:
            KernelIncorrect: the kernel is wrong.
            UserError: no such task, a file that cannot be read, or a wrong option.
            EnvironmentFault: the machine cannot do it.
        """
        __tracebackhide__ = True
        from kerneltruth.library.checking import require_correct

        report = self.check(kernel, **options)
        if report.verdict == "unsupported_here":
            pytest.skip(f"{report.name}: {report.detail}")
        return _shortly(lambda: require_correct(report))

    def check(self, kernel: Judgeable, **options: Any) -> Report:
        """Return the report of a kernel, whatever its verdict; see `__call__`."""
        __tracebackhide__ = True
        return _shortly(lambda: self._check(kernel, cast("TestedOptions", options)))

    def _check(self, kernel: Judgeable, given: TestedOptions) -> Report:
        options = _options_of(self._test)
        options.update(given)
        options.update(_of_command(self._test.config))
        device = str(options.pop("device", "auto"))
        for name in _FILES:
            path = options.get(name)
            if isinstance(path, str | PathLike):
                options[name] = self._test.path.parent / path
        # Without `device`, they are those of a check.
        return self._judge_on(device).check(self._placed(kernel), **cast("CheckOptions", options))

    def _placed(self, kernel: Judgeable) -> Judgeable:
        from kerneltruth.library.candidates import is_text

        if not isinstance(kernel, str | PathLike) or (isinstance(kernel, str) and is_text(kernel)):
            return kernel
        path = self._test.path.parent / kernel
        # A name that is no path may be that of an installed package.
        return kernel if str(kernel).isidentifier() and not path.exists() else path


def _shortly(call: Callable[[], R]) -> R:
    """Raise what a user can act on without the library's own frames."""
    __tracebackhide__ = True
    from kerneltruth.errors import EnvironmentFault, UserError
    from kerneltruth.library.checking import KernelIncorrect

    try:
        return call()
    except (KernelIncorrect, UserError, EnvironmentFault) as error:
        raise error.with_traceback(None) from None


def _options_of(test: pytest.Item) -> TestedOptions:
    """Return the options of a test's marks; the closest one wins."""
    from kerneltruth.errors import UserError
    from kerneltruth.library.options import CheckOptions

    known = ("device", *CheckOptions.__annotations__)
    found: TestedOptions = {}
    for mark in reversed(list(test.iter_markers("kernel"))):
        if mark.args:
            raise UserError(f"mark kernel: {mark.args[0]!r} has no name; write task={'relu'!r}")
        unknown = [name for name in mark.kwargs if name not in known]
        if unknown:
            options = ", ".join(known)
            raise UserError(f"mark kernel: no option {unknown[0]!r}; the options are {options}")
        found.update(cast("TestedOptions", mark.kwargs))
    return found


def _of_command(config: pytest.Config) -> TestedOptions:
    found: TestedOptions = {}
    if config.option.kt_cases is not None:
        found["cases"] = config.option.kt_cases
    if config.option.kt_seed is not None:
        found["seed"] = config.option.kt_seed
    return found


@pytest.fixture(scope="session")
def _judge_on(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Judge]]:
    """Return the warm judge of a device; all are closed at the end."""
    from kerneltruth.library.judge import Judge

    judges: dict[str, Judge] = {}

    def judge_on(device: str) -> Judge:
        if device not in judges or not judges[device].usable:
            seed = request.config.stash[_SEED]
            judges[device] = Judge(device=device, workers=1, seed=seed)
        return judges[device]

    yield judge_on
    for judge in judges.values():
        judge.close()


@pytest.fixture
def _kernel_judge(request: pytest.FixtureRequest, _judge_on: Callable[[str], Judge]) -> KernelJudge:
    return KernelJudge(request.node, _judge_on)


@pytest.fixture
def judge(_kernel_judge: KernelJudge) -> KernelJudge:
    """Judge kernels with the options of the test's mark: `judge(softmax)`."""
    return _kernel_judge
