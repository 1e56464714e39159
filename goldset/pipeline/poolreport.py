"""What the pool holds, said to people: sizes before and after folding, who supplied what, what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any


def pool_text(report: Mapping[str, Any]) -> str:
    """The report of the pool stage -> lines for a terminal."""
    size = {name: report[name] for name in ("chunks_per_question", "chunk_words_per_question", "spans_per_question",
                                            "words_per_question", "words_in_no_candidate_per_question")}
    lines = [f"pool, to rank {report['depth']}: {size['chunks_per_question']:,.1f} chunks a question "
             f"({size['chunk_words_per_question']:,.0f} words) are {size['spans_per_question']:,.1f} passages to judge "
             f"({size['words_per_question']:,.0f} words); {report['twins_folded']:,} pairs are twins of others; "
             f"{size['words_in_no_candidate_per_question']:,.1f} words a question stand in no passage to judge"]
    lines += _table(("", "passages", "of no other"), [
        (name, f"{row['candidates']:,}", f"{row['unique']:,}") for part in ("system", "family")
        for name, row in _named(report[f"unique_by_{part}"], part)])
    systems = list(report["overlap"])
    if len(systems) > 1:
        lines += _table(("held by both", *systems), [
            (one, *(f"{report['overlap'][one][other]:,}" for other in systems)) for one in systems])
    lines += [f"{system} (audit_only) would have given {row['candidates']:,} passages, of which the pool holds "
              f"{row['in_pool']:,}" for system, row in report["audit_only"].items()]
    lines += report["notes"]
    if report["unlinked_chunks"]:
        lines.append(f"{report['unlinked_chunks']:,} returned ids are no chunk of the corpus and were left out")
    return "\n".join(lines)


def pool_facts(pool: Mapping[str, Any], outside: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The same for a version's page, by group: sizes, who supplied what, what two systems share, what lies outside.

    Args:
        pool: the report.
        outside: the manifest's key ``outside_the_pool``; a version of before it was kept has none.
    """
    systems = list(pool["overlap"])
    supplied = {f"passages by {part}": {name: f"{row['candidates']:,}, of which {row['unique']:,} of no other"
                                        for name, row in pool[f"unique_by_{part}"].items()}
                for part in ("system", "family")}
    graded = {f"{system} (audit only)": f"{row['candidates']:,}, of which the pool holds {row['in_pool']:,}"
              for system, row in pool["audit_only"].items()}
    return {"pool": {"depth": pool["depth"], **{f"{name.replace('_', ' ')} a question":
                                                round(pool[f"{name}_per_question"], 1)
                                                for name in ("chunks", "chunk_words", "spans", "words")},
                     "words left out": round(pool["words_in_no_candidate_per_question"], 1)},
            "outside the pool": {} if outside is None else _outside(outside),
            **supplied, "passages by system": {**supplied["passages by system"], **graded},
            "passages of two systems": {f"{one} and {other}": pool["overlap"][one][other]
                                        for one, other in combinations(systems, 2)}}


def _outside(told: Mapping[str, Any]) -> dict[str, str]:
    from goldset.metrics.outside import NOT_KNOWN

    edges = {f"says {edge['family']}": f"{edge['estimate']:,.0f}: others hold {edge['near_caught']} of {edge['near']} "
                                       "gold near the end of its list"
             for edge in told["edges"] if edge["estimate"] is not None}
    return {"relevant passages": "not known: " + NOT_KNOWN[told["reason"]] if told["at_least"] is None else
            f"at least about {told['at_least']:,.0f}, beside {told['gold']:,} gold", **edges}


def _named(rows: Mapping[str, Any], part: str) -> list[tuple[str, Any]]:
    return [(f"{part} {name}", row) for name, row in rows.items()]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    return ["  " + "  ".join(cell.rjust(width) if column else cell.ljust(width) for column, (cell, width) in
                             enumerate(zip(row, widths, strict=True))).rstrip() for row in [head, *rows]]
