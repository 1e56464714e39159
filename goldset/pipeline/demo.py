"""The demo's story: audit a flattering set, rebuild it, replay the readers, publish, audit again, before and after.

A sequence that is handed a runner: ``goldset demo`` hands it the plain one, ``python -m flows.demo`` Prefect's.
Nothing here is special to the demo's numbers: each is computed by the code that any set goes through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.config import Config, load_config
from goldset.formats.sets import LabelledSet
from goldset.pipeline.checks import audit_any, split_runs
from goldset.pipeline.people import Published, open_review, publish, replay_review
from goldset.pipeline.runner import Artifacts, Runner, Say, plain, rebuild, silent
from goldset.resources import resource

Show = Callable[[str], None]
OLD_RULE = 10  # the old set's gold was taken from production's top 10


@dataclass(frozen=True)
class Story:
    """How the demo ended: the content hash of the version and the before-and-after table."""

    content_hash: str
    table: str


@dataclass(frozen=True)
class Step:
    """One row of the table: what changed, and production's recall after it."""

    what: str
    k: int
    value: float | None
    low: float | None
    high: float | None
    n: int


def demo_config(keep: Path) -> Config:
    """The demo's configuration, working in ``keep``."""
    return load_config(resource("configs/demo.toml"), project={"workspace": str(keep.resolve())})


def tell(*, keep: str | Path | None = None, runner: Runner = plain, say: Say = silent, show: Show = silent) -> Story:
    """Run the story in the folder ``keep`` (default workspace/demo); what is there already is reused."""
    folder = Path(keep) if keep else Path("workspace") / "demo"
    config = demo_config(folder)
    scoring = config.scoring
    evaluated, served = scoring.evaluated_k or scoring.served_k, scoring.served_k

    show(f"1. The old set: {scoring.system} at {evaluated}, as teams report it\n")
    old, old_runs = _old_set(scoring.system)
    outcome = runner("audit-old-set", lambda: audit_any(
        old, old_runs, logs=resource("data/demo/queries.jsonl"), logs_text="q", eval_k=evaluated,
        retrieve_k=scoring.retrieved_k, serving_k=served, families={scoring.system: config.family(scoring.system)}))
    outcome.write_html(folder / "old-set.html")
    show(outcome.brief())

    show("\n2. The rebuild: from the log to a queue for people\n")
    artifacts = rebuild(config, runner=runner, quiet=False, say=say)
    progress = open_review(config, artifacts)
    show(_pool_text(config, artifacts, progress))

    show("\n3. People: the recorded readers answer wave by wave\n")
    answered = runner("replay", lambda: replay_review(config, say=say))
    show(_people_text(answered))

    show("\n4. The published version, audited in its turn\n")
    published = publish(config, runner=runner, say=say)
    show(published.brief())

    show("\n5. Before and after: what the old headline was made of\n")
    steps = runner("before-and-after", lambda: corrections(
        old, old_runs[scoring.system], published.outcome.labelled,
        split_runs(artifacts.table("run"), config.systems)[scoring.system], evaluated=evaluated, served=served))
    table = _table(steps)
    show(table)
    show(_corrected_text(published.outcome.measurements, scoring.system, served))
    show(_reading_text(published))
    published.outcome.write_html(published.path / "report.html", [asdict(step) for step in steps])
    report = folder / published.path.relative_to(folder.resolve()) / "report.html"
    show(f"\nreports: {folder / 'old-set.html'} and {report}\n"
         f"the same queue in a browser: goldset demo --keep {folder} --serve")
    return Story(published.manifest["content_hash"], table)


def _old_set(system: str) -> tuple[LabelledSet, dict[str, pa.Table]]:
    from goldset.formats.sets import load_set
    from goldset.formats.trec import read_run

    return load_set(resource("data/demo/old_set")), {
        system: read_run(resource("data/demo/old_set_production.run.gz"), system=system)}


def corrections(old: LabelledSet, old_run: pa.Table, new: LabelledSet, run: pa.Table, *, evaluated: int,
                served: int) -> list[Step]:
    """The old headline, then one change a row, each recomputed: k, questions, pool, completeness."""
    return [
        _step("the old headline", old, old_run, evaluated),
        _step("k: what is served", old, old_run, served),
        _step(f"questions: from the log, labelled as the old set was (one gold, from the top {OLD_RULE})",
              _within(new, run, OLD_RULE, one=True), run, served),
        _step("completeness: every gold that production itself returned", _within(new, run, None, one=False), run,
              served),
        _step("pool: every gold that any system returned or people found", new, run, served),
    ]


def _step(what: str, labelled: LabelledSet, run: pa.Table, k: int) -> Step:
    from goldset.metrics import score

    name = run.column("system")[0].as_py()
    row = next(row for row in score(labelled, {name: run}, ks=[k]).to_pylist()
               if row["measure"] == "recall" and row["slice"] == "all")
    return Step(what, k, row["value"], row["low"], row["high"], row["n"])


