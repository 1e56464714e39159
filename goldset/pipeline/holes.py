"""Holes: what runs serve and nobody judged -> items for people, in the review of the last rebuild."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.config import Config
from goldset.errors import UsageError
from goldset.formats.sets import LabelledSet
from goldset.pipeline.decided import decided
from goldset.pipeline.people import campaign_of, open_review, store_of
from goldset.pipeline.runner import Artifacts, finished
from goldset.schemas import HOLE
from goldset.stats.sampling import SAMPLED_REASONS
from goldset.store import Workspace

Pair = tuple[str, str]


@dataclass(frozen=True)
class Holes:
    """What became of the served passages that nobody judged.

    Attributes:
        systems: whose served lists were looked at.
        new: passages put before people now.
        carried: of them, answered at once by what people had said for another reason.
        waiting: passages that were asked before and still wait.
        undecided: passages of which people said that they cannot tell; they are not asked again.
        unknown: served chunks that the rebuild does not know, so that nobody can be shown them.
        open: items that wait for people in this review now.
        earlier: the version, where an earlier rebuild made it; else None.
        questions: questions of the version.
        shared: of them, those that the last rebuild has too; only their passages are asked.
    """

    systems: list[str]
    new: int
    carried: int
    waiting: int
    undecided: int
    unknown: int
    open: int
    earlier: str | None
    questions: int
    shared: int

    def as_json(self) -> dict[str, Any]:
        """The key ``queue`` of goldset.recall/1."""
        return asdict(self)

    def text(self, config_file: str) -> str:
        """What happened, and the next step."""
        who = " and ".join(filter(None, [", ".join(self.systems[:-1]), self.systems[-1]]))
        lines = [] if self.earlier is None else [
            f"queue: an earlier rebuild made {self.earlier}; people are asked in the review of the last one, which has "
            f"{self.shared:,} of its {self.questions:,} questions"]
        lines += [f"queue: {self.new - self.carried:,} passages that {who} "
                 f"{'serves' if len(self.systems) == 1 else 'serve'} and nobody judged are put before people"
                  + (f"; {self.waiting:,} more were asked before and wait" if self.waiting else "")
                  + (f"; {self.carried:,} that were read as a sample count for themselves from now on" if self.carried
                     else "")]
        if self.undecided:
            lines.append(f"queue: {self.undecided:,} stay unjudged: people read them and cannot tell")
        if self.unknown:
            lines.append(f"queue: {self.unknown:,} served chunks stay unjudged: the "
                         f"{'version' if self.earlier is None else 'last rebuild'} does not hold them")
        lines.append(f"queue: {self.open:,} items wait; goldset review serve -c {config_file}, then goldset publish -c "
                     f"{config_file}, then score the new version" if self.open else
                     f"queue: nothing waits for people; goldset publish -c {config_file} makes the next version")
        return "\n".join(lines)


def queue_holes(config: Config, labelled: LabelledSet, runs: Mapping[str, pa.Table], *, ks: Sequence[int],
                budget: int | None = None) -> Holes:
    """A version, runs, the served cut -> items in the review of the configuration's last rebuild.

    Where an earlier rebuild made the version, of the questions that both have. Every passage within the cut that is not
    known with certainty is asked, so that all of them have probability 1 at publication: also those that stand in the
    sample of the rejections, whose answers are carried. What a chunk delivers is what it would have brought into the
    pool. Asking again changes nothing.

    Raises:
        UsageError: not a version of this configuration, or none of whose questions is in its last rebuild.
    """
    artifacts = finished(config)
    earlier, shared = _shared(config, labelled, artifacts)
    served = _served(labelled, runs, ks, budget, shared)
    asked = _pairs_served(served, artifacts)
    with Workspace(config.workspace).open().lock("recall --queue"):
        before = open_review(config, artifacts)["reasons"].get(HOLE, {"answered": 0})
        certain, waiting, undecided = _known(config, artifacts)
        holes = {pair: systems for pair, systems in asked.items() if pair not in certain | waiting}
        new = _ask(config, artifacts, holes)
        after = open_review(config, artifacts)
    carried = after["reasons"].get(HOLE, {"answered": 0})["answered"] - before["answered"]
    links = artifacts.table("span_links").column("chunk_id")
    unknown = served.filter(pc.invert(pc.is_in(served.column("chunk_id"), value_set=links.combine_chunks())))
    assert labelled.questions is not None, "a published version has its questions"
    return Holes(sorted(runs), new, carried, len(waiting & set(asked)), len(undecided & set(asked)), len(unknown),
                 after["open"], labelled.label if earlier else None, len(labelled.questions), len(shared))


def _shared(config: Config, labelled: LabelledSet, artifacts: Artifacts) -> tuple[bool, pa.Array]:
    """Whether an earlier rebuild made the version; its questions that the last one has."""
    if labelled.kind != "published":
        raise UsageError(f"--queue: {labelled.label} is not a published version, so no review belongs to it; "
                         "'goldset audit SET --run NAME=FILE --probe DIR' puts a sample of its unjudged results before "
                         "people")
    if labelled.name != config.project.name:
        raise UsageError(f"--queue: {labelled.label} is no version of '{config.project.name}' (workspace "
                         f"{config.workspace}); name the configuration it was published from, with -c CONFIG")
    assert labelled.questions is not None, "a published version has its questions"
    own = labelled.questions.column("question_id").combine_chunks()
    shared = own.filter(pc.is_in(own, value_set=artifacts.table("questions").column("question_id").combine_chunks()))
    if not len(shared):
        raise UsageError(f"--queue: the last rebuild of '{config.project.name}' has none of the {len(own):,} questions "
                         f"of {labelled.label}, so its review cannot ask about them; have that review answered and "
                         "published ('goldset review serve', 'goldset publish'), and score its version")
    return labelled.manifest.get("artifacts", {}).get("queue") != artifacts.refs["queue"].key, shared


def _served(labelled: LabelledSet, runs: Mapping[str, pa.Table], ks: Sequence[int], budget: int | None,
            questions: pa.Array) -> pa.Table:
    """The runs cut at the largest k, else at the budget; of these questions only."""
    from goldset.metrics import cut_by_words

    parts = []
    for name, run in runs.items():
        if ks:
            part = run.filter(pc.less_equal(run.column("rank"), max(ks)))
        else:
            assert budget is not None, "recall has a cutoff or a budget"
            part = cut_by_words(labelled, run, budget)
        parts.append(part.set_column(part.schema.get_field_index("system"), part.schema.field("system"),
                                     pa.repeat(pa.scalar(name), len(part))))
    served = pa.concat_tables(parts)
    return served.filter(pc.is_in(served.column("question_id"), value_set=questions))


def _pairs_served(served: pa.Table, artifacts: Artifacts) -> dict[Pair, list[str]]:
    """Pairs that the served chunks bring in, with the systems that serve them."""
    from goldset.pool import pool_candidates

    found = pool_candidates(run=served, spans=artifacts.table("spans"), links=artifacts.table("span_links"),
                            depth=max(served.column("rank").to_pylist(), default=1)).candidates
    columns = (found.column(name).to_pylist() for name in ("question_id", "span_id", "systems"))
    return {(question, span): systems for question, span, systems in zip(*columns, strict=True)}


def _known(config: Config, artifacts: Artifacts) -> tuple[set[Pair], set[Pair], set[Pair]]:
    """Pairs that people decided with certainty, that wait to be, and of which they cannot tell (certain or not)."""
    store = store_of(config, artifacts)
    queue = store.queue()
    review = decided(config, artifacts, queue=queue, labels=store.labels())
    chances = {(row["question_id"], row["span_id"]): row["inclusion_prob"] for row in review.chances.to_pylist()}
    status = {(row["question_id"], row["span_id"]): row["status"] for row in review.decisions.to_pylist()}
    certain = {pair for pair, chance in chances.items() if chance >= 1}
    in_full = queue.filter(pc.invert(pc.is_in(queue.column("reason"), pa.array(SAMPLED_REASONS))))
    asked = zip(in_full.column("question_id").to_pylist(), in_full.column("span_id").to_pylist(), strict=True)
    return (certain, {pair for pair in asked if status[pair] == "open"},
            {pair for pair, state in status.items() if state == "cant_tell"})


def _ask(config: Config, artifacts: Artifacts, holes: Mapping[Pair, Iterable[str]]) -> int:
    from goldset.review import ask
    from goldset.review.queue import Wanted, permanent_number

    seed = config.project.seed
    wanted = [Wanted(*pair, HOLE, f"{HOLE} {'+'.join(systems)}", len(holes), permanent_number(seed, pair))
              for pair, systems in sorted(holes.items())]
    return ask(store_of(config, artifacts), wanted, campaign=campaign_of(artifacts), seed=seed)
