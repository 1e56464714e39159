"""The budget of one judging run: what was spent, and whether the next call is covered."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from goldset.config import Budget
from goldset.errors import BudgetStop


@dataclass
class Spent:
    """Calls sent, tokens and cost. Tokens of a server that reports none are counted at their upper bound."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class Claim:
    """The most that one call can use; settled when its answer is there."""

    tokens: int
    cost: float


class Meter:
    """Admits calls while the budget covers them at their upper bound, so that it is never overspent."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.spent = Spent()
        self._claims: list[Claim] = []
        self._settled = asyncio.Event()

    def covered(self, calls: int) -> int:
        """How many of ``calls`` free calls (no tokens, no cost) the budget still covers."""
        limit = self.budget.calls
        return calls if limit is None else max(0, min(calls, limit - self.spent.calls))

    def count(self, calls: int) -> None:
        """Count calls that cost nothing but themselves."""
        self.spent.calls += calls

    async def admit(self, claim: Claim) -> None:
        """Wait until the budget covers one more call, and count it.

        Raises:
            BudgetStop: nothing is in flight that could give back what it claimed, and the call is not covered.
        """
        while True:
            if not self.covered(1):
                raise self.stop("calls")
            short = self._short(claim)
            if short is None:
                self.spent.calls += 1
                self._claims.append(claim)
                return
            if not self._claims:
                raise self.stop(short)
            self._settled.clear()
            await self._settled.wait()

    def settle(self, claim: Claim, *, tokens: int | None, cost: float | None) -> None:
        """Replace a claim by what the call used; None = the server did not say, so the claim stands."""
        self._claims.remove(claim)
        self.spent.tokens += claim.tokens if tokens is None else tokens
        self.spent.cost += claim.cost if cost is None else cost
        self._settled.set()

    def _short(self, claim: Claim) -> str | None:
        tokens = self.spent.tokens + claim.tokens + sum(other.tokens for other in self._claims)
        if self.budget.tokens is not None and tokens > self.budget.tokens:
            return "tokens"
        cost = self.spent.cost + claim.cost + sum(other.cost for other in self._claims)
        if self.budget.cost is not None and cost > self.budget.cost:
            return "cost"
        return None

    def stop(self, what: str) -> BudgetStop:
        """The exception that ends a run at its budget."""
        limit = getattr(self.budget, what)
        return BudgetStop(
            f"[judge] budget.{what} = {limit} does not cover the next call ({self.spent.calls} calls, "
            f"{self.spent.tokens} tokens, cost {self.spent.cost:.4g} spent in this run); every answer is stored: "
            "run again to go on from here, or raise the budget"
        )
