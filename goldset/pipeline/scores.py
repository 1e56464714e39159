"""Recall and comparison of any set with its runs: numbers, words served, warnings, and the gate."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import ExitCode, UsageError, nearest
from goldset.formats.sets import LabelledSet
from goldset.pipeline.curves import Beside, Section, interval, number

# What a terminal shows; --json has every measure of the registry.
SHOWN = ("recall", "recall_low", "recall_high", "recall_ties_low", "recall_ties_high", "recall_ceiling",
         "recall_traffic", "recall_micro", "recall_deep", "recall_macro_ht", "recall_floor", "hit", "unjudged",
         "answerable")
ALWAYS = ("recall", "recall_traffic")
"""Shown with their reason where they are null: a refused claim must be seen to be refused."""
UNJUDGED_MOST = 0.1
"""Share of served chunks that nobody judged above which recall is only what is known of them."""

RULES = """\
How recall is counted:
1. The rank column decides the order; equal scores are not reordered. The served list is cut at k (or at --budget
   words) first. A passage that is returned twice keeps the slot it used up.
2. A gold is delivered when every one of its evidence sentences is covered at least 0.9 (non-space characters; table
   rows whole) by the union of the served chunks. A text that stands in several documents counts from any of them.
   Where evidence is missing: the same chunk id delivers; else the number is read two ways (recall_low, recall_high)
   and is null where they differ.
3. A question without known gold is excluded and counted; recall_floor counts it as 0. A question with gold for which
   the system returned nothing counts 0 and is counted apart.
4. A question counts as often as it was drawn from the log. Where distinct questions were drawn, each counts once, and
   recall_traffic weighs it by how often it was asked; it is null where by that weight fewer than 30 questions count.
   Intervals are 95 %, with near-duplicate questions as the unit of variance; they never have zero width at 0 or 1.
5. Equal scores keep the order that was served. Where they straddle the cut, recall_ties_low and recall_ties_high say
   what recall would be had they fallen against and for the gold. recall_ceiling says what recall cannot exceed where
   gold is not in the corpus or questions are not in the run.
6. Where grades go above 1, --relevant-from says which of them answer; the others do not. Grade -1 means unjudged, and
   an unjudged passage is not a no: its share is printed as unjudged.
