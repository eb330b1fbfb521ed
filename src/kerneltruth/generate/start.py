"""Begin `generate`. Light to import; what needs torch is in `generation`."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace

from kerneltruth.documents.contracts import contract_name
from kerneltruth.documents.generations import GenerateDocument
from kerneltruth.engine.requests import Step
from kerneltruth.engine.start import gpu_name, on_one_thread, warming
from kerneltruth.errors import UserError
from kerneltruth.generate.chat import Sampling
from kerneltruth.generate.connection import open_model
from kerneltruth.generate.gpus import HERE, gpu_key
from kerneltruth.generate.prompts import LANGUAGES
from kerneltruth.generate.requests import IMPORT, GenerateRequest
from kerneltruth.generate.trajectory import BEST_OF_N_TEMPERATURE, Method, method_of


def run_generate(options: GenerateRequest) -> Generator[Step, None, GenerateDocument]:
    """Obtain candidates; yield steps and return the document of `generate --json`."""
    start = time.monotonic()
    contract_name(options.contract)
    if options.method == IMPORT:
        if options.source is None:
            raise UserError("--method import: say what to read with --from PATH")
        from kerneltruth.generate.submissions import import_submissions

        return (yield from import_submissions(options, start))
    if options.source is not None:
        raise UserError(f"--from {options.source}: only --method import reads it; drop one")
    method = method_of(options.method, samples=options.samples, rounds=options.rounds)
    if options.require_kernel and not method.asks_the_judge:
        raise UserError(
            f"--require-kernel: only refine and geak judge answers, not {method.name}; give it to "
            "`run` with the answers"
        )
    for option, given in (
        ("--budget-judge-seconds", options.limits.judge_seconds is not None),
        ("--kernels", options.kernels),
    ):
        if given and not method.asks_the_judge:
            raise UserError(f"{option}: only refine and geak judge, not {method.name}; drop it")
    options = _with_gpu(options)
    sampling = _sampling(method, options.sampling)
    model = open_model(options, sampling)
    if not method.asks_the_judge:
        from kerneltruth.generate.generation import generate

        return (yield from generate(options, method, sampling, model, None, start))
    with warming(options.device, options.targets) as runner:
        language = options.asking.language
        # No answer could be judged between rounds where its kernels do not run.
        if language in ("cuda", "gluon") and runner.device == "cpu":
            raise UserError(
                f"--language {language}: {method.name} judges {LANGUAGES[language]} on a GPU only; "
                "use best_of_n here"
            )
        from kerneltruth.generate.generation import generate

        steps = generate(options, method, sampling, model, runner, start)
        return (yield from on_one_thread(steps))


def _with_gpu(options: GenerateRequest) -> GenerateRequest:
    """Replace the GPU that the user names, or means, by its key."""
    wanted = options.asking.gpu
    if wanted is None:
        return options
    key = gpu_key(wanted, gpu_name(options.device) if wanted == HERE else None)
    return replace(options, asking=replace(options.asking, gpu=key))


def _sampling(method: Method, given: Sampling) -> Sampling:
    """Return how answers are drawn.

    Raises:
        UserError: several samples of greedy decoding, which are one.
    """
    if given.temperature == 0 and method.samples > 1:
        raise UserError(
            f"--temperature 0 with {method.samples} samples: greedy decoding repeats one answer; "
            "use --samples 1, or a higher temperature"
        )
    if method.name != "best_of_n" or given.temperature is not None:
        return given
    return Sampling(
        temperature=BEST_OF_N_TEMPERATURE, reply_tokens=given.reply_tokens, body=given.body
    )
