"""Earlier rebuilds answer this one: the same text first, then what follows for the spans of another chunking."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.config import Config
from goldset.gold import carry_decisions, evidence_spans, follow_edits
from goldset.pipeline.runner import Artifacts
from goldset.schemas import CHECK, HOLE
from goldset.stats.sampling import pairs_of
from goldset.store import Workspace, read_json, read_table

if TYPE_CHECKING:
    from goldset.review import ReviewStore

Pair = tuple[str, str]


@dataclass
class Carried:
    """What one look at the earlier answers added: label rows, items; and what they said that is lost.

    ``lost`` are yes of the newest of them whose text no span holds now: their document changed, or left the corpus.
    """

    labels: int = 0
    items: int = 0
    lost: list[Pair] = field(default_factory=list)


def carry(config: Config, artifacts: Artifacts, store: ReviewStore) -> Carried:
    """Answer what earlier rebuilds in this review database know, newest first; harmless if repeated.

    For each earlier rebuild: the same question and span text, layer by layer (review.carry); then, where it cut the
    corpus otherwise and its spans still lie in the workspace, the rules of gold.carry. Where documents changed, a yes
    follows its text to the new place (gold.follow). A yes whose evidence the new spans divide, or whose text was
    altered, is asked again, also where no system returned its parts. Holes that were filled for an earlier rebuild
    come along as items of this one, where question and text are the same: they were read with certainty, and stay so.
    So do carried answers that were read again: nobody reads them a third time.
    At last come this rebuild's own answers: what people have read for another reason is not read twice.
    """
    from goldset.review import answered_before, newest_first

    found = Carried()
    everything = _Earlier(config, artifacts, store)
    found.items += sum(everything.items(reason) for reason in (HOLE, CHECK))
    newest = newest_first(everything.labels)
    for campaign in newest:
        found.labels += everything.same_text(campaign)
        spans = everything.spans_of(campaign)
        if spans is not None:
            added = everything.other_spans(campaign, spans)
            found.labels += added.labels
            found.items += added.items
            found.lost = added.lost if campaign == newest[0] else found.lost
    found.labels += answered_before(store, **everything.here)
    return found


def known(config: Config, artifacts: Artifacts, *, queue: pa.Table, labels: pa.Table) -> dict[Pair, str | None]:
    """Pairs that were known before this rebuild's sample was drawn -> the stratum of rejections that they are in."""
    from goldset.review import ReviewStore, drawn_strata, known_before

    both, campaign = ReviewStore(config.review_url), _campaign(artifacts)
    pairs = known_before(queue=queue, labels=labels, earlier_queue=_others(both.queue(), campaign),
                         earlier_labels=_others(both.labels(), campaign))
    if not pairs:
        return {}
    strata = drawn_strata(candidates=artifacts.table("candidates"), verdicts=artifacts.table("verdicts"),
                          config=config.review)
    return {pair: strata.get(pair) for pair in sorted(pairs)}


