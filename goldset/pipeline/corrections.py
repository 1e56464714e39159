"""The old headline taken apart: one change a row, and production's recall after it, recomputed on real data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from goldset.formats.sets import LabelledSet

ONE_GOLD = 0.9
"""Share of the old set's questions with a single gold from which it was labelled one gold a question."""


@dataclass(frozen=True)
class Step:
    """One row of the table: what changed, and production's recall after it."""

    what: str
    k: int
    value: float | None
    low: float | None
    high: float | None
    n: int


def corrections(old: LabelledSet, old_run: pa.Table, new: LabelledSet, run: pa.Table, *, evaluated: int,
                served: int, within: int | None = None) -> list[Step]:
    """The old headline, then one cause a row: k, questions, pool, completeness.

    After k the questions change: those of the log, labelled as the old set was, with the best-ranked gold of
    production's first ``within`` results and none else. Then the pool: questions whose gold only lies deeper or with
    other systems come back, still with one gold each. Then completeness: every gold. Where the old gold was looked for
    everywhere (``within`` None) the pool is no row, and where it held several a question neither is completeness.
    """
    steps = [_step("the old headline", old, old_run, evaluated),
             _step("k: as many results as the reader gets", old, old_run, served)]
    counts = old.gold.group_by("question_id").aggregate([("span_id", "count")]).column("span_id_count")
    if pc.mean(pc.equal(counts, 1)).as_py() < ONE_GOLD:
        return [*steps, _step("questions and gold: people's own", new, run, served)]
    old_way = _one_each(new, run, within=within)
    steps.append(_step("questions: people's own, labelled the old way", old_way, run, served))
    if within is not None:
        steps.append(_step("pool: also where only others found gold", _one_each(new, run, within=None), run, served))
    return [*steps, _step("completeness: all gold, not one a question", new, run, served)]


def _step(what: str, labelled: LabelledSet, run: pa.Table, k: int) -> Step:
    from goldset.metrics import score

    name = run.column("system")[0].as_py()
    row = next(row for row in score(labelled, {name: run}, ks=[k]).to_pylist()
               if row["measure"] == "recall" and row["slice"] == "all")
    return Step(what, k, row["value"], row["low"], row["high"], row["n"])


def _one_each(labelled: LabelledSet, run: pa.Table, *, within: int | None) -> LabelledSet:
    """The set with one gold a question, the one that the run ranks best.

    With ``within`` only gold at these ranks counts, and questions without one are left out, as the old set left them
    out; else a question whose gold the run never delivers keeps its first gold.
    """
    from goldset.spans import served

    corpus = labelled.corpus
    assert corpus is not None, "a published version carries its corpus"
    delivered = served(gold=labelled.gold, run=run, spans=corpus.spans, links=corpus.links, chunks=corpus.chunks)
    best: dict[str, tuple[float, str]] = {}
    for row in delivered.to_pylist():
        rank = float("inf") if row["rank"] is None else float(row["rank"])
        if within is None or rank <= within:
            mine = (rank, row["span_id"])
            best[row["question_id"]] = min(best.get(row["question_id"], mine), mine)
    mask = pa.array([best.get(row["question_id"], (0.0, ""))[1] == row["span_id"]
                     for row in labelled.gold.select(["question_id", "span_id"]).to_pylist()], pa.bool_())
    gold = labelled.gold.filter(mask)
    manifest = {name: value for name, value in labelled.manifest.items() if name != "sampling"}
    return replace(labelled, gold=gold, manifest=manifest,
                   judgments=labelled.judgments.filter(pc.is_in(labelled.judgments.column("question_id"),
                                                                gold.column("question_id").combine_chunks())))
