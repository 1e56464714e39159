"""Do the people who labelled the set agree, and are their second labels their own? (METHODS 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from goldset.audit.context import Context, percent, plural
from goldset.audit.verdicts import LIMITS, finding
from goldset.stats.agreement import two_raters
from goldset.stats.intervals import clopper_upper


@dataclass(frozen=True)
class Double:
    """One pair that two people labelled: who, and with which grade."""

    question: str
    span: str
    first: str
    second: str
    grades: tuple[float, float]
    where: str | None = None


def doubles(labels: pa.Table) -> list[Double]:
    """Labels (question_id, span_id, assessor, grade, and where they stand) -> the first two labels of each pair.

    Pairs with one label are left out; ``where`` is the place of the second, None where it is not known.
    """
    held: dict[tuple[str, str], list[tuple[str, float, str | None]]] = {}
    for row in labels.to_pylist():
        people = held.setdefault((row["question_id"], row["span_id"]), [])
        if row["assessor"] not in [name for name, _, _ in people]:
            people.append((row["assessor"], row["grade"], row.get("where")))
    return [Double(*pair, people[0][0], people[1][0], (people[0][1], people[1][1]), people[1][2])
            for pair, people in held.items() if len(people) > 1]


def copier(pairs: Sequence[Double]) -> tuple[str, int] | None:
    """Who gives copies for second labels, and on how many pairs; None if nobody.

    A copier never gives another grade than the other person, on so many pairs that people who agree on 95 % would
    have differed, and on grades that do not agree by chance.
    """
    shared: Counter[str] = Counter()
    for pair in pairs:
        shared.update((pair.first, pair.second))
    for name, count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        mine = [pair for pair in pairs if name in (pair.first, pair.second)]
        upper = clopper_upper(0, count)
        if (upper is not None and upper < LIMITS.copied_labels and all(a == b for a, b in (p.grades for p in mine))
                and _by_chance([pair.grades for pair in mine]) < LIMITS.chance_agreement):
            return name, count
    return None


def _by_chance(grades: Sequence[tuple[float, float]]) -> float:
    """Agreement expected of two people who use the grades as often as these do, each by himself."""
    first, second = (Counter(pair[side] for pair in grades) for side in (0, 1))
    return sum(first[grade] * second[grade] for grade in first) / len(grades) ** 2


def reliability(context: Context) -> list[dict[str, Any]]:
    """Context -> findings on the people behind the labels; nothing where nobody knows who they were."""
    if context.labelled.labels is None:
        recorded = context.labelled.manifest.get("agreement")
        return [_agreement(recorded, "")] if recorded else []
    pairs = doubles(context.labelled.labels)
    people = len(set(context.labelled.labels.column("assessor").to_pylist()))
    rows = []
    while found := copier(pairs):
        name, count = found
        rest = [pair for pair in pairs if name not in (pair.first, pair.second)]
        first = next(pair for pair in pairs if name in (pair.first, pair.second))
        place = f", {first.where}" if first.where else ""
        rows.append(finding(
            "integrity", f"assessor {name}", "copied_labels", n=count, measured=0,
            interval=(0, clopper_upper(0, count)), threshold=LIMITS.copied_labels,
            message=f"{name} gave the other person's grade on all {count} pairs that both labelled (first: question "
                    f"'{first.question}', passage '{first.span}'{place}): these second labels are copies, not "
                    "agreement."))
        pairs = rest
    said = f"{plural(people, 'assessor')}; " + ("without the copies, " if rows else "")
    if not pairs:
        return [*rows, finding("integrity", "assessors", "agreement", n=0,
                               message=f"{said}no pair was labelled by two people independently, so their agreement is "
                                       "not known.")]
    bar = context.labelled.relevant_from or 1
    cells = Counter((pair.grades[0] >= bar, pair.grades[1] >= bar) for pair in pairs)
    table = two_raters(cells[True, True], cells[True, False], cells[False, True], cells[False, False])
    return [*rows, _agreement(table, said)]


def _agreement(table: dict[str, Any], said: str) -> dict[str, Any]:
    """One word from a table of two raters, as ``two_raters`` gives it and manifests record it."""
    kappa, interval = table.get("kappa"), table.get("kappa_interval")
    n, same, both = table["n"], table.get("agreement"), table.get("positive_agreement")
    told = f"{said}{plural(n, 'pair')} labelled twice"
    if same is None:
        return finding("integrity", "assessors", "agreement", n=n, message=f"{told}: agreement is not known.")
    told += (f": the same decision on {percent(same)}, positive agreement "
             f"{'not defined' if both is None else percent(both)} (yes by the one {table['margins'][0]}, by the other "
             f"{table['margins'][1]})")
    if not table.get("enough") or kappa is None or interval is None:
        return finding("integrity", "assessors", "agreement", n=n, measured=same,
                       message=f"{told}; {'one answer only, so kappa is not defined' if n >= 100 else 'fewer than 100'}"
                               " allow no verdict.")
    low, high = interval
    word = "reliable" if low >= LIMITS.kappa else "unreliable" if high < LIMITS.kappa else "agreement"
    return finding("integrity", "assessors", word, n=n, measured=kappa, interval=(low, high), threshold=LIMITS.kappa,
                   message=f"{told}; kappa {kappa:.2f} (95 % {low:.2f} to {high:.2f}).")