def _within(labelled: LabelledSet, run: pa.Table, depth: int | None, *, one: bool) -> LabelledSet:
    """The set with only the gold that a run delivers within ``depth``; with ``one``, the best-ranked a question."""
    from goldset.spans import served

    corpus = labelled.corpus
    assert corpus is not None, "a published version carries its corpus"
    delivered = served(gold=labelled.gold, run=run, spans=corpus.spans, links=corpus.links, chunks=corpus.chunks)
    kept: dict[str, list[tuple[int, str]]] = {}
    for row in delivered.to_pylist():
        if row["rank"] is not None and (depth is None or row["rank"] <= depth):
            kept.setdefault(row["question_id"], []).append((row["rank"], row["span_id"]))
    pairs = {(question, span) for question, ranks in kept.items() for _, span in sorted(ranks)[: 1 if one else None]}
    mask = pa.array([(row["question_id"], row["span_id"]) in pairs
                     for row in labelled.gold.select(["question_id", "span_id"]).to_pylist()], pa.bool_())
    gold = labelled.gold.filter(mask)
    manifest = {name: value for name, value in labelled.manifest.items() if name != "sampling"}
    return replace(labelled, gold=gold, manifest=manifest,
                   judgments=labelled.judgments.filter(pc.is_in(labelled.judgments.column("question_id"),
                                                                gold.column("question_id").combine_chunks())))


def _pool_text(config: Config, artifacts: Artifacts, progress: dict[str, Any]) -> str:
    questions, pool, judge = artifacts.report("questions"), artifacts.report("pool"), artifacts.report("judge")
    drops = {row["reason"]: row["lines"] for row in artifacts.table("drops").to_pylist()}
    lines = [f"log: {questions['lines']} lines, {questions['rejected']} damaged; "
             + ", ".join(f"{count} {reason}" for reason, count in sorted(drops.items())),
             f"sample: {len(artifacts.table('questions'))} questions",
             f"pool at depth {config.pool.depth}, a question: {pool['chunks_per_question']:.1f} chunks fold into "
             f"{pool['spans_per_question']:.1f} spans; {pool['chunk_words_per_question']:,.0f} words become "
             f"{pool['words_per_question']:,.0f}",
             "judge: " + ", ".join(f"{count} {status}" for status, count in sorted(judge["status"].items()))]
    lines += _independence(config)
    return "\n".join([*lines, f"queue: {progress['items']} items in wave 1"])


def _independence(config: Config) -> list[str]:
    from goldset.judges import independence

    return independence(config.judge.family, {name: config.family(name) for name in config.systems})


def _people_text(progress: dict[str, Any]) -> str:
    people = ", ".join(f"{name} {row['answered']}" for name, row in sorted(progress["assessors"].items()))
    return (f"{progress['answered']} of {progress['items']} items answered in {progress['waves']} waves ({people}); "
            f"{progress['open']} open, {progress['conflicts']} conflicts left")


def _corrected_text(measurements: pa.Table | None, system: str, k: int) -> str:
    """What the sampled rejections stand for: gold over gold, before and after the correction."""
    rows = {row["measure"]: row for row in (measurements.to_pylist() if measurements is not None else [])
            if row["system"] == system and row["k"] == k and row["slice"] == "all"}
    naive, corrected, floor = (rows.get(name) for name in ("recall_micro_naive", "recall_micro", "recall_floor"))
    lines = []
    if naive and corrected and corrected["value"] is not None:
        lines.append(f"gold over gold, {naive['value']:.3f} at {k}; corrected for what the judge's rejections still "
                     f"hold, {corrected['value']:.3f} ({corrected['low']:.3f} to {corrected['high']:.3f})")
    if floor and floor["value"] is not None:
        lines.append(f"floor, with every question without an answer counted as a miss: {floor['value']:.3f} "
                     f"({floor['low']:.3f} to {floor['high']:.3f})")
    return "\n".join(["", *lines, "all of it relative to the pool: what no system returned, nobody has read"])


def _reading_text(published: Published) -> str:
    reading = published.manifest["reading"]
    return (f"\nread by people: {reading['read_words']:,} words in {reading['read_items']:,} items, about "
            f"{reading['read_hours']:.1f} h; the whole pool: {reading['pool_words']:,} words in "
            f"{reading['pool_items']:,} pairs, about {reading['pool_hours']:.1f} h")


def _table(steps: list[Step]) -> str:
    width = max(len(step.what) for step in steps)
    lines = [f"{'':{width}}  recall         95 % interval     n  change"]
    last: float | None = None
    for step in steps:
        value = "unknown" if step.value is None else f"{step.value:.3f}"
        interval = "no interval" if step.low is None or step.high is None else f"{step.low:.3f} – {step.high:.3f}"
        change = "" if last is None or step.value is None else f"{step.value - last:+.3f}"
        lines.append(f"{step.what:{width}}  {value:>7} at {step.k:<2}  {interval:>13}  {step.n:>4}  {change:>6}")
        last = step.value if step.value is not None else last
    return "\n".join(lines)
