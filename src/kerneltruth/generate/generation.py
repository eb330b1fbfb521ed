"""Generate: chains of answers, requested in waves until each chain ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from msgspec import UNSET

from kerneltruth.documents.generations import (
    FeedbackRecord,
    GenerateDocument,
    GenerationManifest,
    PromptsRecord,
    SamplingRecord,
    UnansweredChain,
)
from kerneltruth.documents.model import model_of
from kerneltruth.engine.requests import CASES, Step
from kerneltruth.errors import EnvironmentFault, Interrupted, UserError
from kerneltruth.generate.account import Budget
from kerneltruth.generate.answers import ChainKey, publish_answers, refinement
from kerneltruth.generate.assignments import briefs_of, keys_for
from kerneltruth.generate.cache import AnswerCache
from kerneltruth.generate.chat import ApiError, ChatModel, Reply, Request, Sampling
from kerneltruth.generate.connection import address_of, open_cache
from kerneltruth.generate.directory import close_generation, how_to_go_on, open_generation
from kerneltruth.generate.key import travels_openly
from kerneltruth.generate.prompts import Prompts, load_prompts
from kerneltruth.generate.recording import PREFIX
from kerneltruth.generate.request_pool import (
    NotSent,
    Pace,
    RequestPool,
    RetryPolicy,
    Sent,
)
from kerneltruth.generate.requests import GenerateRequest
from kerneltruth.generate.reviewer import Reviewer
from kerneltruth.generate.trajectory import Method
from kerneltruth.generate.transcript import TRANSCRIPT, Exchange, Transcript
from kerneltruth.generate.turns import Turn
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import absolute, opened
from kerneltruth.suites.generations import ANSWERS
from kerneltruth.tasks.registry import listed_of


def generate(
    options: GenerateRequest,
    method: Method,
    sampling: Sampling,
    model: ChatModel,
    runner: Runner | None,
    start: float,
) -> Generator[Step, None, GenerateDocument]:
    """Ask a model for candidates.

    The runner is warming up, for a method that needs the judge.
    """
    with opened(options.suite, runner) as named:
        suite = named or options.suite
        cache = open_cache(options, sampling)
        prompts = load_prompts(options.asking.templates, options.asking.language)
        keys = keys_for(suite, options.asking, model)
        briefs = briefs_of(keys, options.asking, prompts)
        manifest = _manifest(options, method, sampling, model, prompts)
        path = open_generation(options.out, manifest)
        with closing(Transcript(path / TRANSCRIPT)) as transcript:
            transcript.refuse_other_briefs(briefs, path)
            reviewer = None
            if runner is not None:
                reviewer = Reviewer(options, runner, listed_of(suite), suite)
            generation = _Generation(
                options, method, model, prompts, transcript, briefs, reviewer, cache
            )
            yield from _opening(options, transcript, len(keys) * method.samples)
            try:
                yield from generation.run()
            except KeyboardInterrupt as stop:
                raise _interrupted(transcript.account.answers, path) from stop
            finally:
                generation.close()
                publish_answers(path, suite, method, model.label, transcript, options.prices)
            seconds = time.monotonic() - start
            document = generation.document(options.suite, path, len(keys), seconds)
            close_generation(path, document)
            generation.raise_if_refused(path)
            return document


def _interrupted(kept: int, path: Path) -> Interrupted:
    answers = f"{kept} answer{'' if kept == 1 else 's'}"
    return Interrupted(f"interrupted; {answers} kept in {path}; {how_to_go_on(path)}")


def _opening(options: GenerateRequest, transcript: Transcript, total: int) -> Iterator[Step]:
    for note in transcript.notes:
        yield Step(done=0, total=total, text=note, notable=True)
    if not (options.model or "").startswith(PREFIX) and travels_openly(address_of(options)):
        text = f"{address_of(options)} is not https: the key and all answers travel in the open"
        yield Step(done=0, total=total, text=text, notable=True)


def _manifest(
    options: GenerateRequest, method: Method, sampling: Sampling, model: ChatModel, prompts: Prompts
) -> GenerationManifest:
    replayed = (options.model or "").startswith(PREFIX)
    feedback = FeedbackRecord(
        seed=options.seed,
        cases=options.cases or CASES,
        contract=options.contract,
        require_kernel=options.require_kernel or UNSET,
        kernels=options.kernels or UNSET,
    )
    return GenerationManifest(
        suite=absolute(options.suite),
        method=method.name,
        model=model.label,
        endpoint=None if replayed else address_of(options),
        recording=PREFIX + str(_recording(options).absolute()) if replayed else None,
        samples=method.samples,
        rounds=method.rounds,
        sampling=model_of(SamplingRecord, sampling),
        prompts=model_of(PromptsRecord, prompts),
        show_reference=options.asking.show_reference,
        show_example=options.asking.show_example,
        shots=options.asking.shots or UNSET,
        gpu=options.asking.gpu or UNSET,
        feedback=feedback if method.asks_the_judge else None,
    )


def _recording(options: GenerateRequest) -> Path:
    return Path((options.model or "").removeprefix(PREFIX))


# The part of the budget that the judge spends.
JUDGE = "judge-seconds"


class _Generation:
    def __init__(
        self,
        options: GenerateRequest,
        method: Method,
        model: ChatModel,
        prompts: Prompts,
        transcript: Transcript,
        briefs: dict[str, str],
        reviewer: Reviewer | None,
        cache: AnswerCache | None,
    ) -> None:
        self._method = method
        self._prompts = prompts
        self._transcript = transcript
        self._briefs = briefs
        self._chains = [(key, n) for n in range(method.samples) for key in briefs]
        self._reviewer = reviewer
        self._prices = options.prices
        # Chains that this command cannot continue, with reasons.
        self._left: dict[ChainKey, str] = {}
        self._not_asked: Counter[str] = Counter()
        calling = options.calling
        self._budget = Budget(options.limits, transcript.account)
        self._pool = RequestPool(
            model,
            budget=self._budget,
            pace=Pace(calling.per_minute),
            retry=RetryPolicy(retries=calling.retries),
            concurrency=calling.concurrency,
            record=transcript.record,
            cache=cache,
            seed=options.seed,
        )

    def close(self) -> None:
        """Cancel open requests."""
        self._pool.close()

    def run(self) -> Iterator[Step]:
        """Request in waves; the judge reviews the answers in between if the method needs it."""
        while True:
            if self._reviewer is not None:
                yield from self._review(self._reviewer)
            requests = [r for chain in self._chains if (r := self._next(chain)) is not None]
            if not requests:
                return
            if self._budget.judge_is_spent:
                self._not_asked[JUDGE] += len(requests)
                return
            yield from self._ask(requests)
            if self._not_asked or self._pool.fatal is not None:
                if self._reviewer is not None:
                    yield from self._review(self._reviewer)
                return

    def _turns(self, chain: ChainKey) -> list[Turn]:
        task, sample = chain
        turns: list[Turn] = []
        while (reply := self._transcript.reply(task, sample, len(turns))) is not None:
            review = self._transcript.review(task, sample, len(turns))
            diagnosis = self._transcript.diagnosis(task, sample, len(turns))
            turns.append(
                Turn(reply=reply, review=review, diagnosis=diagnosis.reply if diagnosis else None)
            )
        return turns

    def _next(self, chain: ChainKey) -> Request | None:
        if chain in self._left:
            return None
        task, sample = chain
        return self._method.next(
            task, sample, self._turns(chain), self._briefs[task], self._prompts
        )

    def _ask(self, requests: list[Request]) -> Iterator[Step]:
        done = 0
        try:
            for settled in self._pool.ask(requests):
                done += 1
                chain = (settled.request.task, settled.request.sample)
                match settled:
                    case Sent(answer=Reply() as reply):
                        said = reply.finish or "answered"
                    case Sent(answer=ApiError() as error):
                        said = error.detail
                        self._left[chain] = "" if error.scope == "chain" else error.detail
                    case NotSent(reason=reason):
                        said = f"not asked: {reason}"
                        self._not_asked[reason] += 1
                text = f"{settled.request.key}: {said}; {self._spent()}"
                yield Step(done=done, total=len(requests), text=text)
        except KeyboardInterrupt:
            self._pool.stop()
            if count := self._pool.in_flight:
                text = f"waiting for {count} answers on their way; Ctrl-C again gives them up"
                yield Step(done=done, total=len(requests), text=text, notable=True)
            self._pool.wait()
            raise

    def _review(self, reviewer: Reviewer) -> Iterator[Step]:
        new = [
            Exchange(task=task, sample=sample, round=number, reply=turn.reply)
            for task, sample in self._chains
            for number, turn in enumerate(self._turns((task, sample)))
            if turn.review is None
        ]
        if not new or self._budget.judge_is_spent:
            return
        with closing(reviewer.review(new)) as reviews:
            for done, reviewed in enumerate(reviews, start=1):
                exchange, review = reviewed.exchange, reviewed.review
                if review is None:
                    self._left[exchange.task, exchange.sample] = "the machine spoilt its judgement"
                    continue
                self._transcript.add_review(exchange.task, exchange.sample, exchange.round, review)
                text = f"{exchange.task} s{exchange.sample} r{exchange.round}: {review.outcome}"
                yield Step(done=done, total=len(new), text=text)
                if self._budget.judge_is_spent:
                    return

    def _judge_stopped(self, chains: Iterable[list[Turn]]) -> str | None:
        """Return what is exhausted if the judge's budget has stopped a chain."""
        unjudged = self._reviewer is not None and any(
            turn.review is None for turns in chains for turn in turns
        )
        stopped = self._not_asked[JUDGE] or (unjudged and self._budget.judge_is_spent)
        return JUDGE if stopped else None

    def _spent(self) -> str:
        account = self._transcript.account
        return f"{account.calls} calls, {account.prompt + account.completion} tokens"

    def raise_if_refused(self, path: Path) -> None:
        """End the command if the endpoint refuses every request.

        Raises:
            UserError: the endpoint refuses the user's key, model or URL.
            EnvironmentFault: it does not answer.
        """
        error = self._pool.fatal
        if error is None:
            return
        if error.scope == "endpoint":
            raise UserError(
                f"the endpoint refuses: {error.detail}; check the key, --model and --base-url, "
                f"then {how_to_go_on(path)}"
            )
        raise EnvironmentFault(
            f"the endpoint gives no answer: {error.detail}; {how_to_go_on(path)}"
        )

    def document(self, suite: str, path: Path, tasks: int, seconds: float) -> GenerateDocument:
        """Build the document that the command returns."""
        chains = {chain: self._turns(chain) for chain in self._chains}
        answers = [turn for turns in chains.values() for turn in turns]
        unanswered = [
            UnansweredChain(task=task, sample=sample, why=why)
            for (task, sample), why in sorted(self._left.items())
            if why
        ]
        return GenerateDocument(
            suite=suite,
            method=self._method.name,
            tasks=tasks,
            chains=len(chains),
            answers=len(answers),
            finishes=dict(Counter(t.reply.finish or "unknown" for t in answers)),
            unanswered=tuple(unanswered),
            not_asked=sum(self._not_asked.values()),
            stopped=self._pool.refusal or self._judge_stopped(chains.values()),
            account=self._transcript.account.document(self._prices),
            refine=refinement(list(chains.values())) if self._method.asks_the_judge else None,
            broken=(),
            seconds=seconds,
            run=str(path),
            candidates=str(path / ANSWERS),
        )
