"""The hole probe as a loop: the audit draws it, people answer it on the review page, the audit goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goldset.audit import PER_QUESTION, Context, Drawn, Probe, reachable_spans, sift, take
from goldset.errors import DataError
from goldset.pipeline.runner import Say, silent
from goldset.stats.sampling import pairs_of
from goldset.store import read_json, write_json
from goldset.text import content_hash

if TYPE_CHECKING:
    from goldset.review import ReviewStore

SCHEMA = "goldset.probe/1"
Judges = Callable[[Context, Sequence[Drawn]], tuple[str, dict[tuple[str, str], bool | None]]]
"""Judges pairs: the context and the pairs -> who judged, in a few words, and pair -> relevant or None."""


def probe_loop(context: Context, folder: Path, *, say: Say = silent, serve: Callable[[str], None] | None = None,
               judge: Judges | None = None, per_question: int | None = None) -> Probe:
    """A folder with a review database -> the probe of this set with its answers so far.

    The first call draws the pairs and stores them with the texts; later ones find them there, so that answers stay
    valid whichever runs are given. One folder holds the probes of any number of sets, told apart by their labels.

    Args:
        context: the set and its systems.
        folder: where ``review.sqlite`` lies or is made, and what was drawn, in a file for each set.
        say: told how far the probe is.
        serve: told the page's address once it accepts connections; the page is then served until interrupted, and the
            audit goes on with what was answered. None: no page.
        judge: judges what is drawn before people see it; they then read only a sample of what it rejects.
        per_question: passages a question; more than before adds to the probe. None: as before, at first two.

    Raises:
        UsageError: no texts, or no two unrelated systems, as ``draw`` has it.
        MissingExtra: sqlalchemy is not installed.
    """
    from goldset.review import ReviewStore

    campaign = campaign_of(context)
    plan = folder / f"{campaign}.json"
    found = _read(plan) if plan.exists() else _plan(context)  # before anything is made: it may be refused
    folder.mkdir(parents=True, exist_ok=True)
    store = ReviewStore(f"sqlite:///{(folder / 'review.sqlite').resolve()}", campaign=campaign)
    try:
        _grow(context, store, campaign, plan, found, judge, per_question)
        probe = _answers(store, plan)
        if serve is not None and probe.open:
            _serve(context, store, campaign, serve)
            probe = _answers(store, plan)
        say(f"probe: {probe.asked - probe.open} of {probe.asked} passages answered in {folder}"
            + ("; answer the others on the page: the same command with --answer" if probe.open else ""))
        return probe
    finally:
        store.close()


def campaign_of(context: Context) -> str:
    """The name of a set's probe: other labels, another campaign."""
    table = context.labelled.judgments
    pairs = sorted(zip(table.column("question_id").to_pylist(), table.column("span_id").to_pylist(), strict=True))
    return f"probe-{content_hash('probe', pairs)[:12]}"


def _grow(context: Context, store: ReviewStore, campaign: str, path: Path, plan: dict[str, Any],
          judge: Judges | None, per_question: int | None) -> None:
    """Draw what is wanted and not there yet: the plan first, then the queue, so that a killed draw is finished."""
    from goldset.review import ask
    from goldset.review.queue import Wanted

    size = max(plan["per_question"], per_question or PER_QUESTION)
    queue = store.queue()
    there = set(pairs_of(queue))
    drawn = take(plan["reachable"], size)
    verdicts = _verdicts(plan)
    new = [row for row in drawn if row.pair not in there and row.pair not in verdicts]
    if judge is not None and new:
        plan["judge"], said = judge(context, new)
        verdicts |= said
    # Without a judge everything is read; who was asked stays asked, whatever a later judge might say.
    kept = [row for row in sift(drawn, verdicts, there) if row.asked and row.pair not in there]
    plan["per_question"] = size
    plan["verdicts"] = [[*pair, relevant] for pair, relevant in sorted(verdicts.items())]
    if kept or not path.exists():
        write_json(path, plan)
    ask(store, [Wanted(*row.pair, "probe", f"probe {row.question_id}", row.reachable, row.u) for row in kept],
        campaign=campaign, seed=0)
    if kept and not len(queue):
        assert context.corpus is not None, "nothing is within reach in a set without texts"
        assert context.labelled.questions is not None, "nothing is within reach in a set without texts"
        store.set_passages(questions=context.labelled.questions, spans=context.corpus.spans)


def _plan(context: Context) -> dict[str, Any]:
    runs = dict(context.runs)
    families = {name: context.family(name) for name in runs}
    if not any(families[a].isdisjoint(families[b]) for a in runs for b in runs) and context.bm25_run is not None \
            and not any("lexical" in family for family in families.values()):
        runs["bm25"], families["bm25"] = context.bm25_run, frozenset({"lexical"})
    return {"schema": SCHEMA, "set": context.labelled.label, "systems": sorted(runs), "per_question": 0, "judge": None,
            "verdicts": [], "reachable": reachable_spans(context, runs, families)}


def _read(path: Path) -> dict[str, Any]:
    plan: dict[str, Any] = read_json(path)
    if plan.get("schema") != SCHEMA:
        raise DataError(f"{path}: schema '{plan.get('schema')}' where '{SCHEMA}' was expected; name another folder "
                        "with --probe DIR")
    return plan


def _verdicts(plan: dict[str, Any]) -> dict[tuple[str, str], bool | None]:
    return {(question, span): relevant for question, span, relevant in plan["verdicts"]}


def _answers(store: ReviewStore, path: Path) -> Probe:
    from goldset.review import resolve

    plan, queue, labels = _read(path), store.queue(), store.labels()
    drawn = sift(take(plan["reachable"], plan["per_question"]), _verdicts(plan), set(pairs_of(queue)))
    answers: dict[tuple[str, str], bool | None] = {}
    for row in resolve(queue=queue, labels=labels).to_pylist() if len(queue) else []:
        if row["status"] in ("decided", "cant_tell"):
            answers[row["question_id"], row["span_id"]] = row["relevant"]
    return Probe(drawn, answers, plan["judge"])


def _serve(context: Context, store: ReviewStore, campaign: str, announce: Callable[[str], None]) -> None:
    from goldset.review import Passages, serve

    assert context.corpus is not None, "the probe was drawn from it"
    with suppress(KeyboardInterrupt):  # the page is left, the audit goes on
        serve(store, port=0, title=f"Probe of {context.labelled.label}", campaign=campaign, announce=announce,
              passages=Passages(spans=context.corpus.spans))
