"""The pre-check: do ids resolve, does anything stand twice, what ceiling does that put on recall?"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from goldset.audit.context import Context, percent, plural
from goldset.audit.passages import passages
from goldset.audit.reliability import reliability
from goldset.audit.verdicts import finding
from goldset.text import question_key

# What readers report (LabelledSet.notes): a sentence each, and whether it needs a look.
_HARMLESS = {
    "bom": "a byte order mark was removed",
    "blank_line": "blank lines were ignored",
    "blank_lines": "blank lines were ignored",
    "negative_grade": "grades below -1 were read as judged not relevant",
    "unjudged_grade": "pairs with grade -1 were read as not judged",
}
_NOTED = {
    "quoted": "quotes around fields were stripped",
    "quotes": "quotes around fields were stripped",
    "repeated_judgment": "judgments stand in the file more than once and count once",
    "two_grades": "pairs stand with two different grades; they count as not judged",
    "question_without_text": "judged questions have no text",
    "empty_question": "questions without text were dropped",
    "question_without_gold": "questions without gold stand in the file; nothing is known about them",
    "several_places": "gold texts stand in several passages; the first in corpus order was taken",
    "odd_grade": "grades outside -2 to 10, which no relevance scale uses",
}


class Integrity:
    """Counts with first offenders; unlike the four properties these faults mostly deflate recall."""

    name = "integrity"

    def run(self, context: Context) -> list[dict[str, Any]]:
        """Context -> findings of the pre-check."""
        rows = [*_gold(context), *_questions(context), *_judged(context), *reliability(context),
                *_notes(context)]
        for system in context.given:
            rows += _run(context, system)
        if not any(row["verdict"] in ("warn", "fail") for row in rows):
            labelled = context.labelled
            seen = "" if context.corpus else " as far as can be seen without a corpus"
            rows.insert(0, finding(
                self.name, "all", "clean", n=len(labelled.gold),
                message=f"{len(labelled.gold)} gold passages of {_answerable(context)} questions: ids resolve{seen}, "
                        "nothing stands twice."))
        return rows


def _answerable(context: Context) -> int:
    return len(pc.unique(context.labelled.gold.column("question_id")))


def _gold(context: Context) -> list[dict[str, Any]]:
    gold = context.labelled.gold
    if not len(gold):
        grade = context.labelled.relevant_from
        threshold = "" if grade is None else f" (relevant from grade {grade})"
        return [finding("integrity", "all", "no_gold", n=len(context.labelled.judgments),
                        message=f"No relevant passage in {len(context.labelled.judgments)} judgments{threshold}.")]
    return passages(context)


def _questions(context: Context) -> list[dict[str, Any]]:
    table = context.labelled.questions
    if table is None:
        return []
    keys: dict[str, list[str]] = {}
    for question, text, turns in zip(*(table.column(name).to_pylist() for name in ("question_id", "text", "context")),
                                     strict=True):
        key = "\n".join([question_key(text), *(f"{turn['role']}: {question_key(turn['text'])}" for turn in turns)])
        keys.setdefault(key, []).append(question)
    twice = sorted(ids for ids in keys.values() if len(ids) > 1)
    if not twice:
        return []
    gold = context.labelled.gold
    place = next((context.place(question, span) for question, span in zip(
        gold.column("question_id").to_pylist(), gold.column("span_id").to_pylist(), strict=True)
        if question == twice[0][1]), "")
    return [finding("integrity", "all", "duplicate_questions", n=len(table), measured=sum(len(ids) for ids in twice),
                    message=f"{plural(len(twice), 'question')} under several ids (first: {', '.join(twice[0][:3])}"
                            f"{place}).")]


def _judged(context: Context) -> list[dict[str, Any]]:
    table = context.labelled.judgments
    unjudged = table.column("relevant").null_count
    if not unjudged:
        return []
    first = table.filter(table.column("relevant").is_null()).slice(0, 1).to_pylist()[0]
    place = context.place(first["question_id"], first["span_id"])
    return [finding("integrity", "all", "unjudged", n=len(table), measured=unjudged,
                    message=f"{unjudged} of {len(table)} pairs have no judgment, only a place in the pool (first: "
                            f"question '{first['question_id']}', passage '{first['span_id']}'{place}); they count "
                            "neither as relevant nor as not relevant.")]


def _run(context: Context, system: str) -> list[dict[str, Any]]:
    run = context.runs[system]
    rows = []
    answered = set(context.lengths(system))
    wanted = set(context.labelled.gold.column("question_id").to_pylist())
    labelled = wanted | set(context.labelled.judgments.column("question_id").to_pylist())
    if missing := sorted(wanted - answered):
        rows.append(finding("integrity", system, "missing_questions", n=len(wanted), measured=len(missing),
                            message=f"{system} has no result for {len(missing)} of {len(wanted)} questions with gold "
                                    f"(first '{missing[0]}'); they count as nothing found."))
    if extra := sorted(answered - labelled):
        rows.append(finding("integrity", system, "extra_questions", n=len(answered), measured=len(extra),
                            message=f"{system} answers {plural(len(extra), 'question')} that the set does not label; "
                                    "ignored."))
    known = context.corpus.chunks.column("chunk_id") if context.corpus else None
    where = "in the corpus"
    if known is None:
        known, where = context.labelled.judgments.column("span_id"), "among the judged passages"
    ids = pc.unique(run.column("chunk_id"))
    inside = pc.sum(pc.is_in(ids, pa.array(pc.unique(known)))).as_py() or 0
    if ids and not inside:
        rows.append(finding("integrity", system, "foreign_run", n=len(ids), measured=0,
                            message=f"{system}: 0 of {len(ids)} returned ids are {where} (first '{ids[0].as_py()}'); "
                                    "nothing can be said about this run."))
    elif inside < len(ids) and context.corpus is not None:
        rows.append(finding("integrity", system, "unknown_ids", n=len(ids), measured=len(ids) - inside,
                            message=f"{system}: {len(ids) - inside} of {len(ids)} returned ids are not in the corpus "
                                    f"({percent(1 - inside / len(ids))}; first '{_outside(ids, known)}'); they can "
                                    "deliver nothing here."))
    return rows


def _outside(ids: pa.Array, known: pa.ChunkedArray) -> str:
    """The first id that is not known."""
    return str(ids.filter(pc.invert(pc.is_in(ids, pa.array(pc.unique(known)))))[0].as_py())


def _notes(context: Context) -> list[dict[str, Any]]:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for note in context.labelled.notes:
        file = note.where.split(", line ")[0]
        word = "read" if note.kind in _HARMLESS else "note"
        said = _HARMLESS.get(note.kind) or _NOTED.get(note.kind) or note.kind.replace("_", " ")
        example = f" (e.g. '{note.example}')" if note.example else ""
        row = finding("integrity", file, f"{word}:{note.kind}", n=note.count, measured=note.count,
                      message=f"{note.where}: {said}{example}; {note.count} in all.")
        rows.setdefault((file, row["reason"]), row)
    return list(rows.values())