class _Earlier:
    """Queue and labels of all earlier campaigns of the review database, and this rebuild's tables."""

    def __init__(self, config: Config, artifacts: Artifacts, store: ReviewStore) -> None:
        from goldset.judges import load_rubric
        from goldset.review import ReviewStore

        self.config, self.artifacts, self.store = config, artifacts, store
        self.campaign = _campaign(artifacts)
        both = ReviewStore(config.review_url)
        self.queue, self.labels = (_others(table, self.campaign) for table in (both.queue(), both.labels()))
        self.rubric_major = load_rubric(config.path(config.judge.rubric)).version.split(".")[0]

    @cached_property
    def spans(self) -> pa.Table:
        """The spans of this rebuild."""
        return self.artifacts.table("spans")

    @cached_property
    def pooled(self) -> list[Pair]:
        """The candidates of this rebuild."""
        return pairs_of(self.artifacts.table("candidates"))

    @cached_property
    def questions(self) -> pa.Table:
        """The questions of this rebuild."""
        return self.artifacts.table("questions")

    @property
    def here(self) -> dict[str, Any]:
        """What a carried label is held against."""
        return {"spans": self.spans, "questions": self.questions, "candidates": self.artifacts.table("candidates"),
                "rubric_major": self.rubric_major, "campaign": self.campaign}

    def items(self, reason: str) -> int:
        """Ask again, in this campaign, what earlier ones asked for a reason and whose answers can be carried."""
        from goldset.review import ask, carried_labels, pairs_asked
        from goldset.review.queue import Wanted, as_row, ordered

        asked, seed = pairs_asked(self.store.queue(), reason), self.config.project.seed
        earlier, pooled = self.queue.filter(pc.equal(self.queue.column("reason"), reason)), set(self.pooled)
        wanted = {want.pair: want for row in earlier.to_pylist()
                  if (want := Wanted(row["question_id"], row["span_id"], reason, row["stratum"], row["stratum_size"],
                                     row["u"])).pair not in asked}
        if not wanted:
            return 0
        trial = ordered([as_row(want, campaign=self.campaign, wave=1) for want in wanted.values()], seed=seed, first=0)
        rows = carried_labels(queue=trial, labels=self.labels.slice(0, 0), earlier_queue=self.queue,
                              earlier_labels=self.labels, **self.here)
        items = {row["item_id"] for row in rows}
        known = {pair for pair, item in zip(pairs_of(trial), trial.column("item_id").to_pylist(), strict=True)
                 if item in items and (reason != CHECK or pair in pooled)}
        return ask(self.store, [want for pair, want in wanted.items() if pair in known], campaign=self.campaign,
                   seed=seed)

    def _of(self, campaign: str) -> tuple[pa.Table, pa.Table]:
        queue, labels = (table.filter(pc.equal(table.column("campaign"), campaign))
                         for table in (self.queue, self.labels))
        return queue, labels

    def same_text(self, campaign: str) -> int:
        """Carry the answers to the same question and span text."""
        from goldset.review import carried_labels

        queue, labels = self._of(campaign)
        rows = carried_labels(queue=self.store.queue(), labels=self.store.labels(), earlier_queue=queue,
                              earlier_labels=labels, **self.here)
        self.store.append_labels(rows)
        return len(rows)

    def spans_of(self, campaign: str) -> pa.Table | None:
        """The spans that an earlier rebuild was labelled on; None where they are those of this one, or gone."""
        workspace = Workspace(self.config.workspace)
        key = campaign.removeprefix("rebuild-")
        for folder in sorted((workspace.root / "artifacts" / "queue").glob(f"{key}*")) if key != campaign else []:
            if (folder / "manifest.json").exists():
                spans = read_json(folder / "manifest.json").get("made_from", {}).get("inputs", {}).get("spans")
                if spans is not None and spans != self.artifacts.refs["spans"].key and workspace.has("spans", spans):
                    return read_table(workspace.artifact("spans", spans), "spans")
        return None

    def other_spans(self, campaign: str, earlier_spans: pa.Table) -> Carried:
        """Carry what follows from the answers to other spans, and ask again where a yes was divided."""
        from goldset.review import divided_rows, layer_decisions

        queue, labels = self._of(campaign)
        asked = set(self.questions.column("question_id").to_pylist())
        labels = labels.filter(pc.is_in(labels.column("question_id"), value_set=pa.array(sorted(asked), pa.string())))
        layers = layer_decisions(queue=queue, labels=labels, spans=earlier_spans, rubric_major=self.rubric_major)
        stands = evidence_spans(spans=self.spans, decisions=layers["final"], earlier_spans=earlier_spans)
        gone = [pair for pair, spans in stands.items() if not spans]
        altered: dict[Pair, list[str]] = {}
        if gone:
            documents = self.artifacts.table("documents")
            found = {layer: follow_edits(decisions=table, spans=earlier_spans, documents=documents, pairs=gone,
                                         name=f"moved {layer}") for layer, table in layers.items()}
            layers = {layer: followed.decisions for layer, followed in found.items()}
            earlier_spans = pa.concat_tables([earlier_spans, *(followed.spans for followed in found.values())])
            stands = evidence_spans(spans=self.spans, decisions=layers["final"], earlier_spans=earlier_spans)
            changed = evidence_spans(spans=self.spans, decisions=found["final"].changed, earlier_spans=earlier_spans)
            altered = {found["final"].origin[pair]: spans for pair, spans in changed.items()}
        near = {(question, span) for (question, _), spans in stands.items() for span in spans}
        rules = _Rules(self.spans, earlier_spans, layers, labels, queue)
        final = rules.answers("final", sorted({*self.pooled, *near}))
        rows = rules.item_rows(self.store.queue(), self.store.labels(), final, self.campaign)
        self.store.append_labels(rows)
        here, given = self.store.queue(), self.store.labels()
        taken = {*pairs_of(here), *pairs_of(given)}
        pooled = set(self.pooled)
        extra = [row for pair, decision in final.items()
                 if pair not in taken and (decision["relevant"] or pair in pooled)
                 and (row := rules.row(decision, None, self.campaign)) is not None]
        self.store.append_labels(extra)
        yes = {pair for pair, decision in final.items() if decision["relevant"]}
        divided = {(pair[0], span) for pair, spans in stands.items()
                   if not any((pair[0], span) in yes for span in spans) for span in spans}
        divided |= {(pair[0], span) for pair, spans in altered.items() for span in spans}
        again = divided_rows(divided - taken, queue=here, seed=self.config.project.seed)
        self.store.append_queue(again)
        lost = [pair for pair, spans in stands.items() if not spans and not altered.get(pair)]
        return Carried(len(rows) + len(extra), len(again), lost)