7. Everything is relative to the pool: what no system returned, nobody has read.
"""


def cautions(labelled: LabelledSet) -> list[str]:
    """What every output of a version repeats: whose model its judge shares, what it lost, whose holes it filled.

    Reading what a system serves finds gold that this system delivers: the others' holes may hold as much.
    """
    moved = labelled.manifest.get("reanchored", {}).get("caution")
    found = (labelled.manifest.get("holes") or {}).get("gold_by_system", {})
    filled = [f"{count:,} gold are known only because people read what {system} serves; beside it, a system whose "
              "served passages nobody read looks worse than it is" for system, count in found.items() if count]
    return [*labelled.manifest.get("card", {}).get("independence", []), *([moved] if moved else []), *filled]


def main_measures(measurements: pa.Table) -> pa.Table:
    """What a terminal shows: SHOWN, without what the set cannot give; ALWAYS even so; of slices ``recall`` alone."""
    of_all = pc.equal(measurements.column("slice"), "all")
    wanted = pc.if_else(of_all, pc.is_in(measurements.column("measure"), pa.array(SHOWN)),
                        pc.equal(measurements.column("measure"), "recall"))
    shown = measurements.filter(wanted)
    return shown.filter(pc.or_(pc.is_valid(shown.column("value")), pc.is_in(shown.column("measure"), pa.array(ALWAYS))))


def warnings(measurements: pa.Table, offer: str = "") -> list[str]:
    """What a reader of the recall must know: unjudged passages, ties at the cut, and what it cannot exceed.

    ``offer`` is what can be done about unjudged passages of this set.
    """
    from goldset.metrics.measures import CLIPPED

    lines = []
    for row in measurements.to_pylist():
        value, system, k = row["value"], row["system"], row["k"]
        if row["slice"] != "all" or value is None:
            continue
        counts = {item["reason"]: item["count"] for item in row["excluded"]}
        if (row["method"] or "").endswith(CLIPPED):
            lines.append(f"{system}: {row['measure']} came out beyond {value:g} and was cut there; a few finds in the "
                         "sample of rejections stand for many")
        if row["measure"] == "unjudged" and value > UNJUDGED_MOST:
            at = "within the budget" if k is None else f"in its first {k}"
            lines.append(f"{system}: nobody judged {value:.1%} of what it serves {at} (more than {UNJUDGED_MOST:.0%}); "
                         f"gold among it is not counted{offer and f'; {offer}'}")
        if row["measure"] == "recall_ties_high":
            lines.append(f"{system}: equal scores straddle the cut at {k}, {_questions(counts['counted_tied'])}; see "
                         "recall_ties_low and recall_ties_high")
        if row["measure"] == "recall_ceiling":
            causes = [f"{what}: {_questions(counts[why])}" for why, what in
                      (("counted_gold_outside", "gold is not in the corpus"),
                       ("counted_missing", "not in the run")) if why in counts]
            lines.append(f"{system}: recall cannot exceed {value:.3f} ({'; '.join(causes)})")
    return lines


_LAST = 2**31 - 1
SHOW_CHANGED = 5
"""Questions, and gold of one question, that a comparison shows on a terminal; --json has all."""


def _questions(count: int) -> str:
    return f"{count:,} question{'' if count == 1 else 's'}"


def explain() -> str:
    """The rules, every measure with its formula and source, and where METHODS is."""
    from goldset.metrics import MEASURES
    from goldset.resources import resource

    lines = [RULES, "Measures:"]
    for measure in MEASURES.values():
        lines += textwrap.wrap(f"{measure.name}{'@k' if measure.cutoff else ''}: {measure.formula} ({measure.source})",
                               110, initial_indent="  ", subsequent_indent="      ")
    return "\n".join([*lines, f"Formulas, assumptions and examples: {resource('goldset/METHODS.md')}"])


def _offer(labelled: LabelledSet) -> str:
    """How the unjudged passages of a set come before people."""
    if labelled.kind == "published":
        return "--queue -c CONFIG puts it before people"
    return "'goldset audit' with --probe DIR puts a sample of it before people"


def outside(labelled: LabelledSet) -> dict[str, Any]:
    """What probably lies outside the pool of a set; ``at_least`` is null with a ``reason`` where nothing tells."""
    found: dict[str, Any] | None = labelled.manifest.get("outside_the_pool")
    return found or {"at_least": None, "reason": "pool_not_recorded"}


def beyond(labelled: LabelledSet, measurements: pa.Table) -> list[str]:
    """Two lines that stand beside every recall: what it is relative to, and what the deep probe adds to that."""
    manifest = labelled.manifest
    if "pool" not in manifest:
        return ["Relative to the pool: recall counts what was labelled. This set does not say how its passages were "
                "found, so how much is missing is unknown."]
    from goldset.metrics.outside import sentence

    systems = [name for name, facts in manifest["systems"].items() if not facts["audit_only"]]
    told = outside(labelled)
    missing = ("How many relevant passages lie outside it is unknown: this version does not record the ranks of its "
               "pool." if told["reason"] == "pool_not_recorded" else sentence(told))
    lines = [f"Relative to the pool: recall counts what {', '.join(systems)} returned in their first "
             f"{manifest['pool']['depth']}; what none of them returned, nobody has read. {missing}"]
    probe = manifest.get("deep")
    if not probe:
        return [*lines, "recall_deep: unknown. Nobody has read below the pool; 'goldset deepen' draws what to read."]
    rows = [row for row in measurements.to_pylist() if row["measure"] == "recall_deep" and row["slice"] == "all"]
    values = "; ".join(f"{row['system']}{'' if row['k'] is None else ' at ' + str(row['k'])}: "
                       + (interval(row["value"], row["low"], row["high"]) if row["value"] is not None else
                          f"unknown ({row['reason']})") for row in rows)
    found, read = (sum(row[name] for row in probe["strata"]) for name in ("found", "read"))
    return [*lines, f"recall_deep: {values}. It covers {probe['covers']} too, and nothing beyond: of "
            f"{probe['window']:,} pairs there, {probe['drawn']:,} were drawn, people read {read:,}, {found:,} answer."]


@dataclass(frozen=True)
class Measured:
    """Measurements of one or more systems, with the words that they serve."""

    labelled: LabelledSet
    measurements: pa.Table
    words: list[dict[str, Any]]
    sections: tuple[Section, ...] = ()
    cutoffs: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The document goldset.recall/1."""
        from goldset.report import render_recall_json

        return {**render_recall_json(self.measurements), "set": self.labelled.label, "words_served": self.words,
                "relevant_from": self.labelled.relevant_from, "cautions": cautions(self.labelled),
                "warnings": warnings(self.measurements, _offer(self.labelled)),
                "outside_the_pool": outside(self.labelled), "deep_probe": self.labelled.manifest.get("deep"),
                "partial": bool(self.labelled.manifest.get("partial")),
                **{section.key: section.value for section in self.sections}}

    def text(self) -> str:
        """The answer on a terminal: the main measures; the others with --json."""
        from goldset.report import render_measurements

        table = render_measurements(main_measures(self.measurements), notes=self.relative_to)
        return "\n".join([self.heading, table, *self.notes()])

    @property
    def heading(self) -> str:
        """The set, whether its review is complete, and from which grade on a passage answers."""
        head = self.labelled.label
        if self.labelled.manifest.get("partial"):
            head += "  PARTIAL: the review is not complete"
        if self.labelled.relevant_from is not None:
            head += f", relevant from grade {self.labelled.relevant_from}"
        return head

    @property
    def relative_to(self) -> list[str]:
        """What recall is relative to, and what is known of the rest."""
        return beyond(self.labelled, self.measurements)

    def notes(self) -> list[str]:
        """What stands below the numbers: words served, what was asked for beside them, warnings and cautions."""
        served = [f"{row['system']} serves {row['words']:,.0f} words "
                  + ("within the budget" if row["k"] is None else f"at {row['k']}")
                  + (f" ({row['unknown']:,} passages without a text not counted)" if row["unknown"] else "")
                  for row in self.words if row["words"] is not None]
        warned = [f"warning: {line}" for line in warnings(self.measurements, _offer(self.labelled))]
        parts = [line for section in self.sections for line in section.lines]
        return [*([", ".join(served)] if served else []), *parts, *warned, *cautions(self.labelled)]

    def gate(self, least: float) -> Gate:
        """What ``--min`` says: a system and cutoff passes on its lower bound, fails on its upper, else undecided."""
        rows = []
        for row in self.measurements.to_pylist():
            if row["measure"] == "recall" and row["slice"] == "all":
                word = ("pass" if row["low"] is not None and row["low"] >= least else
                        "fail" if row["high"] is not None and row["high"] < least else "undecided")
                rows.append({**{name: row[name] for name in ("system", "k", "value", "low", "high", "reason")},
                             "verdict": word})
        return Gate(least, rows)


