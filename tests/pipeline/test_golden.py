"""The whole pipeline over the golden corpus, against values worked out by hand (see golden.py)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goldset.review import resolve
from goldset.text import question_id, unit_hash
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour

TEXT = {question_id(text): text for text in golden.ASKED}


def _pairs(table: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {(TEXT[row["question_id"]], row["span_id"]): row for row in table.to_pylist()}


def test_empty_document_is_counted_and_left_out(harbour: Harbour) -> None:
    report = harbour.artifacts.report("corpus")
    assert report["documents_file"]["empty_documents"] == 1
    assert report["documents_file"]["first_empty_document"] == "blank"
    assert (report["documents"], report["chunks"], report["offsets"]) == (9, 14, {"verified": 14})


def test_spans_are_the_halves_of_long_documents_and_whole_short_ones(harbour: Harbour) -> None:
    spans = {row["span_id"]: row for row in harbour.artifacts.table("spans").to_pylist()}
    halves = {golden.cut(name, part) for name in golden.LONG for part in (0, 1)}
    assert set(spans) == halves | {golden.cut(name) for name in golden.SHORT}
    assert spans[golden.cut("lost2")]["twin_group"] == golden.PROPERTY
    assert sum(row["twin_group"] != row["span_id"] for row in spans.values()) == 1


def test_log_lines_are_accounted_for(harbour: Harbour) -> None:
    drops = {row["reason"]: row["lines"] for row in harbour.artifacts.table("drops").to_pylist()}
    assert drops == {"kept": 12, "greeting": 2, "followup": 1, "empty": 1, "language": 1, "outside_window": 1,
                     "no_time": 1}
    report = harbour.artifacts.report("questions")
    assert (report["lines"], report["rejected_by_reason"]) == (20, {"not_json": 1})  # 12 + 7 + 1 = 20
    quarantined = (harbour.config.workspace / "quarantine" / "log_lines.jsonl").read_text().splitlines()
    assert [(json.loads(row)["line"], json.loads(row)["reason"]) for row in quarantined] == [(20, "not_json")]


def test_draws_are_the_times_asked(harbour: Harbour) -> None:
    drawn = {row["text"]: row["draws"] for row in harbour.artifacts.table("questions").to_pylist()}
    assert drawn == golden.ASKED  # 100 draws asked for, 12 events: all are taken


def test_pool_is_the_union_of_what_the_systems_returned(harbour: Harbour) -> None:
    found = _pairs(harbour.artifacts.table("candidates"))
    assert set(found) == {(text, span) for text, spans in golden.POOL.items() for span in spans}
    assert len(found) == 19
    # Only browse opened dogs for the question about muzzles; the short word lists of bm25 hold neither "dog" nor
    # "muzzle", so its answer is empty and not zero.
    assert found[golden.MUZZLE, golden.DOGS]["families"] == ["browse"]
    # Production returned lost2, bm25 both; the candidate is the representative of the twins.
    assert found[golden.LOST, golden.PROPERTY]["systems"] == ["bm25", "production"]
    states = {(row["system"], TEXT[row["question_id"]]): row["status"]
              for row in harbour.artifacts.table("run_status").to_pylist()}
    assert states["bm25", golden.MUZZLE] == "empty"
    assert states["browse", golden.GATE] == "empty"


def test_queue_has_positives_no_verdicts_a_sample_of_rejections_and_second_labels(harbour: Harbour) -> None:
    rows = harbour.artifacts.table("queue").to_pylist()
    by_reason: dict[str, set[tuple[str, str]]] = {}
    for row in rows:
        by_reason.setdefault(row["reason"], set()).add((TEXT[row["question_id"]], row["span_id"]))
    assert by_reason["positive"] == golden.SAID_YES
    assert by_reason["no_verdict"] == golden.SAID_NOTHING
    # The five smallest permanent numbers of the eleven rejections.
    numbered = sorted((unit_hash(golden.SEED, "rejections", question_id(text), span), (text, span))
                      for text, span in golden.REJECTED)
    assert len(numbered) == 11
    assert by_reason["rejection"] == {pair for _, pair in numbered[: golden.SAMPLED]}
    assert (golden.MUZZLE, golden.DOGS) in by_reason["rejection"]
    assert {row["stratum_size"] for row in rows if row["reason"] == "rejection"} == {11}
    # second_share = 1: each of the 6 + 2 + 5 pairs is read twice.
    assert by_reason["second"] == by_reason["positive"] | by_reason["no_verdict"] | by_reason["rejection"]
    assert len(rows) == 26


def test_gold_is_what_people_said(harbour: Harbour) -> None:
    gold = _pairs(harbour.published.outcome.labelled.gold)
    # pier[0]: ada yes, ben no, cleo yes. dogs: the judge said no. tickets, first half: the judge said yes, people no.
    assert set(gold) == {
        (golden.WINTER, golden.F1), (golden.BICYCLE, golden.B1), (golden.REFUND, golden.T2), (golden.GATE, golden.P1),
        (golden.GATE, golden.P2), (golden.LOST, golden.PROPERTY), (golden.MUZZLE, golden.DOGS)}
    evidence = {pair: [(piece["start"], piece["end"]) for piece in row["evidence"]] for pair, row in gold.items()}
    assert evidence[golden.WINTER, golden.F1] == [golden.place("ferry", 3)]
    # ada marked sentence 1, ben 1 and 2: the evidence is the union.
    assert evidence[golden.BICYCLE, golden.B1] == [golden.place("bikes", 1), golden.place("bikes", 2)]
    assert evidence[golden.REFUND, golden.T2] == [golden.place("tickets", 4), golden.place("tickets", 5)]


def test_weights_are_computed_from_the_sample(harbour: Harbour) -> None:
    judgments = _pairs(harbour.published.outcome.labelled.judgments)
    gold = _pairs(harbour.published.outcome.labelled.gold)
    sampled = set(judgments) & golden.REJECTED
    assert len(judgments) == 13
    assert len(sampled) == 5
    for pair, row in judgments.items():
        assert row["inclusion_prob"] == pytest.approx(5 / 11 if pair in sampled else 1.0)
    assert gold[golden.MUZZLE, golden.DOGS]["weight"] == pytest.approx(11 / 5)
    assert {row["weight"] for pair, row in gold.items() if pair[0] != golden.MUZZLE} == {1.0}
    assert judgments[golden.GATE, golden.P1]["basis"] == "adjudicated"
    # The judge's positive that people refused stays as a no.
    assert judgments[golden.REFUND, golden.T1]["relevant"] is False


def test_manifest_counts_people_and_judge(harbour: Harbour) -> None:
    manifest = harbour.published.manifest
    assert manifest["counts"] == {"questions": 7, "draws": 12, "answerable": 6, "judgments": 13, "gold": 7, "items": 27,
                                  "labels": 27}  # 13 + 13 second + 1 adjudication
    assert {name: row["answered"] for name, row in manifest["people"]["assessors"].items()} == {
        "ada": 13, "ben": 13, "cleo": 1}
    assert {name: manifest["sampling"][name] for name in ("rejections", "sampled", "found")} == {
        "rejections": 11, "sampled": 5, "found": 1}
    # Before adjudication: 13 pairs, 6 yes from both, 6 no from both, pier[0] yes from ada alone.
    assert manifest["agreement"]["n"] == 13
    assert manifest["agreement"]["agreement"] == pytest.approx(12 / 13)
    assert manifest["agreement"]["margins"] == [7, 6]


@pytest.mark.parametrize(("system", "k", "recall"), [
    # production, draws 3 2 2 1 2 = 10. At 1: ferry-b holds sentence 3 (1); parking is no answer (0); tickets-a holds
    # sentence 4 and not 5 (0); pier-a one of two (1/2); lost2 is the twin of lost (1). (3 + 0 + 0 + 1/2 + 2)/10.
    ("production", 1, 0.55),
    # At 2 bikes-a and tickets-b come: (3 + 2 + 2 + 1/2 + 2)/10.
    ("production", 2, 0.95),
    # At 3 pier-b completes the gate.
    ("production", 3, 1.0),
    # ferry-c = sentences 1 to 4 holds the answer; bikes-b does not: 3/10.
    ("browse", 1, 0.3),
])
def test_recall_by_hand(harbour: Harbour, system: str, k: int, recall: float) -> None:
    from goldset.pipeline.checks import split_runs
    from goldset.pipeline.scores import recall_any

    run = split_runs(harbour.artifacts.table("run"), harbour.config.systems)[system]
    measured = recall_any(harbour.published.outcome.labelled, {system: run}, ks=[k]).measurements.to_pylist()
    rows = {row["measure"]: row for row in measured if row["slice"] == "all"}
    assert rows["recall"]["value"] == pytest.approx(recall)
    # HELICOPTER has no gold; the gold of MUZZLE comes from the sample and is counted by the weighted measures only.
    assert rows["recall"]["n"] == 5
    excluded = {row["reason"]: row["count"] for row in rows["recall"]["excluded"]}
    assert (excluded["no_gold"], excluded["only_sampled_gold"]) == (1, 1)
    # Not found counts 0: all 12 draws are below the line.
    assert rows["recall_floor"]["value"] == pytest.approx(recall * 10 / 12)


def test_recall_micro_carries_the_weight_of_the_sampled_gold(harbour: Harbour) -> None:
    measurements = harbour.published.outcome.measurements
    assert measurements is not None
    rows = {(row["system"], row["measure"], row["k"]): row for row in measurements.to_pylist() if row["slice"] == "all"}
    # Gold times draws: 3 + 2 + 2 + 2·1 + 2 = 11, and MUZZLE 1 draw of weight 2.2. Production delivers at 2
    # 3 + 2 + 2 + 1 + 2 = 10 and not the muzzles; browse 3 and the muzzles.
    assert rows["production", "recall_micro", 2]["value"] == pytest.approx(10 / 13.2)
    assert rows["production", "recall_micro_naive", 2]["value"] == pytest.approx(10 / 11)
    assert rows["browse", "recall_micro", 2]["value"] == pytest.approx((3 + 2.2) / 13.2)


def test_decisions_follow_the_labels(harbour: Harbour) -> None:
    from goldset.pipeline import store_of

    store = store_of(harbour.config, harbour.artifacts)
    decisions = _pairs(resolve(queue=store.queue(), labels=store.labels()))
    assert {row["status"] for row in decisions.values()} == {"decided"}
    assert decisions[golden.GATE, golden.P1]["basis"] == "adjudicated"
    assert len(decisions[golden.GATE, golden.P1]["label_ids"]) == 3


def test_published_folder_is_readable_by_others(harbour: Harbour) -> None:
    folder = harbour.published.path
    lines = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
    assert {(TEXT[question], chunk) for question, _, chunk, _ in lines} == {
        # Every chunk that alone holds the evidence: sentence 3 lies in a, b and c; 4 and 5 together only in b.
        (golden.WINTER, "ferry-a"), (golden.WINTER, "ferry-b"), (golden.WINTER, "ferry-c"), (golden.BICYCLE, "bikes-a"),
        (golden.REFUND, "tickets-b"), (golden.GATE, "pier-a"), (golden.GATE, "pier-b"), (golden.LOST, "lost"),
        (golden.LOST, "lost2"), (golden.MUZZLE, "dogs")}
    weights = [line.split("\t") for line in (folder / "weights.tsv").read_text().splitlines()]
    assert [row[1:] for row in weights if row[0] == question_id(golden.MUZZLE)] == [["dogs", "2.2"]]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "harbour/v1" in page
    assert "Recall against k with its 95 % band, harbour/v1:" in page



def test_what_lies_outside_the_pool_is_published(harbour: Harbour) -> None:
    told = harbour.published.manifest["outside_the_pool"]
    # Lists of two or three at a depth of 50: no gold stands at ranks 26 to 50, so nothing tells. All gold is in some
    # list, since nobody searched.
    assert (told["at_least"], told["reason"], told["depth"], told["known"]) == (None, "no_gold_near_the_edge", 50, 0)
    assert told["gold"] == harbour.published.manifest["counts"]["gold"]
    assert [edge["family"] for edge in told["edges"]] == ["browse", "lexical", "mixed"]
    assert harbour.published.summary()["outside_the_pool"] == told
    sentence = "How many relevant passages lie outside the pool cannot be estimated"
    assert sentence in harbour.published.head()
    page = (harbour.published.path / "report.html").read_text(encoding="utf-8")
    assert "not known: no gold stands in the lower half of any list" in page


def test_the_page_says_who_supplied_the_pool(harbour: Harbour) -> None:
    """The facts are those of the manifest's pool; their counts are derived in tests/test_pool.py."""
    from goldset.pipeline.poolreport import pool_facts

    pool = harbour.published.manifest["pool"]
    edges = [{"family": "lexical", "estimate": 14.4, "near": 11, "near_caught": 8}, {"family": "b", "estimate": None}]
    told = pool_facts({**pool, "audit_only": {"other": {"candidates": 1200, "in_pool": 7}}},
                      {"at_least": 39.6, "gold": 1430, "edges": edges})
    page = (harbour.published.path / "report.html").read_text(encoding="utf-8")
    for system, row in pool["unique_by_system"].items():
        said = f"{row['candidates']}, of which {row['unique']} of no other"
        assert told["passages by system"][system] == said
        assert said in page
    assert told["passages by system"]["other (audit only)"] == "1,200, of which the pool holds 7"
    assert told["outside the pool"] == {"relevant passages": "at least about 40, beside 1,430 gold", "says lexical":
                                        "14: others hold 8 of 11 gold near the end of its list"}
    shared = told["passages of two systems"]
    systems = sorted(pool["overlap"])
    assert len(shared) == len(systems) * (len(systems) - 1) / 2
    assert shared[f"{systems[0]} and {systems[1]}"] == pool["overlap"][systems[0]][systems[1]]
    assert f"{systems[0]} and {systems[1]}" in page