class _Rules:
    """What the decisions of one earlier rebuild say of pairs of this one, by layer."""

    def __init__(self, spans: pa.Table, earlier_spans: pa.Table, layers: dict[str, pa.Table], labels: pa.Table,
                 queue: pa.Table) -> None:
        self._spans, self._earlier_spans, self._layers = spans, earlier_spans, layers
        self._hashes = dict(zip(*(spans.column(name).to_pylist() for name in ("span_id", "text_hash")), strict=True))
        self._sources = {row["label_id"]: row for row in labels.to_pylist()}
        settling = set(queue.filter(pc.equal(queue.column("reason"), "adjudication")).column("item_id").to_pylist())
        self._settled = {name for name, row in self._sources.items() if row["item_id"] in settling}

    def answers(self, layer: str, pairs: list[Pair]) -> dict[Pair, dict[str, Any]]:
        """Pairs that the decisions of a layer answer."""
        table = pa.table({"question_id": pa.array([question for question, _ in pairs], pa.string()),
                          "span_id": pa.array([span for _, span in pairs], pa.string())})
        found = carry_decisions(pairs=table, spans=self._spans, decisions=self._layers[layer],
                                earlier_spans=self._earlier_spans)
        return {(row["question_id"], row["span_id"]): row for row in found.to_pylist() if row["status"] == "decided"}

    def row(self, decision: dict[str, Any], item: str | None, campaign: str,
            avoid: Iterable[str] = ()) -> dict[str, Any] | None:
        """The label row of an answer."""
        from goldset.review import followed_label

        return followed_label(decision=decision, sources=self._sources, text_hash=self._hashes[decision["span_id"]],
                              item=item, campaign=campaign, avoid=avoid)

    def item_rows(self, queue: pa.Table, labels: pa.Table, final: dict[Pair, dict[str, Any]],
                  campaign: str) -> list[dict[str, Any]]:
        """Label rows for the open items.

        As with the same text: where a second item asks too, each takes what its own layer says; an item alone takes
        what was decided in the end; an adjudication only what an adjudication decided. Carried answers are read again
        by people, and so is what they then differ on.
        """
        from goldset.review import fresh_checks, layer_of, second_pairs, standing

        given = [answer for answer in standing(labels.to_pylist()) if answer.answers and answer.item_id is not None]
        done = {answer.item_id for answer in given}
        people: dict[Pair, set[str]] = {}
        for answer in given:
            people.setdefault(answer.pair, set()).add(answer.assessor)
        twice, disputed = second_pairs(queue), fresh_checks(queue, given)
        waiting = [row for row in queue.to_pylist() if row["item_id"] not in done]
        said = {layer: self.answers(layer, sorted({pair for row in waiting if (pair := _pair(row)) in twice}))
                for layer in ("first", "second")}
        made = []
        for item in waiting:
            pair, layer = _pair(item), layer_of(item["reason"])
            if layer == "check" or (layer == "adjudication" and pair in disputed):
                continue
            alone = layer == "first" and pair not in twice
            decision = (final if alone or layer == "adjudication" else said[layer]).get(pair)
            if decision is None or (layer == "adjudication" and not self._settled & set(decision["label_ids"])):
                continue
            row = self.row(decision, item["item_id"], campaign, avoid=people.get(pair, ()))
            if row is not None:
                people.setdefault(pair, set()).add(row["assessor"])
                made.append(row)
        return made


def _campaign(artifacts: Artifacts) -> str:
    name: str = artifacts.table("queue").column("campaign")[0].as_py()
    return name


def _others(table: pa.Table, campaign: str) -> pa.Table:
    """Rows of other campaigns."""
    return table.filter(pc.not_equal(table.column("campaign"), campaign))


def _pair(row: dict[str, Any]) -> Pair:
    return row["question_id"], row["span_id"]