@dataclass(frozen=True)
class Gate:
    """``--min``: a verdict for each system and cutoff; the gravest decides."""

    least: float
    rows: list[dict[str, Any]]

    @property
    def verdict(self) -> str:
        """fail, undecided or pass."""
        words = {row["verdict"] for row in self.rows}
        return next(word for word in ("fail", "undecided", "pass") if word in words)

    @property
    def code(self) -> int:
        """Exit code."""
        return int({"pass": ExitCode.DONE, "fail": ExitCode.CHECK_FAILED, "undecided": ExitCode.TOO_LITTLE_DATA}[
            self.verdict])

    def as_json(self) -> dict[str, Any]:
        """The key ``gate`` of goldset.recall/1."""
        return {"least": self.least, "verdict": self.verdict, "rows": self.rows}

    def lines(self) -> list[str]:
        """A line a system and cutoff: which end of the interval decided, or why none could."""
        found = []
        for row in self.rows:
            where = f"{row['system']}{'' if row['k'] is None else ' at ' + str(row['k'])}"
            if row["low"] is None:
                why = f"no interval ({row['reason'] or 'one question'})"
            else:
                why = {"pass": f"the lower end {row['low']:.3f} reaches it",
                       "fail": f"even the upper end {row['high']:.3f} does not reach it",
                       "undecided": f"it lies between {row['low']:.3f} and {row['high']:.3f}"}[row["verdict"]]
            found.append(f"gate {self.least:g}: {where}: {row['verdict']}, {why}")
        return found


def recall_any(labelled: LabelledSet, runs: Mapping[str, pa.Table], *, ks: Sequence[int], budget: int | None = None,
               by: Sequence[str] = (), chunks: pa.Table | None = None, beside: Beside | None = None,
               empty: Mapping[str, Sequence[str]] | None = None) -> Measured:
    """Measure every system at every cutoff; without cutoff and budget, at the serving k that the version names.

    ``chunks`` says what the runs' chunk ids mean where they are of another chunking than the version's; ``empty`` are
    the questions that a system answered with an empty list, which a run cannot hold.
    """
    from goldset.formats.runs import status_of
    from goldset.metrics import cut_by_words, score, words_served

    cutoffs = list(ks)
    if not cutoffs and budget is None:
        served = labelled.manifest.get("scoring", {}).get("served_k")
        if served is None:
            raise UsageError("no cutoff: name the k that production serves, e.g. --k 5, or a budget of words")
        cutoffs = [int(served)]
    measurements = score(labelled, dict(runs), ks=cutoffs, by=by, budget=budget, chunks=chunks, status={
        name: status_of(name, questions) for name, questions in (empty or {}).items() if questions})
    words = words_served(labelled, runs, ks=cutoffs, chunks=chunks) if labelled.load_corpus and cutoffs else []
    if budget is not None:
        within = {name: cut_by_words(labelled, run, budget, chunks=chunks) for name, run in runs.items()}
        words += [{**row, "k": None} for row in words_served(labelled, within, ks=[_LAST], chunks=chunks)]
    sections = replace(beside or Beside(), by=by).sections(labelled, runs, ks=cutoffs, chunks=chunks)
    return Measured(labelled, measurements, words, sections, tuple(cutoffs))


