"""The demo's story in words: what each step found, said to somebody who reads it for the first time."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goldset.config import Config
from goldset.formats.sets import LabelledSet

if TYPE_CHECKING:
    from goldset.pipeline.corrections import Step
    from goldset.pipeline.people import Published
    from goldset.pipeline.runner import Artifacts

WIDTH = 100
ASIDE = {
    "outside_window": "asked outside the six weeks", "no_time": "without a time", "empty": "empty",
    "greeting": "greetings", "machine": "from a monitoring robot", "language": "in another language",
    "followup": "follow-ups that mean nothing alone", "outside_frame": "outside the frame",
}
PROPERTIES = """\
  circularity    did the scored system choose its own right answers?
  leakage        were the questions written from the passages that answer them? (AUC 0.5: no)
  k mismatch     is recall quoted at more results than the reader gets?
  completeness   are there right answers that nobody has labelled?"""


def heading(number: int, title: str) -> str:
    """The title of a step."""
    return f"{'' if number == 1 else chr(10)}{number}. {title}\n"


def opening(old: LabelledSet, config: Config) -> str:
    """What is audited, and what the words mean."""
    scoring = config.scoring
    what = _paragraph(
        "Everything here is invented: the support handbook of a product that does not exist, six weeks of its search "
        f"log, and the readers' answers. A team has a labelled set: {len(old.gold)} questions that a model wrote from "
        "passages of the handbook, and for each one right passage, the gold, looked for among the first 10 results of "
        f"their search in production. The headline is recall@{scoring.evaluated_k}: the share of the gold that stands "
        f"among the first {scoring.evaluated_k} results. Readers get the first {scoring.served_k}.")
    words = _paragraph("The audit looks whether ids resolve (integrity), then for four ways to flatter. In its words a "
                       "span is a passage, and k the number of results that count.")
    return f"{what}\n\n{words}\n\n{PROPERTIES}\n"


def rebuilt(config: Config, artifacts: Artifacts, progress: Mapping[str, Any]) -> str:
    """From the log to the queue."""
    questions, pool = artifacts.report("questions"), artifacts.report("pool")
    drops = {row["reason"]: row["lines"] for row in artifacts.table("drops").to_pylist()}
    aside = [f"{drops[reason]} {said}" for reason, said in ASIDE.items() if drops.get(reason)]
    verdicts = artifacts.table("verdicts").column("relevant").to_pylist()
    lines = [
        f"log        {questions['lines']:,} lines, {questions['rejected']} of them damaged. Set aside: "
        f"{', '.join(aside)}.",
        f"sample     {questions['drawn']} of the {questions['eligible_events']} real questions in it, drawn as often "
        f"as people ask them: {len(artifacts.table('questions'))} different ones.",
        f"pool       the first {config.pool.depth} pieces of the handbook (chunks) that each of {len(config.systems)} "
        f"systems finds: {', '.join(config.systems)}. Chunks overlap, and what they share is read once: "
        f"{pool['chunks_per_question']:.0f} chunks a question become {pool['spans_per_question']:.0f} passages, "
        f"{pool['chunk_words_per_question']:,.0f} words become {pool['words_per_question']:,.0f}.",
        "judge      how similar a small language model finds question and passage; it marks "
        f"{sum(map(bool, verdicts)):,} of {len(verdicts):,} pairs as likely answers. It is declared weak, and it only "
        "sorts the reading: each label is a person's.",
        f"           {judge_dependence(config)}",
        f"queue      {progress['items']:,} pairs to read first: all that the judge marked, and a sample of what it "
        "rejected.",
    ]
    return "\n".join(_hang(line) for line in lines)


def judge_dependence(config: Config) -> str:
    """Systems that share the judge's model, and what that means."""
    from goldset.judges import independence

    found = independence(config.judge.family, {name: config.family(name) for name in config.systems})
    return f"{'; '.join(found)} (what these overlook, it overlooks too)." if found else ""


def answered(progress: Mapping[str, Any]) -> str:
    """How the queue was worked off."""
    people = ", ".join(f"{name} {row['answered']:,}" for name, row in sorted(progress["assessors"].items()))
    return _paragraph(
        f"{progress['answered']:,} of {progress['items']:,} items answered in {progress['waves']} waves ({people}). "
        "Later waves hold what the answers made necessary: all passages for a question still without an answer, a "
        "second reader for each yes, a third where two differ. "
        f"{progress['open']} open, {progress['conflicts']} conflicts left.")


