"""The judge kind ``openai``: any OpenAI-compatible server, many calls in flight, every answer stored as it comes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from typing import Any

from goldset.config import OpenAIJudge
from goldset.errors import BudgetStop, ConfigError, ExternalError, GoldsetError
from goldset.judges import normalise, parse
from goldset.judges.base import Desk, Pair
from goldset.judges.call import Caller, CallFailed, Prices, Reply, Stopped, open_client
from goldset.judges.prompt import Message, Prompt, prompt_hash
from goldset.judges.rubric import Rubric
from goldset.judges.store import VerdictStore
from goldset.judges.verdict import Verdict
from goldset.text import content_hash, quote_key

ATTEMPTS = 2  # an answer that does not parse is asked once more, strictly; then people decide
FAILURES_IN_A_ROW = 10


class ChatJudge:
    """A chat model behind an OpenAI-compatible API."""

    kind = "openai"
    declared_weak = False

    def __init__(self, config: OpenAIJudge, rubric: Rubric, prompt: Prompt, store: VerdictStore) -> None:
        self.config = config
        self.family = config.family
        self.rubric = rubric
        self.prompt = prompt
        self._store = store
        self.prompt_hash = prompt_hash(prompt, rubric)
        self._decoding = {"model": config.model, "max_tokens": config.max_tokens}
        if config.temperature is not None:
            self._decoding["temperature"] = config.temperature
        # Everything besides the messages, the vote and the attempt that can change an answer.
        self._identity = content_hash(self.kind, config.base_url.rstrip("/"), self._decoding, config.seed,
                                      self.prompt_hash, parse.VERSION, normalise.VERSION)
        self.judge_id = f"{self.kind}:{config.model}:{self._identity[:12]}"

    def card_info(self) -> dict[str, Any]:
        """Model as asked and as answered, decoding, prompt, rubric, parser and normaliser."""
        config = self.config
        return {"kind": self.kind, "judge_id": self.judge_id, "family": self.family,
                "declared_weak": self.declared_weak, "model": config.model,
                "models_answered": self._store.models(self.judge_id), "base_url": config.base_url,
                "temperature": config.temperature, "seed": config.seed, "max_tokens": config.max_tokens,
                "votes": config.votes, "rubric_version": self.rubric.version, "rubric_hash": self.rubric.hash,
                "prompt_version": self.prompt.version, "prompt_hash": self.prompt_hash,
                "parser": parse.VERSION, "normaliser": normalise.VERSION}

    def fingerprint(self, pair: Pair) -> str:
        """Hash of the messages that the pair becomes."""
        return content_hash(self._identity, self.prompt.messages(pair, self.rubric, attempt=1))

    def cache_key(self, messages: Sequence[Message], *, vote: int, attempt: int) -> str:
        """Hash of everything that can change the answer."""
        return content_hash(self._identity, list(messages), vote, attempt)

    def judge(self, pairs: Sequence[Pair], desk: Desk) -> list[Verdict]:
        """Pairs -> verdicts; see ``Judge.judge``."""
        return asyncio.run(_Round(self, pairs, desk).run())

    def api_key(self) -> str | None:
        """The key from the environment; None where the server needs none."""
        name = self.config.api_key_env
        if name is None:
            return None
        key = os.environ.get(name)
        if not key:
            raise ConfigError(f"[judge] api_key_env: the environment variable {name} is not set; export it before "
                              "running, or remove the key if the server needs none")
        return key

    def verdict(self, pair: Pair, reply: Reply, *, vote: int, attempt: int, key: str) -> Verdict:
        """An answer -> the row that is stored."""
        parsed, status = None, "ok"
        if reply.refused or reply.finish == "content_filter":
            status = "declined"
        elif reply.finish == "length":
            status = "truncated"
        elif not reply.text.strip():
            status = "empty"
        else:
            parsed = parse.parse(reply.text)
            status = "unparsed" if parsed is None else "ok"
        quote = parsed.quote if parsed and parsed.quote and _occurs(parsed.quote, pair.passage) else None
        prices = Prices(self.config.price_prompt, self.config.price_completion)
        return Verdict(
            question_id=pair.question_id, span_id=pair.span_id, judge_id=self.judge_id, vote=vote, attempt=attempt,
            status=status, relevant=parsed.relevant if parsed else None, cache_key=key, prompt_hash=self.prompt_hash,
            quote=quote, raw=reply.text, model_asked=self.config.model, model_answered=reply.model,
            prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens,
            cost=prices.of(reply.prompt_tokens, reply.completion_tokens))

    def failure(self, pair: Pair, failed: CallFailed, *, vote: int, attempt: int, key: str) -> Verdict:
        """A call without an answer -> the row that is stored; ``raw`` says what happened."""
        return Verdict(
            question_id=pair.question_id, span_id=pair.span_id, judge_id=self.judge_id, vote=vote, attempt=attempt,
            status=failed.status, relevant=None, cache_key=key, prompt_hash=self.prompt_hash, raw=str(failed),
            model_asked=self.config.model)


class _Round:
    """One run of a chat judge: workers that share one list of pairs, and a writer that stores in batches."""

    def __init__(self, judge: ChatJudge, pairs: Sequence[Pair], desk: Desk) -> None:
        self.judge = judge
        self.desk = desk
        self.verdicts: list[Verdict] = []
        self.workers = min(judge.config.in_flight, max(1, len(pairs) * judge.config.votes))
        # Short, so that no more than this many answers wait for the disk at any time.
        self.unstored: asyncio.Queue[Verdict | None] = asyncio.Queue(self.workers)
        self.stop = asyncio.Event()
        self.ended_by: Exception | None = None
        self.answered = False
        self.failures = 0
        self._work = ((pair, vote) for pair in pairs for vote in range(1, judge.config.votes + 1))
        self._caller: Caller | None = None
        self._client: Any = None

    async def run(self) -> list[Verdict]:
        writer = asyncio.create_task(self._write())
        try:
            await asyncio.gather(*(self._worker(self._work) for _ in range(self.workers)))
        finally:
            # Also when interrupted: what was paid for is stored.
            await self.unstored.put(None)
            await writer
            if self._client is not None:
                await self._client.close()
        if self.ended_by is not None:
            raise self.ended_by
        return self.verdicts

    async def _worker(self, work: Iterator[tuple[Pair, int]]) -> None:
        for pair, vote in work:
            if self.stop.is_set():
                return
            try:
                await self._vote(pair, vote)
            except Stopped:
                return
            except GoldsetError as error:
                self._end(error)
                return
            if vote == self.judge.config.votes:
                self.desk.done()

    async def _vote(self, pair: Pair, vote: int) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            verdict = await self._attempt(pair, vote, attempt)
            self.verdicts.append(verdict)
            if verdict.status != "unparsed":
                return

    async def _attempt(self, pair: Pair, vote: int, attempt: int) -> Verdict:
        judge = self.judge
        messages = judge.prompt.messages(pair, judge.rubric, attempt=attempt)
        key = judge.cache_key(messages, vote=vote, attempt=attempt)
        known = self.desk.known(key, pair)
        if known is not None:
            self.answered = True
            return known
        seed = judge.config.seed
        try:
            # Votes with one seed would all be the same answer.
            reply = await self._open().ask(messages, seed=None if seed is None else seed + vote - 1)
        except CallFailed as failed:
            verdict = judge.failure(pair, failed, vote=vote, attempt=attempt, key=key)
            await self.unstored.put(verdict)
            self._count_failure(failed)
            return verdict
        self.answered, self.failures = True, 0
        verdict = judge.verdict(pair, reply, vote=vote, attempt=attempt, key=key)
        await self.unstored.put(verdict)
        return verdict

    def _count_failure(self, failed: CallFailed) -> None:
        """End the run when the server is down, or refuses whatever it is asked."""
        if failed.status != "failed" or (failed.refused and self.answered):
            return  # it answers others: this pair is at fault
        self.failures += 1
        if self.failures >= FAILURES_IN_A_ROW:
            raise ExternalError(
                f"the judge at {self.judge.config.base_url} left {self.failures} pairs in a row without an answer "
                f"(last: {failed}); every answer so far is stored, run again to go on from here")

    def _end(self, error: Exception) -> None:
        # A budget stop is the milder end: an error that another worker met says more.
        if self.ended_by is None or isinstance(self.ended_by, BudgetStop):
            self.ended_by = error
        self.stop.set()

    def _open(self) -> Caller:
        # Opened at the first call: a run that finds everything stored needs neither key nor library.
        if self._caller is None:
            config = self.judge.config
            self._client = open_client(config.base_url, self.judge.api_key(), config.timeout)
            name = config.api_key_env
            self._caller = Caller(
                self._client, settings=self.judge._decoding,
                prices=Prices(config.price_prompt, config.price_completion), retries=config.retries,
                meter=self.desk.meter, stop=self.stop,
                key_name=f"the environment variable {name}" if name else
                "whether the server needs a key ([judge] api_key_env names the variable that holds it)")
        return self._caller

    async def _write(self) -> None:
        """Store what has come in since the last time in one transaction, until told to end."""
        going = True
        while going:
            batch = [await self.unstored.get()]
            while not self.unstored.empty():
                batch.append(self.unstored.get_nowait())
            going = None not in batch
            try:
                await asyncio.to_thread(self.desk.file, [verdict for verdict in batch if verdict is not None])
            except Exception as error:
                self._end(error)  # and go on emptying the queue, so that no worker waits for ever


def _occurs(quote: str, passage: str) -> bool:
    """Whether the judge quoted the passage, as opposed to making a sentence up."""
    return quote_key(quote) in quote_key(passage) or quote_key(quote) in quote_key(normalise.normalise(passage))
