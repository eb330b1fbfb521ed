"""Candidates an hour of this state of the sources and of another, in turn on one machine.

    python benchmarks/throughput_states.py OTHER [--device auto] [--attempts 260] [--cases 16]

OTHER is the `src` folder of another checkout. Rates of two machines, or of one on two days, say
little about the sources: cores differ, and compiling takes most of the time. Each state runs the
same candidates as throughput.py does, this one first and last.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
from pathlib import Path

import machine
import throughput


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="the `src` folder of another checkout")
    parser.add_argument("--named", default="the other state", help="what the table calls it")
    throughput.add_options(parser, attempts=260)
    options = parser.parse_args()
    device = machine.device_of(options)
    states = {"this state": None, options.named: options.other.absolute()}
    found: dict[str, list[tuple[float, float, str]]] = {name: [] for name in states}
    for name in [*states, *reversed(states)]:
        before = _cpu_seconds()
        with tempfile.TemporaryDirectory() as folder:
            document, _, seconds = throughput.run(
                options, device, Path(folder), sources=states[name]
            )
        outcomes = document["stages"]["exe"]
        said = ", ".join(f"{kind} {n}" for kind, n in sorted(outcomes.items()))
        rate, spent = 3600 * document["attempts"] / seconds, _cpu_seconds() - before
        found[name].append((rate, spent / document["attempts"], said))
        print(f"{name}: {rate:,.0f} an hour", file=sys.stderr, flush=True)
    rows = [
        (name, *(f"{rate:,.0f}" for rate, _, _ in runs), _cpu(runs), runs[0][2])
        for name, runs in found.items()
    ]
    means = [statistics.mean(rate for rate, _, _ in runs) for runs in found.values()]
    heads = ("sources", "an hour", "again", "CPU seconds each", "outcomes of the exe stage")
    lines = [
        f"{options.attempts} candidates in each run, {options.cases} cases each, from cold; "
        f"this state judges {means[0] / means[1]:.0%} of what the other does.",
        "",
        *machine.table(heads, rows),
    ]
    title = "Candidates an hour, in two states of the sources"
    machine.publish(
        "throughput_states", title, machine.facts(device), lines, folder=options.results
    )
    return 0


def _cpu_seconds() -> float:
    """CPU seconds of all processes that have ended so far, of each run also its children's."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _cpu(runs: list[tuple[float, float, str]]) -> str:
    return ", ".join(f"{spent:.2f}" for _, spent, _ in runs)


if __name__ == "__main__":
    sys.exit(main())
