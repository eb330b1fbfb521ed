"""Choose the configuration of an autotuned kernel as the judge requests.

Triton's autotuner benchmarks and keeps the fastest configuration, so the judged one would be
random, and without a GPU there is nothing to benchmark. Here the judge chooses: `choose(config)`
fixes the index, and each autotuned kernel takes the configuration with that index modulo their
number. As in Triton, a configuration that needs more than the device has is skipped.

Triton's autotuner also launches a kernel many times on its first call for a key and just once on
later calls. Both are judged: the first configuration runs as on a first call (one rehearsal with
the kernel's own hooks, then the real run), all others as on later calls. A kernel that adds to its
output without `reset_to_zero` is wrong on a first call; a kernel whose result relies on
`reset_to_zero` is wrong on later ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kerneltruth.runner.child import kernel_work


@dataclass(slots=True)
class Tuning:
    """One run of an autotuned kernel.

    Attributes:
        configs: how many configurations it has left after pruning.
        last: no other configuration is left to try.
        done: targets for which a configuration was found already (compile mode).
    """

    configs: int
    last: bool = False
    done: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _State:
    config: int = 0
    tuning: Tuning | None = None


_STATE = _State()


def install() -> None:
    """Replace Triton's autotuner in this process, permanently."""
    from triton.runtime.autotuner import Autotuner

    Autotuner.run = _run_autotuned


def choose(config: int) -> None:
    """Make autotuned kernels use configuration `config`, modulo their number."""
    _STATE.config = config


def tuning() -> Tuning | None:
    """Return the autotuned run in progress, if any."""
    return _STATE.tuning


def _run_autotuned(self: Any, *args: Any, **kwargs: Any) -> Any:
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    several = len(self.configs) > 1
    configs = list(self.prune_configs(kwargs)) if several else self.configs
    outer, current = _STATE.tuning, Tuning(configs=len(configs))
    _STATE.tuning = current
    try:
        for attempt in range(len(configs)):
            index = (_STATE.config + attempt) % len(configs)
            current.last = attempt == len(configs) - 1
            try:
                return _run_configured(self, configs[index], args, kwargs, first=index == 0)
            except passed_over():
                if current.last:
                    raise
        raise ValueError("an autotuned kernel without configurations")
    finally:
        _STATE.tuning = outer
        self.nargs = None


def _run_configured(
    tuner: Any, config: Any, args: tuple[Any, ...], kwargs: dict[str, object], *, first: bool
) -> Any:
    tuner.best_config = config
    chosen = config.all_kwargs()
    named = {**tuner.nargs, **kwargs, **chosen}
    if len(tuner.configs) > 1:
        conflicts = sorted(kwargs.keys() & config.kwargs.keys())
        if conflicts:
            raise ValueError(f"Conflicting meta-parameters: {', '.join(conflicts)}.")
        if first:
            _rehearse(tuner, config, args, {**kwargs, **chosen}, named)
    if config.pre_hook is not None:
        config.pre_hook(named)
    return tuner.fn.run(*args, **kwargs, **chosen)


def _rehearse(
    tuner: Any,
    config: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, object],
    named: dict[str, object],
) -> None:
    if config.pre_hook is not None:
        config.pre_hook(named)
    tuner.pre_hook(named)
    try:
        with kernel_work.uncounted():
            tuner.fn.run(*args, **kwargs)
    except Exception as error:
        tuner.post_hook(named, exception=error)
        raise
    tuner.post_hook(named, exception=None)
    tuner.pre_hook(named, reset_only=True)


def passed_over() -> tuple[type[Exception], ...]:
    """Errors for which Triton's autotuner tries the next configuration."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources, PTXASError

    return OutOfResources, CompileTimeAssertionFailure, PTXASError
