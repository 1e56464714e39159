"""One system's run against a set -> arrays over gold rows and questions, from which all measures follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.arrays import among
from goldset.formats.qrels import gold_of
from goldset.formats.resolve import Resolved, resolve_run
from goldset.metrics.questions import Ints, Mask, Questions, index_in
from goldset.spans import main_span, served
from goldset.stats.intervals import Floats

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Results:
    """What one system delivered. ``low`` and ``high`` hold, for each gold row, the rank that delivers it (or NEVER).

    They differ only where evidence is missing: low is the strict reading, high the lenient one.
    """

    name: str
    questions: Questions
    run: pa.Table
    chunks: pa.Table | None
    empty: frozenset[str]
    uncut: pa.Table | None = None

    @classmethod
    def of(cls, name: str, questions: Questions, run: pa.Table, *, chunks: pa.Table | None = None,
           status: pa.Table | None = None, resolved: Resolved | None = None) -> Results:
        """Checks nothing yet; ``status`` (run_status) tells an empty answer from a missing one.

        ``resolved`` says that the ids were checked already.
        """
        empty: frozenset[str] = frozenset()
        if status is not None:
            answered = status.filter(pc.is_in(status.column("status"), pa.array(["empty", "no_tokens"])))
            empty = frozenset(answered.column("question_id").to_pylist())
        made = cls(name, questions, run, chunks, empty)
        if resolved is not None:
            made.__dict__["resolved"] = resolved
        return made

    def down_to(self, deepest: int) -> Results:
        """The same with the list cut at the deepest cutoff in use, once the ids of the whole list are checked.

        Cut only where ids alone deliver: there, what stands below can change nothing.
        """
        resolved = self.resolved
        if self.chunks is not None or self.questions.labelled.kind == "published" or deepest < 1:
            return self
        top = self.run.filter(pc.less_equal(self.run.column("rank"), deepest))
        cut = replace(self, run=top, uncut=self.run)
        cut.__dict__["resolved"] = resolved
        return cut

    @property
    def full(self) -> pa.Table:
        """The run as it was given."""
        return self.run if self.uncut is None else self.uncut

    @cached_property
    def resolved(self) -> Resolved:
        """Ids that the set does not know; raises where run and set are not of the same ids."""
        if self.chunks is not None:
            known = index_in(self.run.column("question_id").unique(), self.questions.id_array)
            return Resolved(int((known < 0).sum()), None)  # served() checks the chunk ids of a given chunking
        return resolve_run(self.questions.labelled, self.name, self.run, questions=self.questions.ids)

    def _served(self, gold: pa.Table) -> pa.Table:
        labelled = self.questions.labelled
        corpus = labelled.corpus if labelled.kind == "published" else None
        if corpus is None:
            return served(gold=gold, run=self.run, spans=None, links=None, chunks=None)
        return served(gold=gold, run=self.run, spans=corpus.spans, links=corpus.links,
                      chunks=corpus.chunks if self.chunks is None else self.chunks)

    @cached_property
    def deliveries(self) -> pa.Table:
        """Table ``deliveries``, one row a gold row."""
        return self._served(self.questions.labelled.gold)

    @cached_property
    def low(self) -> Ints:
        """Rank under the strict reading."""
        return _ranks(self.deliveries, "rank_low")

    @cached_property
    def high(self) -> Ints:
        """Rank under the lenient reading."""
        return _ranks(self.deliveries, "rank_high")

    @cached_property
    def two_readings(self) -> bool:
        """Whether any gold lacks the evidence that would decide."""
        return bool(pc.any(pc.equal(self.deliveries.column("basis"), "span_rule")).as_py())

    @cached_property
    def length(self) -> Ints:
        """Results returned for each question."""
        owner = self.questions.index(self.run.column("question_id"))
        return np.bincount(owner[owner >= 0], minlength=len(self.questions.ids))

    @cached_property
    def is_empty(self) -> Mask:
        """Questions answered with an empty list."""
        named = np.array([identity in self.empty for identity in self.questions.ids], np.bool_)
        mask: Mask = named & (self.length == 0)
        return mask

    @cached_property
    def graded(self) -> tuple[Ints, Ints, Floats] | None:
        """(question, rank, gain) of all positive grades; None where grades do not go above 1 or gold has evidence."""
        judgments = self.questions.labelled.judgments
        if self.questions.labelled.kind == "published" or (pc.max(judgments.column("grade")).as_py() or 0) <= 1:
            return None
        positive = judgments.filter(pc.greater(judgments.column("grade"), 0))
        lenient = positive.set_column(positive.schema.get_field_index("relevant"), positive.schema.field("relevant"),
                                      pa.repeat(pa.scalar(True), len(positive)))
        ranks = _ranks(self._served(gold_of(lenient)), "rank_low")
        gain: Floats = positive.column("grade").to_numpy().astype(np.float64)
        return self.questions.index(positive.column("question_id")), ranks, gain

    def unjudged(self, cut: int) -> tuple[Ints, Ints, Ints] | None:
        """(slots nobody judged, slots, slots with a chunk the set does not know) of each question at ``cut``.

        None where the texts that connect chunks and spans are missing.
        """
        labelled, count = self.questions.labelled, len(self.questions.ids)
        top = self.run.filter(pc.less_equal(self.run.column("rank"), cut))
        owner = self.questions.index(top.column("question_id"))
        spans = top.column("chunk_id")
        unknown = np.zeros(len(owner), np.bool_)
        if labelled.kind == "published":
            if labelled.corpus is None or self.chunks is not None:
                return None
            main, group = self._representatives
            place = index_in(spans, main)
            unknown = place < 0
            spans = group.take(pa.array(place, mask=unknown))
        decided = labelled.judgments.filter(pc.is_valid(labelled.judgments.column("relevant")))
        ids = pc.unique(decided.column("span_id"))
        width = len(ids)
        judged = self.questions.index(decided.column("question_id")) * width + index_in(decided.column("span_id"), ids)
        place = index_in(spans, ids)
        is_judged = place >= 0
        is_judged[is_judged] = among(owner[is_judged] * width + place[is_judged], judged)
        here = owner >= 0
        return tuple(np.bincount(owner[here & mask], minlength=count)  # type: ignore[return-value]
                     for mask in (~is_judged, np.ones(len(owner), np.bool_), unknown))

    @cached_property
    def _representatives(self) -> tuple[pa.Array, pa.Array]:
        """Chunk ids, and for each the twin group of the span that holds most of it."""
        corpus = self.questions.labelled.corpus
        assert corpus is not None, "asked for only with texts"
        groups = dict(zip(corpus.spans.column("span_id").to_pylist(), corpus.spans.column("twin_group").to_pylist(),
                          strict=True))
        main = main_span(corpus.links)
        return pa.array(list(main), pa.string()), pa.array([groups[span] for span in main.values()], pa.string())


def _ranks(deliveries: pa.Table, name: str) -> Ints:
    """Column of ranks; the agreed rank counts where one is given, NEVER where none is."""
    ranks = pc.coalesce(deliveries.column(name), deliveries.column("rank"))
    places: Ints = pc.fill_null(ranks.cast(pa.int64()), NEVER).to_numpy().astype(np.int64)
    return places
