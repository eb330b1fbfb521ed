"""A hostile candidate costs one verdict: those beside and after it are judged as without it."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "neighbours.py"
HARMS = ("forks", "becomes a daemon", "stops its siblings", "takes descriptors", "prints")


@pytest.mark.slow
def test_hostile_candidates_cost_one_verdict_each(environment, tmp_path):
    options = [word for harm in HARMS for word in ("--only", harm)]
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--ordinary", "8", "--results", tmp_path, *options],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert "Verdicts that differ: 0. Left behind: nothing." in ran.stdout
