"""A real Ray of two nodes on this machine: the same verdicts as locally, also when a node dies."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kerneltruth
from kerneltruth import cli

ray_cluster = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")

# Ray's own processes are not ours to tidy up.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PATIENCE_S = 240
SUITE = ("--suite", "core", "--device", "cpu", "--cases", "2", "--stage", "exe", "--no-explain")

# A torch kernel per line, right or wrong, and slow enough that a node can die under it.
SOURCE = """import time, torch
NUMBER = {number}
def relu(input):
    time.sleep(0.1)
    return torch.relu(input){wrong}
"""


@pytest.fixture
def handed_in(tmp_path):
    path = tmp_path / "answers.jsonl"
    lines = [
        {"file": "relu.py", "predict": SOURCE.format(number=n, wrong=" + 1" if n % 3 == 0 else "")}
        for n in range(9)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def environment():
    package = Path(kerneltruth.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def cluster(environment, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    head = {"num_cpus": 1, "include_dashboard": False}
    made = ray_cluster.Cluster(initialize_head=True, head_node_args=head)
    yield made
    made.shutdown()


def command(handed_in, out, *more):
    words = ("run", "--candidates", handed_in, "--out", out, "--seed", 0, *SUITE, *more)
    return [*map(str, words)]


def begin(environment, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "kerneltruth", *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines_of(run):
    path = run / "results.jsonl"
    return [json.loads(raw) for raw in path.read_text().splitlines()] if path.exists() else []


def verdicts(run):
    return {line["key"]: line["stages"] for line in lines_of(run)}


@pytest.mark.slow
def test_a_node_killed_in_the_middle_costs_no_attempt_and_counts_none_twice(
    environment, handed_in, cluster, tmp_path
):
    second = cluster.add_node(num_cpus=1)
    run, local = tmp_path / "ray", tmp_path / "local"
    ray = ("--executor", "ray", "--address", cluster.address)
    begun = begin(environment, *command(handed_in, run, *ray))
    end = time.monotonic() + PATIENCE_S
    while len(lines_of(run)) < 3 and begun.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    cluster.remove_node(second, allow_graceful=False)
    _, said = begun.communicate(timeout=PATIENCE_S)
    assert begun.returncode == 0, said
    assert cli.invoke(command(handed_in, local, "--workers", "1")) == 0
    assert len(lines_of(run)) == 9
    assert verdicts(run) == verdicts(local)


def test_no_cluster_at_the_address_is_one_line(handed_in, tmp_path, capsys):
    ray = ("--executor", "ray", "--address", "127.0.0.1:1")
    code = cli.invoke(command(handed_in, tmp_path / "run", *ray))
    said = capsys.readouterr().err
    assert code == 2, said
    assert "no Ray cluster answers there" in said
    assert "Traceback" not in said
