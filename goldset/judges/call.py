"""One request to an OpenAI-compatible server, with its retries; what cannot be retried is told apart."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NoReturn

from goldset.errors import ExternalError, MissingExtra
from goldset.judges.meter import Claim, Meter
from goldset.judges.prompt import Message

if TYPE_CHECKING:
    import openai

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
TOTAL_PAUSE = 300.0  # seconds that one pair may spend waiting, all its retries together


class Stopped(Exception):
    """Another call met the end of the run; this one was not sent."""


class CallFailed(Exception):
    """No answer for this pair after all retries; ``status`` is what the verdict says."""

    def __init__(self, status: str, detail: str, *, refused: bool) -> None:
        super().__init__(detail)
        self.status = status
        self.refused = refused  # the server refused this request (4xx), as opposed to not answering


@dataclass(frozen=True)
class Reply:
    """What the server answered."""

    text: str
    finish: str | None
    refused: bool
    model: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True)
class Prices:
    """Per million tokens, in the configured currency."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Cost of one call; None if the server does not say how many tokens it took."""
        if prompt_tokens is None or completion_tokens is None:
            return None
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def open_client(base_url: str, key: str | None, timeout: float) -> openai.AsyncOpenAI:
    """The client. Retries are ours: each request must be metered, and all wait when the server says so."""
    try:
        import openai
    except ModuleNotFoundError as error:
        raise MissingExtra("the judge kind 'openai'", "judge") from error
    # A key is always given, so that the client does not take one from the environment that the config never named.
    return openai.AsyncOpenAI(base_url=base_url, api_key=key or "none", timeout=timeout, max_retries=0)


class Caller:
    """Sends requests for all workers of a run; a pause that the server asks for holds all of them."""

    def __init__(self, client: openai.AsyncOpenAI, *, settings: dict[str, Any], prices: Prices, retries: int,
                 meter: Meter, stop: asyncio.Event, key_name: str) -> None:
        self._client = client
        self._settings = settings
        self._prices = prices
        self._retries = retries
        self._meter = meter
        self._stop = stop
        self._key_name = key_name
        self._not_before = 0.0
        self._tokens_a_byte = 1.0  # upper bound for the budget, sharpened by the first answers
        self._jitter = random.Random()  # spreads the retries; no result depends on it

    async def ask(self, messages: Sequence[Message], *, seed: int | None) -> Reply:
        """The answer to ``messages``.

        Raises:
            CallFailed: this pair gets no answer.
            ExternalError: no pair will (wrong key, model or address, account used up).
            BudgetStop: the next request is not covered.
            Stopped: the run ends.
        """
        import openai

        loop = asyncio.get_running_loop()
        waited = 0.0
        for retry in range(self._retries + 1):
            await self._pause(self._not_before - loop.time())
            claim = self._claim(messages)
            await self._meter.admit(claim)
            try:
                reply = await self._send(messages, seed, claim)
            except openai.APITimeoutError as error:
                problem, asked = f"no answer in time ({error.message})", None
                self._meter.settle(claim, tokens=None, cost=None)  # it may have been paid for
            except openai.APIStatusError as error:
                self._meter.settle(claim, tokens=0, cost=0.0)
                problem, asked = self._sort(error), retry_after(error.response.headers)
                if error.status_code == 429 and asked is not None:
                    self._not_before = max(self._not_before, loop.time() + asked)
            except openai.APIConnectionError as error:
                self._meter.settle(claim, tokens=0, cost=0.0)
                problem, asked = f"no connection ({error.__cause__ or error.message})", None
            except (openai.OpenAIError, ValueError) as error:
                self._meter.settle(claim, tokens=None, cost=None)
                raise CallFailed("failed", f"not an answer of this API: {error}", refused=True) from error
            except BaseException:
                self._meter.settle(claim, tokens=None, cost=None)
                raise
            else:
                return reply
            pause = max(asked or 0.0, backoff(retry, self._jitter.random()))
            if retry == self._retries or waited + pause > TOTAL_PAUSE:
                raise CallFailed("failed", f"{problem}; {retry + 1} requests, {waited:.0f} s of waiting", refused=False)
            waited += pause
            await self._pause(pause)
        raise AssertionError("the last round returns or raises")

    async def _send(self, messages: Sequence[Message], seed: int | None, claim: Claim) -> Reply:
        extra = {} if seed is None else {"seed": seed}
        answer: Any = await self._client.chat.completions.create(
            messages=list(messages), **self._settings, **extra)  # type: ignore[call-overload]
        choices: Any = getattr(answer, "choices", None)
        message = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
        if message is None:  # a web page, say, where the API was expected: no answer, and never stored as one
            raise ValueError(str(answer)[:200])
        usage, text, model = getattr(answer, "usage", None), message.content, getattr(answer, "model", None)
        sent, received = (value if isinstance(value, int) else None for value in (
            getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)))
        tokens = None if sent is None or received is None else sent + received
        self._meter.settle(claim, tokens=tokens, cost=self._prices.of(sent, received))
        if sent:
            self._tokens_a_byte = min(1.0, max(0.2, 1.5 * sent / _bytes(messages)))
        return Reply(
            text=text if isinstance(text, str) else "",
            finish=choices[0].finish_reason,
            refused=bool(getattr(message, "refusal", None)),
            model=model if isinstance(model, str) else None,
            prompt_tokens=sent,
            completion_tokens=received,
        )

    def _claim(self, messages: Sequence[Message]) -> Claim:
        sent = int(_bytes(messages) * self._tokens_a_byte) + 16
        received = int(self._settings["max_tokens"])
        return Claim(sent + received, self._prices.of(sent, received) or 0.0)

    def _sort(self, error: openai.APIStatusError) -> str:
        """A status that may pass -> its description; one that will not -> raise."""
        detail = f"HTTP {error.status_code}: {error.message}"
        code = error.code or ""
        if error.status_code in (401, 403):
            self._give_up(f"{detail}; check {self._key_name}")
        if error.status_code == 404:
            self._give_up(f"{detail}; check [judge] base_url and model")
        if code == "insufficient_quota" or error.status_code == 402:
            self._give_up(f"{detail}; the account has no credit left")
        if error.status_code in (408, 409, 425, 429) or error.status_code >= 500:
            return detail
        if code == "context_length_exceeded":
            raise CallFailed("truncated", detail, refused=True) from error
        if code == "content_filter":
            raise CallFailed("declined", detail, refused=True) from error
        raise CallFailed("failed", detail, refused=True) from error

    def _give_up(self, detail: str) -> NoReturn:
        raise ExternalError(f"the judge at {self._client.base_url} does not answer: {detail}; every answer so far is "
                            "stored, run again to go on from here")

    async def _pause(self, seconds: float) -> None:
        """Wait, but not past the end of the run."""
        if seconds > 0 and not self._stop.is_set():
            try:
                await asyncio.wait_for(self._stop.wait(), seconds)
            except TimeoutError:
                return
        if self._stop.is_set():
            raise Stopped


def backoff(retry: int, chance: float) -> float:
    """Seconds before retry number ``retry`` + 1: doubling, capped, between half and the whole of it by ``chance``."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**retry)) * (0.5 + 0.5 * chance)


def retry_after(headers: Any) -> float | None:
    """Seconds that the server asks to wait: ``retry-after-ms``, or ``Retry-After`` in seconds or as an HTTP date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name, "")) * unit)
        except ValueError:
            continue
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, (when.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _bytes(messages: Sequence[Message]) -> int:
    return sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
