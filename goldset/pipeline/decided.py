"""What people have decided in a review, and with what chance they were asked: worked out once, for all who need it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from goldset.config import Config
from goldset.pipeline.carry import known
from goldset.pipeline.runner import Artifacts
from goldset.stats.sampling import Known


@dataclass(frozen=True)
class Decided:
    """A review as it stands.

    Attributes:
        decisions: table ``decisions``.
        known: pairs that were known before the sample was drawn.
        chances: inclusion probabilities (stats.sampling) of the pairs that people read.
    """

    decisions: pa.Table
    known: Known
    chances: pa.Table


def decided(config: Config, artifacts: Artifacts, *, queue: pa.Table, labels: pa.Table) -> Decided:
    """Queue, labels of this rebuild -> what was decided of them."""
    from goldset.pipeline.deep import chances_of
    from goldset.review import resolve

    decisions, before = resolve(queue=queue, labels=labels), known(config, artifacts, queue=queue, labels=labels)
    return Decided(decisions, before, chances_of(config, artifacts, queue, decisions, before))
