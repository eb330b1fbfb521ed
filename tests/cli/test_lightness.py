"""What need not import torch does not, and is quick."""

import os
import subprocess
import sys

import pytest

HELP_S = 0.3


def imported(environment, *arguments):
    """The modules that a command has imported at its end."""
    code = (
        "import sys\n"
        "from kerneltruth import cli\n"
        "code = cli.invoke(sys.argv[1:])\n"
        "print(' '.join(sys.modules), file=sys.stderr)\n"
        "sys.exit(code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(ran.stderr.split())


@pytest.mark.parametrize(
    "arguments", [("--help",), ("check", "--help"), ("time", "--help"), ("--version",)]
)
def test_help_imports_neither_torch_nor_triton_nor_numpy(environment, arguments):
    assert not imported(environment, *arguments) & {"torch", "triton", "numpy", "rich.console"}


def test_compare_imports_no_torch(environment, failed_run):
    assert not imported(environment, "compare", failed_run, failed_run) & {"torch", "triton"}


def test_baselines_imports_no_torch(environment, failed_run):
    assert not imported(environment, "baselines", failed_run) & {"torch", "triton"}


@pytest.mark.slow
def test_doctor_imports_no_torch_where_there_is_no_driver(environment):
    from kerneltruth.engine.devices import has_driver

    found = imported(environment, "doctor")
    assert ("torch" in found) <= has_driver()


def test_help_takes_less_than_a_third_of_a_second(environment):
    # Processor time, the least of a few: other processes of the machine do not count.
    spent = []
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-m", "kerneltruth", "--help"],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        spent.append(usage.ru_utime + usage.ru_stime)
        if spent[-1] < HELP_S:
            break
    assert min(spent) < HELP_S
