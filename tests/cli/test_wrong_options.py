"""Options that make no sense give one line of error, before any work begins."""

import pytest


@pytest.fixture
def mistake(kt, good, tmp_path, monkeypatch):
    """Run `check` with options; the line that refuses them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def run(*options, code=2):
        ran = kt("check", good, *options)
        assert (ran.code, ran.out) == (code, "")
        assert len(ran.err.splitlines()) == 1, ran.err
        assert not (tmp_path / "runs").exists()
        return ran.err

    return run


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--device", "tpu"), "must be auto, cpu, cuda or cuda:N"),
        (("--dtype", "fp13"), "'fp13': relu has"),
        (("--dtype", "bool"), "'bool': relu has"),
        (("--dtype", "fp32", "--dtype", "bool"), "'bool': relu has"),
        (("--dtype", "float64", "--domain", "core"), "in its core domain"),
        (("--strategy", "x"), "there are default, boundary"),
        (("--strategy", "tile"), "nearest: tiles"),
        (("--bounds", "x"), "must be one of spread, calibrated, fixed"),
        (("--domain", "all"), "must be core or extended"),
        (("--contract", "strict"), "must be one of published, core, torch"),
        (("--contract", "torch", "--domain", "core"), "leave out one of them"),
        (("--contract", "published", "--dtype", "float16"), "leaves out the published inputs"),
        (("--contract", "published", "--strategy", "layouts"), "leaves out the published inputs"),
        (("--target", "sm_1"), "must be one of sm_80"),
        (("--target", "sm_90a"), "nearest: sm_90"),
        (("--cases", "0"), "--cases"),
        (("--cases", "many"), "--cases"),
        (("--seed", "-1"), "--seed"),
        (("--seed", str(2**64)), "--seed"),
        (("--timeout", "0"), "--timeout"),
        (("--color", "red"), "--color"),
        (("--entry", "relu:"), "it is a file, and --entry MODULE:FUNCTION needs a folder"),
    ],
)
def test_a_wrong_option_is_the_users_mistake(mistake, options, says):
    assert says in mistake(*options)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7"])
def test_a_cuda_device_that_is_not_there_is_the_machines_fault(mistake, device):
    assert "see `kerneltruth doctor`" in mistake("--device", device, code=3)


def test_out_on_a_file_is_refused(mistake, good):
    assert f"--out {good}" in mistake("--out", good)


def test_out_on_a_folder_with_something_in_it_is_refused(mistake, tmp_path):
    assert "name a new directory" in mistake("--out", tmp_path)


def test_out_where_nothing_can_be_made_is_the_machines_fault(mistake):
    assert "cannot write /proc/nowhere" in mistake("--out", "/proc/nowhere/run", code=3)


def test_out_on_a_run_of_something_else_is_refused(kt, good, tmp_path):
    options = ("--device", "cpu", "--out", tmp_path / "run", "--cases")
    assert kt("check", good, *options, "2").code == 0
    ran = kt("check", good, *options, "3")
    assert ran.code == 2
    assert "it holds a different run; name a new directory" in ran.err


def test_out_on_a_finished_run_of_the_same_thing_repeats_its_result(kt, good, tmp_path):
    arguments = ("check", good, "--device", "cpu", "--out", tmp_path / "run", "--cases", "2")
    first, second = kt(*arguments), kt(*arguments)
    assert (first.code, second.code) == (0, 0)
    assert (tmp_path / "run" / "results.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("chekc", "kernel.py"), "check"),
        (("check",), "FILE"),
        (("tasks", "softmaxx"), "nearest: softmax"),
        (("tasks", "--suite", "odd"), "must be one of"),
        (("tasks", "--out", "x.py"), "--out: only --from writes a file; name a reference with it"),
        (("tasks", "--from", "x.py", "--out", "/proc"), "--out /proc: it exists; name a new file"),
        (("tasks", "--contract", "core"), "--contract: it needs a task; name one: `kerneltruth"),
        (
            ("tasks", "--tasks", "a.py", "--reference", "b.py"),
            "--tasks a.py: it is a suite of its own; leave out --reference b.py",
        ),
        (
            ("run", "--candidates", ".", "--suite", "tritonbench", "--tasks", "a.py"),
            "--tasks a.py: it is a suite of its own; leave out --suite tritonbench",
        ),
        (("audit", "--only", "softmaxx"), "nearest: softmax"),
        (("audit", "--target", "sm_1"), "must be one of sm_80"),
        (("audit", "--contract", "strict"), "must be one of published, core, torch"),
        (("tasks", "softmax", "--contract", "strict"), "published, core, torch"),
        (("audit", "--device", "tpu"), "must be auto, cpu, cuda or cuda:N"),
        (("audit", "--device", "cuda:all"), "only `kerneltruth run` and kt.Judge take it"),
        (("check", "x.py", "y.py", "--device", "cuda:all"), "name one device here, such as cuda"),
        (("compare", "/proc"), "two or more runs"),
        (("compare", "/proc", "/proc"), "is not a run"),
        (("replay", "/proc/nothing.json"), "cannot read /proc/nothing.json"),
        (("replay", "/proc"), "neither a finding nor a run"),
        (("replay", "/proc"), "name a run's own directory, a file of its `findings`, or"),
        (("replay", __file__), "is a Python file, not a finding"),
        (("replay", "/proc", "--obligation", "shape"), "must be one of published, shapes"),
        (("minimize", "/proc"), "is a directory"),
        (("run", "--candidates", ".", "--baselines"), "--baselines is --peer-checks now, since"),
        (("audit", "--no-baselines"), "use --peer-checks or --no-peer-checks"),
    ],
)
def test_other_commands_refuse_in_one_line_too(kt, arguments, says):
    ran = kt(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert says in ran.err


def test_a_mistake_prints_nothing_in_place_of_json(kt, good):
    ran = kt("check", good, "--json", "--device", "tpu")
    assert (ran.code, ran.out) == (2, "")


def test_no_command_at_all_shows_what_there_is(kt):
    ran = kt()
    assert ran.code == 2
    assert "Usage:" in ran.out
    assert "Traceback" not in ran.err


def test_help_names_the_exit_codes(kt):
    ran = kt("--help")
    assert ran.code == 0
    assert "130" in ran.out


@pytest.mark.parametrize(
    "command", ["audit", "check", "replay", "minimize", "tasks", "doctor", "compare"]
)
def test_every_command_takes_help_json_device_and_seed(kt, command):
    ran = kt(command, "--help")
    assert ran.code == 0
    assert all(option in ran.out for option in ("--help", "--json", "--device", "--seed"))


@pytest.mark.parametrize("command", ["audit", "run"])
def test_commands_that_judge_many_kernels_take_workers(kt, command):
    ran = kt(command, "--help")
    assert all(option in ran.out for option in ("--out", "--workers", "--timeout"))


def test_check_judges_one_kernel_at_a_time_and_takes_no_workers(kt):
    assert "--workers" not in kt("check", "--help").out