@dataclass(frozen=True)
class Compared:
    """The paired difference of two systems."""

    document: dict[str, Any]

    @property
    def verdict(self) -> str:
        """better, worse, no_difference_shown or too_few_to_tell: B against A."""
        return str(self.document["verdict"])

    def as_json(self) -> dict[str, Any]:
        """The document goldset.compare/1."""
        return {"schema": "goldset.compare/1", **self.document}

    def text(self) -> str:
        """The answer on a terminal."""
        found = self.document
        a, b = found["system_a"], found["system_b"]
        told = (f"{b} is {found['verdict']}" if found["verdict"] in ("better", "worse")
                else found["verdict"].replace("_", " "))
        warned = "".join(f"; but {warning}" for warning in found["warnings"])
        where = f"recall@{found['k']}" if found["k"] is not None else f"recall within {found['budget']:,} words"
        lines = [f"{where} of {a}: {number(found['recall_a'])}, of {b}: {number(found['recall_b'])}, "
                 f"on {found['n']} questions",
                 f"{b} minus {a}: {number(found['difference'])} "
                 f"({number(found['low'])} to {number(found['high'])}), "
                 + (f"p = {number(found['p'])}" if found["p"] is None or found["p"] >= 0.001 else "p < 0.001"),
                 f"{found['discordant']} questions differ; smallest difference this set can show: "
                 f"{number(found['detectable'])}",
                 *([f"{a} serves {found['words_a']:,.0f} words, {b} {found['words_b']:,.0f}"]
                   if found["words_a"] is not None and found["words_b"] is not None else []),
                 f"verdict: {told}{warned}"]
        if found["changed"]:
            lines.append(f"the questions that differ most (ranks of their gold in {a} and {b}, - = not in the list):")
            lines += [_change(row) for row in found["changed"][:SHOW_CHANGED]]
        return "\n".join(lines)


def _change(row: Mapping[str, Any]) -> str:
    ranks = ", ".join(f"{'-' if gold['rank_a'] is None else gold['rank_a']} and "
                      f"{'-' if gold['rank_b'] is None else gold['rank_b']}" for gold in row["gold"][:SHOW_CHANGED])
    more = f", {len(row['gold']) - SHOW_CHANGED} more" if len(row["gold"]) > SHOW_CHANGED else ""
    text = textwrap.shorten(row["text"] or "", 60, placeholder=" …")
    return f"  {row['change']:+.3f}  {row['question_id']}  {text}  {ranks}{more}".replace("    ", "  ")


def compare_any(labelled: LabelledSet, runs: Mapping[str, pa.Table], *, k: int | None = None,
                budget: int | None = None, chunks: Mapping[str, Path] | None = None,
                fields: Mapping[str, str] | None = None) -> Compared:
    """Two runs, the first named is A, the second B, at k or at a budget of words.

    ``chunks``: system -> file of the chunking that its ids are of; ``fields``: what the fields of these are called.

    Raises:
        UsageError: another chunking for a set whose gold are ids, or for a system that is not compared.
    """
    from goldset.metrics import compare
    from goldset.pipeline.chunking import read_chunking

    (a, run_a), (b, run_b) = runs.items()
    for name in chunks or {}:
        if name not in runs:
            raise UsageError(f"--chunks {name}=…: no --run is called '{name}'; {nearest(name, runs)}")
    document = compare(labelled, run_a, run_b, k, names=(a, b), budget=budget,
                       words=labelled.kind == "published" or budget is not None, chunks={
                           name: read_chunking(labelled, path, fields) for name, path in (chunks or {}).items()})
    document["warnings"] += same_family(labelled, runs) + holes_of_one(labelled, list(runs))
    return Compared(document)


def same_family(labelled: LabelledSet, runs: Mapping[str, pa.Table]) -> list[str]:
    """A judge that shares a model with one of two systems may have kept what that one finds."""
    family = labelled.manifest.get("judge", {}).get("family")
    if not family:
        return []
    from goldset.judges import independence

    known = labelled.manifest.get("systems", {})
    return independence(family, {name: known.get(name, {}).get("family") or table.column("family")[0].as_py()
                                 for name, table in runs.items()})


def holes_of_one(labelled: LabelledSet, names: Sequence[str]) -> list[str]:
    """Gold that people found by reading what one of two systems serves favours that one."""
    gold = (labelled.manifest.get("holes") or {}).get("gold_by_system", {})
    read, unread = ([name for name in names if (name in gold) == known] for known in (True, False))
    count = sum(gold[name] for name in read)
    if not (read and unread and count):
        return []
    return [f"{count:,} gold are known only because people read what {read[0]} serves, and nobody read what "
            f"{unread[0]} serves (goldset recall --queue)"]
