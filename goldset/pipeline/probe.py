"""The hole probe as a loop: the audit draws it, people answer it on the review page, the audit goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from goldset.audit import Context, Drawn, Probe, draw
from goldset.pipeline.runner import Say, silent
from goldset.text import content_hash

if TYPE_CHECKING:
    from goldset.review import ReviewStore


def probe_loop(context: Context, folder: Path, *, say: Say = silent,
               serve: Callable[[str], None] | None = None) -> Probe:
    """A folder with a review database -> the probe of this set with its answers so far.

    The first call draws the pairs and stores them with the texts; later ones find them there, so that answers stay
    valid whichever runs are given. One folder holds the probes of any number of sets, told apart by their labels.

    Args:
        context: the set and its systems.
        folder: where ``review.sqlite`` lies or is made.
        say: told how far the probe is.
        serve: told the page's address once it accepts connections; the page is then served until interrupted, and the
            audit goes on with what was answered. None: no page.

    Raises:
        UsageError: no texts, or no two unrelated systems, as ``draw`` has it.
        MissingExtra: sqlalchemy is not installed.
    """
    from goldset.review import ReviewStore

    folder.mkdir(parents=True, exist_ok=True)
    campaign = campaign_of(context)
    store = ReviewStore(f"sqlite:///{(folder / 'review.sqlite').resolve()}", campaign=campaign)
    try:
        if not len(store.queue()):
            _open(context, store, campaign)
        probe = _answers(store)
        if serve is not None and probe.open:
            _serve(context, store, campaign, serve)
            probe = _answers(store)
        say(f"probe: {len(probe.drawn) - probe.open} of {len(probe.drawn)} passages answered in {folder}"
            + ("; answer the others on the page: the same command with --answer" if probe.open else ""))
        return probe
    finally:
        store.close()


def campaign_of(context: Context) -> str:
    """The name of a set's probe: other labels, another campaign."""
    table = context.labelled.judgments
    pairs = sorted(zip(table.column("question_id").to_pylist(), table.column("span_id").to_pylist(), strict=True))
    return f"probe-{content_hash('probe', pairs)[:12]}"


def _open(context: Context, store: ReviewStore, campaign: str) -> None:
    from goldset.review import ask
    from goldset.review.queue import Wanted

    runs = dict(context.runs)
    families = {name: context.family(name) for name in runs}
    if not any(families[a].isdisjoint(families[b]) for a in runs for b in runs) and context.bm25_run is not None \
            and not any("lexical" in family for family in families.values()):
        runs["bm25"], families["bm25"] = context.bm25_run, frozenset({"lexical"})
    wanted = [Wanted(row.question_id, row.span_id, "probe", f"probe {row.question_id}", row.reachable, row.u)
              for row in draw(context, runs, families)]
    ask(store, wanted, campaign=campaign, seed=0)
    assert context.corpus is not None, "draw refuses a set without texts"
    assert context.labelled.questions is not None, "draw refuses a set without texts"
    store.set_passages(questions=context.labelled.questions, spans=context.corpus.spans)


def _answers(store: ReviewStore) -> Probe:
    from goldset.review import resolve

    queue, labels = store.queue(), store.labels()
    drawn = tuple(Drawn(row["question_id"], row["span_id"], row["stratum_size"], row["u"])
                  for row in queue.to_pylist())
    answers: dict[tuple[str, str], bool | None] = {}
    for row in resolve(queue=queue, labels=labels).to_pylist() if len(queue) else []:
        if row["status"] in ("decided", "cant_tell"):
            answers[row["question_id"], row["span_id"]] = row["relevant"]
    return Probe(drawn, answers)


def _serve(context: Context, store: ReviewStore, campaign: str, announce: Callable[[str], None]) -> None:
    from goldset.review import Passages, serve

    assert context.corpus is not None, "the probe was drawn from it"
    with suppress(KeyboardInterrupt):  # the page is left, the audit goes on
        serve(store, port=0, title=f"Probe of {context.labelled.label}", campaign=campaign, announce=announce,
              passages=Passages(spans=context.corpus.spans))
