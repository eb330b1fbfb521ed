"""What is printed where: terminals wide and narrow, pipes that close, odd encodings and folders."""

import contextlib
import os
import pty
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from kerneltruth import cli
from kerneltruth.engine.requests import CheckRequest
from kerneltruth.engine.start import run
from kerneltruth.report.progress import follow

KERNEL = "def relu(x):\n    return None\n"


@pytest.fixture
def on_terminal(runners, monkeypatch):
    """Run a command on a pseudo-terminal; its exit code and all that it showed."""

    def shown_on(terminal):
        shown = bytearray()
        # A terminal whose other end is closed reports an error.
        with contextlib.suppress(OSError):
            while data := os.read(terminal, 65536):
                shown.extend(data)
        return shown.decode()

    def run(*arguments, **changed):
        for name, value in {"TERM": "xterm-256color", **changed}.items():
            monkeypatch.setenv(name, value)
        ours, theirs = pty.openpty()
        with ThreadPoolExecutor(1) as pool:
            shown = pool.submit(shown_on, ours)
            with (
                open(theirs, "w") as terminal,
                contextlib.redirect_stdout(terminal),
                contextlib.redirect_stderr(terminal),
            ):
                code = cli.invoke([*map(str, arguments)])
            text = shown.result(60)
        os.close(ours)
        return code, text

    return run


def lines_of(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n").splitlines()


def test_piped_lines_have_no_trailing_spaces_and_no_colour(kt, failed_run, finding):
    for arguments in (("tasks",), ("doctor",), ("compare", failed_run, failed_run)):
        out = kt(*arguments).out
        assert out.strip()
        assert [line for line in out.splitlines() if line != line.rstrip()] == []
        assert "\x1b" not in out


def test_the_first_piped_line_says_something(kt):
    assert kt("tasks").out.splitlines()[0].split() == ["task", "category", "dims", "dtypes"]


def test_a_piped_row_is_one_line(kt, candidate, tmp_path):
    run = tmp_path / ("long" * 40)
    ran = kt("check", candidate(KERNEL), "--device", "cpu", "--cases", "1", "--out", run)
    line = next(line for line in ran.out.splitlines() if line.startswith("finding "))
    assert line.endswith(".json")
    assert str(run) in line


def test_progress_in_a_pipe_is_plain_lines_on_standard_error(candidate, runners, capsys):
    file = candidate("def relu(x):\n    return x\n")
    request = CheckRequest(file=file, device="cpu", cases=48, explain="none", keep=False)
    follow(run(request), quiet=False, line_every_s=0.0)
    shown = capsys.readouterr()
    assert re.fullmatch(r"1/48 fail: .*", shown.err.splitlines()[0])
    assert "\x1b" not in shown.err


def test_a_narrow_terminal_folds_and_shows_all(on_terminal, candidate, tmp_path):
    arguments = ("check", candidate(KERNEL), "--device", "cpu", "--cases", "1")
    code, shown = on_terminal(*arguments, "--out", tmp_path / "r", COLUMNS="40", LINES="20")
    last = lines_of(shown.rpartition("verdict")[1] + shown.rpartition("verdict")[2])
    assert code == 1
    assert "type" in last[0]
    # The command to copy is on one line, which the terminal breaks without a trace.
    (following,) = (line for line in last if line.startswith("next:"))
    assert following.endswith(".json")
    assert max(len(line) for line in last if line is not following) <= 40
    assert "minimize" in shown
    assert "\x1b[" in shown


def test_no_color_is_heeded(on_terminal, failed_run):
    code, shown = on_terminal("compare", failed_run, failed_run, NO_COLOR="1")
    assert code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", shown)


def test_a_reader_that_leaves_is_no_error(environment):
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "kerneltruth", "doctor", "--json"],
        env=environment,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    os.close(reader)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


def test_a_reader_that_leaves_does_not_change_the_verdict(environment, failed_run, good, kt):
    other = failed_run.parent / "other"
    assert kt("check", good, "--device", "cpu", "--cases", "1", "--out", other).code == 0
    command = f"{sys.executable} -m kerneltruth compare '{failed_run}' '{other}' | true"
    ran = subprocess.run(
        ["bash", "-c", f'{command}; echo "${{PIPESTATUS[0]}}"'],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert (ran.stdout.strip(), ran.stderr) == ("1", "")


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_outputs_do_not_change_the_exit_code(environment, failed_run, closed):
    command = f"{sys.executable} -m kerneltruth compare '{failed_run}' '{failed_run}' {closed}"
    ran = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_an_ascii_locale_shows_what_it_has_letters_for(process, kt, good, tmp_path):
    for name in ("a", "küche"):
        options = ("--device", "cpu", "--cases", "1", "--out", tmp_path / name)
        assert kt("check", good, *options).code == 0
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = process("compare", tmp_path / "a", tmp_path / "küche", env=ascii_only)
    assert ran.code == 0, ran.err
    assert ran.out.isascii()
    assert "same verdict: 1 of 1" in ran.out


def test_a_folder_that_cannot_be_written_gives_way_to_a_temporary_one(
    kt, good, monkeypatch, tmp_path
):
    monkeypatch.chdir("/proc")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ran = kt("check", good, "--device", "cpu", "--cases", "1")
    assert ran.code == 0
    assert list((tmp_path / "kerneltruth-runs").iterdir())


def test_a_cache_that_cannot_be_written_is_done_without(monkeypatch):
    from kerneltruth.engine.devices import cache_root

    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert cache_root() is None
