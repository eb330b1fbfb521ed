"""The run directory of a command: a new one, a named one, or one to go on with."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from kerneltruth import tasks
from kerneltruth.documents.model import content_hash
from kerneltruth.documents.records import Manifest
from kerneltruth.engine.devices import device_name, driver_version
from kerneltruth.errors import Interrupted, UserError
from kerneltruth.runs.files import new_folder
from kerneltruth.runs.findings import environment_fingerprint
from kerneltruth.runs.ledger import Keep, L
from kerneltruth.runs.store import RunStore, now


def suite_hash() -> str:
    """Hash every task declaration that a verdict may depend on, in all suites.

    Hash the files, because suites are imported only when one of their tasks is needed.
    """
    folder = Path(tasks.__file__).parent
    files = sorted(folder.rglob("*.py"))
    return content_hash([[str(f.relative_to(folder)), f.read_text("utf-8")] for f in files])


@contextlib.contextmanager
def open_run(
    out: Path | None,
    *,
    command: str,
    identity: str,
    device: str,
    seed: int,
    keep: Keep[L],
) -> Iterator[RunStore[L]]:
    """Begin a run, or go on with the run of the same command in `out`; closed at the end.

    Without `out` the run lies below `runs/`, or in a temporary folder where the working directory
    cannot be written. `identity` is what a resumed run must have been asked for too.

    Raises:
        UserError: `out` holds another run, or something else.
        Interrupted: in place of a Ctrl-C, and says how to go on.
    """
    store = _open(out, command=command, identity=identity, device=device, seed=seed, keep=keep)
    try:
        yield store
    except KeyboardInterrupt as stop:
        kept = len(store.results())
        raise Interrupted(
            f"interrupted; {kept} result{'' if kept == 1 else 's'} kept in {store.path}; repeat "
            f"the command with --out {shlex.quote(str(store.path))} to go on"
        ) from stop
    finally:
        store.close()


def _open(
    out: Path | None, *, command: str, identity: str, device: str, seed: int, keep: Keep[L]
) -> RunStore[L]:
    arguments = (command, identity)
    if out is not None and (out / "run.json").exists():
        store = RunStore.open(out, keep=keep)
        if store.manifest.arguments[:2] != arguments or store.manifest.seed != seed:
            raise UserError(f"--out {out}: it holds a run of something else; name a new directory")
        return store
    manifest = Manifest(
        arguments=(*arguments, *sys.argv[1:]),
        seed=seed,
        suite_hash=suite_hash(),
        environment=environment(device),
        started=now(),
    )
    return RunStore.create(out or new_folder(command), manifest, keep=keep)


def environment(device: str) -> dict[str, str | None]:
    """Return the fingerprint of this machine for results on `device`."""
    return environment_fingerprint(
        device, name=device_name(device), driver=None if device == "cpu" else driver_version()
    )
