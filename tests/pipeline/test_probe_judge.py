"""A probe that a judge reads first: who is asked, what the sample of its rejections stands for, how a probe grows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from goldset.audit import Context, Drawn, Probe, sift
from goldset.audit.probe import weighted
from goldset.formats.sets import load_set
from goldset.pipeline.probe import campaign_of, probe_loop
from goldset.review import ReviewStore
from goldset.text import unit_hash
from tests.audit.conftest import build_run
from tests.cli.conftest import Goldset, beir, goldset
from tests.pipeline.test_probe_loop import answer_everything

__all__ = ["beir", "goldset"]


def drawn(count: int) -> list[Drawn]:
    return [Drawn(f"q{i:03}", f"d{i}", 8, i / count) for i in range(count)]


def test_people_read_all_that_a_judge_did_not_reject_and_a_tenth_of_the_rest() -> None:
    rows = drawn(500)
    verdicts = {row.pair: None if i < 20 else i < 60 for i, row in enumerate(rows)}  # 440 rejections
    sifted = sift(rows, verdicts)
    assert sum(row.asked for row in sifted) == 20 + 40 + 44
    assert all(row.asked for row in sifted if row.judged is not False)
    rejected = sorted((row for row in sifted if row.judged is False),
                      key=lambda row: unit_hash("probe rejected", *row.pair))
    assert [row.asked for row in rejected] == [True] * 44 + [False] * 396
    # At least thirty, or all; and nobody who was asked is forgotten, with the sample as deep as the last of them.
    few = {row.pair: False for row in rows[:100]}
    assert sum(row.asked for row in sift(rows[:100], few)) == 30
    assert sum(row.asked for row in sift(rows[:25], few)) == 25
    deepest = max(rejected, key=lambda row: unit_hash("probe rejected", *row.pair))
    assert all(row.asked for row in sift(rows, verdicts, {deepest.pair}))


def test_a_sampled_rejection_stands_for_those_that_nobody_read() -> None:
    # Two of 8 within reach are drawn of each question: 4. The judge passed the first of each two, and rejected the
    # second in all 60 questions; 30 of these are read, one of them could not be told: 60 / 29 more.
    rows = [Drawn(f"q{i:02}", f"{kind}{i}", 8, 0.5) for i in range(60) for kind in "ab"]
    sifted = sift(rows, {row.pair: row.span_id.startswith("a") for row in rows})
    asked = [row for row in sifted if row.asked]
    assert len(asked) == 90
    answers: dict[tuple[str, str], bool | None] = {row.pair: True for row in asked}
    answers[next(row.pair for row in asked if row.judged is False)] = None
    table = weighted(Probe(sifted, answers, "a judge"))
    assert len(table) == 90
    weights = {kind: table[table["span_id"].str.startswith(kind)]["weight"].round(9).unique() for kind in "ab"}
    assert weights["a"] == pytest.approx([4.0])
    assert weights["b"] == pytest.approx([4 * 60 / 29])
    assert Probe(sifted, answers).open == 0
    assert Probe(sifted, {}).open == 90


def test_a_probe_grows_and_asks_the_judge_about_new_pairs_only(beir: Path, tmp_path: Path) -> None:
    labelled = load_set(beir)
    lists = {f"q{i}": [f"d{(i + step) % 40}" for step in range(6)] for i in range(30)}
    runs = {"a": build_run("a", lists, family="dense"), "b": build_run("b", lists, family="lexical")}
    context = Context(labelled, runs)
    told: list[list[tuple[str, str]]] = []

    def judge(context: Context, pairs: Sequence[Drawn]) -> tuple[str, dict[tuple[str, str], bool | None]]:
        told.append([row.pair for row in pairs])
        return "A judge", {row.pair: row.u < 0.2 for row in pairs}

    first = probe_loop(context, tmp_path, judge=judge)
    assert (len(first.drawn), len(told[0]), first.judge) == (60, 60, "A judge")
    passed = sum(row.u < 0.2 for row in first.drawn)
    assert first.asked == passed + 30 < 60
    assert probe_loop(context, tmp_path, judge=judge).drawn == first.drawn
    assert len(told) == 1, "nothing new, nothing judged"
    more = probe_loop(context, tmp_path, judge=judge, per_question=3)
    assert len(told[1]) == 30
    assert not {*told[0]} & {*told[1]}
    asked = {row.pair for row in first.drawn if row.asked}
    assert asked <= {row.pair for row in more.drawn if row.asked}
    assert probe_loop(context, tmp_path, per_question=2).drawn == more.drawn, "a probe does not shrink"
    store = ReviewStore(f"sqlite:///{tmp_path / 'review.sqlite'}", campaign=campaign_of(context))
    assert len(store.queue()) == more.asked
    assert set(store.queue().column("wave").to_pylist()) == {1, 2}
    store.close()


CONFIG = """
[project]
name = "lockers"
workspace = "workspace"
[corpus]
documents = "corpus.jsonl"
chunker = {words = 100, step = 50}
[questions]
logs = [{path = "log.jsonl", text = "q"}]
[systems.good]
kind = "run"
path = "good.run"
family = "dense"
[judge]
kind = "replay"
family = "recorded"
path = "verdicts.jsonl"
rubric = "relevance.md"
[scoring]
system = "good"
served_k = 3
retrieved_k = 5
evaluated_k = 5
"""


def test_with_a_configuration_its_judge_reads_first_and_its_k_are_taken(
        goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    (beir / "goldset.toml").write_text(CONFIG)
    (beir / "relevance.md").write_text((Path(__file__).resolve().parents[2] / "configs" / "rubrics" / "relevance.md")
                                       .read_text(encoding="utf-8"), encoding="utf-8")
    (beir / "verdicts.jsonl").write_text("".join(
        json.dumps({"question_id": f"q{i}", "span_id": f"d{j}", "relevant": False}) + "\n"
        for i in range(30) for j in range(40)))
    folder = tmp_path / "probe"
    arguments = ["audit", beir, "--run", f"good={beir / 'good.run'}", "-c", beir / "goldset.toml", "--probe", folder]
    done = goldset(*arguments)
    # Sixty pairs, all rejected: thirty of them are read.
    assert f"probe: 0 of 30 passages answered in {folder}" in done.err
    assert "Recall is quoted at k = 5, production serves 3" in done.out
    campaign = campaign_of(Context(load_set(beir)))
    assert answer_everything(folder, campaign, load_set(beir).corpus, True) == 30
    out = " ".join(goldset(*arguments).out.split())
    assert "30 of 30 unlabelled results that people read answer after all" in out
    assert ("The judge 'replay' (family recorded) judged 60 of them first: people read all that it did not reject and "
            "30 of its 60 rejections, each of which stands for more.") in out
    # A flag goes before the configuration.
    assert "production serves 5" in goldset("audit", beir, "--run", f"good={beir / 'good.run'}", "-c",
                                            beir / "goldset.toml", "--serving-k", "5", "--eval-k", "9").out


def test_a_size_needs_a_probe(goldset: Goldset, beir: Path) -> None:
    done = goldset("audit", beir, "--probe-size", "4")
    assert (done.code, done.complaint) == (2, "--probe-size draws a probe: name its folder with --probe DIR")
