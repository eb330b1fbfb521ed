"""Code is found in what models really answer."""

import time

import pytest

from kerneltruth.runner.candidate import TESTS_BELOW
from kerneltruth.suites.replies import code_of

CODE = "import torch\n\ndef relu(x):\n    return x.clamp(min=0)\n"


def test_plain_python_is_taken_as_it_is():
    assert code_of(CODE) == CODE


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
@pytest.mark.parametrize("language", ["", "python", "py", "Python title=x"])
def test_a_fence_and_prose_around_it_are_taken_off(fence, language):
    reply = f"Here is the kernel.\n\n{fence}{language}\n{CODE}{fence}\n\nIt is fast."
    assert code_of(reply) == CODE


def test_of_several_blocks_the_longest_python_counts():
    shell = "```bash\n" + "pip install triton torch --upgrade --no-cache && echo 'not python'\n" * 9
    reply = f"{shell}```\nThen:\n```python\nx = 1\n```\n```python\n{CODE}```\n"
    assert code_of(reply) == CODE


def test_a_block_that_the_end_cuts_off_counts_too():
    assert code_of(f"Sure!\n```python\n{CODE}") == CODE


def test_windows_line_ends_do_not_matter():
    assert code_of(f"```python\n{CODE}```".replace("\n", "\r\n")) == CODE


def test_the_tests_below_the_line_of_hashes_are_cut_off():
    assert code_of(f"{CODE}{TESTS_BELOW}\nassert False\n").strip() == CODE.strip()


@pytest.mark.parametrize("line", ["#" * 100, "#" * 147, TESTS_BELOW + " tuning"])
def test_hashes_in_a_comment_of_another_length_stay(line):
    source = f"{CODE}{line}\ny = 2\n"
    assert code_of(source) == source


def test_what_is_not_python_is_left_for_its_own_verdict():
    assert code_of("I cannot do that.") == "I cannot do that."
    assert code_of("```python\ndef broken(:\n```") == "def broken(:\n"


@pytest.mark.parametrize("end", ["```", "\n```\nIt is fast.", ""])
def test_a_fence_may_follow_prose_on_its_line(end):
    reply = f"Here is the kernel: ```python\n{CODE.rstrip()}{end}"
    assert code_of(reply).strip() == CODE.strip()


def test_code_may_begin_on_the_line_of_its_fence():
    assert code_of(f"Here it is: ```{CODE}```") == CODE


@pytest.mark.parametrize(
    "reply", ["`" * 10**6, "def (\n" + "```a\n" * 10**5, "def (\n" + "```a\n```\n" * 10**5]
)
def test_no_reply_takes_long_to_read(reply):
    start = time.process_time()
    code_of(reply)

    assert time.process_time() - start < 10