def measured_judge(published: Published) -> str:
    """What people's answers say about the readers and the judge."""
    card, agreement = published.manifest["card"], published.manifest["agreement"]
    lines = [f"Two readers agree on {100 * agreement['agreement']:.1f} % of {agreement['n']:,} pairs that both read "
             f"(on {100 * agreement['positive_agreement']:.1f} % of the yes)." if agreement["n"] else "",
             " ".join(card["sentences"])]
    rows = [f"  {row['system']:<12} {_share(row)}, of {row['n']} right passages that were read"
            for row in card["miss_rate_by_system"]]
    return "\n".join([_paragraph(" ".join(filter(None, lines))),
                      "What the judge missed of the right passages that each system returned:", *rows])


def own_weakness(published: Published) -> str:
    """Why the rebuilt set may fail its own audit, and what would mend it; empty where it does not."""
    rows = published.outcome.findings.to_pylist()
    if not any(row["check"] == "completeness" and row["reason"] == "incomplete" for row in rows):
        return ""
    return "\n" + _paragraph(
        "The new set fails one of its own checks, and says so: the weak judge threw away passages that answer, and "
        "people saw only a sample of what it threw away. A better judge or more reading mends it; until then the "
        "corrected number below counts what the sample stands for.")


def table(steps: list[Step]) -> str:
    """The headline, one change a row."""
    width = max(len(step.what) for step in steps)
    lines = [f"{'':{width}}  {'recall':>13}  {'95 % interval':>14}  {'n':>4}  change"]
    last: float | None = None
    for step in steps:
        value = "unknown" if step.value is None else f"{step.value:.3f}"
        interval = "no interval" if step.low is None or step.high is None else f"{step.low:.3f} to {step.high:.3f}"
        change = "" if last is None or step.value is None else f"{step.value - last:+.3f}"
        row = f"{step.what:{width}}  {value:>7} at {step.k:<2}  {interval:>14}  {step.n:>4}  {change:>6}"
        lines.append(row.rstrip())
        last = step.value if step.value is not None else last
    return "\n".join([*lines, "n: questions with gold. The old way is one gold a question, from production's top 10; "
                              "a question\nwithout one is left out."])


def corrected(published: Published, system: str, k: int) -> str:
    """Recall at the served k, its floor, and what the sampled rejections stand for."""
    measurements, sampling = published.outcome.measurements, published.manifest["sampling"]
    rows = {row["measure"]: row for row in (measurements.to_pylist() if measurements is not None else [])
            if row["system"] == system and row["k"] == k and row["slice"] == "all"}
    lines = []
    for name, said in (("recall", f"recall of {system} at {k}, mean of the questions"),
                       ("recall_floor", "floor: a question without a known answer is a miss"),
                       ("recall_micro_naive", "all gold in one pot"),
                       ("recall_micro", "the same, with what is left in the rejections")):
        row = rows.get(name)
        if row and row["value"] is not None:
            ends = f" (95 % {row['low']:.3f} to {row['high']:.3f})" if row["low"] is not None else ""
            lines.append(f"  {said:<52} {row['value']:.3f}{ends}")
    return "\n".join(["", *lines, _paragraph(
        f"People read a sample of {sampling['sampled']:,} of the judge's {sampling['rejections']:,} rejections and "
        f"found {sampling['found']} that answer after all; each stands for many, hence the wide interval. All of it is "
        "relative to the pool: what no system returned, nobody has read.")])


def reading(published: Published) -> str:
    """What people read, against reading everything."""
    cost = published.manifest["reading"]
    return (f"\nRead by people: {cost['read_words']:,} words in {cost['read_items']:,} items, about "
            f"{cost['read_hours']:.1f} hours, second readings included.\nThe whole pool, once: {cost['pool_words']:,} "
            f"words in {cost['pool_items']:,} pairs, about {cost['pool_hours']:.1f} hours.")


def closing(folder: Path, report: Path) -> str:
    """Where to look next."""
    return (f"\nReports to open in a browser:\n  {folder / 'old-set.html'}\n  {report}\n"
            f"The page on which people read, with the same queue and nothing answered yet:\n"
            f"  goldset demo --keep {folder} --serve")


def _share(row: Mapping[str, Any]) -> str:
    if row["value"] is None:
        return "unknown"
    ends = f" (95 % {row['low']:.2f} to {row['high']:.2f})" if row["low"] is not None else ""
    return f"{row['value']:.2f}{ends}"


def _paragraph(text: str) -> str:
    return textwrap.fill(text.replace(" %", "\u00a0%"), WIDTH, break_on_hyphens=False).replace("\u00a0", " ")


def _hang(line: str) -> str:
    """A line whose continuation stands under its text."""
    return textwrap.fill(line.replace(" %", "\u00a0%"), WIDTH, subsequent_indent=" " * 11, break_on_hyphens=False,
                         drop_whitespace=True).replace("\u00a0", " ")
