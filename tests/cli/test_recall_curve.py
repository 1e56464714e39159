"""``goldset recall`` with a curve, a headline, a retrieved list and a served log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Goldset


def test_curve_and_headline(goldset: Goldset, beir: Path) -> None:
    # bad.run has every answer at rank 3 of 5
    asked = ["recall", beir, "--run", f"bad={beir / 'bad.run'}", "--k", "1", "--curve", "--headline", "0.9"]
    document = json.loads(goldset(*asked, "--json").out)
    assert [row["value"] for row in document["curve"]] == [0, 0, 1, 1, 1]
    assert document["headline"] == [{"system": "bad", "headline": 0.9, "k": 3, "deepest": 5, "low": 3, "high": 3,
                                     "n": 30}]
    out = goldset(*asked).out
    assert "bad: a recall of 0.9 is reached at k = 3 (95 % 3 to 3); its true reading is recall@3" in out
    assert "  bad      3  1.000 (0.884 to 1.000)" in out  # Clopper-Pearson of 30 of 30
    good = goldset("recall", beir, "--run", f"bad={beir / 'bad.run'}", "--k", "1", "--headline", "1").out
    assert "is reached at k = 3" in good


def test_retrieved_and_reranked(goldset: Goldset, beir: Path) -> None:
    asked = ["recall", beir, "--run", f"s={beir / 'good.run'}", "--k", "1", "--retrieved", f"s={beir / 'bad.run'}"]
    document = json.loads(goldset(*asked, "--retrieve-k", "2", "--eval-k", "5", "--json").out)
    assert [(row["step"], row["from_k"], row["to_k"], row["loss"]) for row in document["loss"]] == [
        ("retrieval", 5, 2, 1.0), ("cut", 2, 1, -1.0)]
    assert "s: retrieving 2 and not 5 loses 1.000" in goldset(*asked, "--retrieve-k", "2", "--eval-k", "5").out
    assert "--retrieved and --retrieve-k go together" in goldset(*asked).complaint
    wrong = goldset("recall", beir, "--run", f"s={beir / 'good.run'}", "--k", "1", "--retrieved",
                    f"t={beir / 'bad.run'}", "--retrieve-k", "2")
    assert (wrong.code, "no --run is called 't'" in wrong.complaint) == (2, True)


def test_the_k_that_reached_the_reader(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    # Five configured, and a token limit cuts some answers to two.
    log = tmp_path / "served.jsonl"
    log.write_text("".join(json.dumps({"served": ["p"] * size}) + "\n" for size in [5] * 6 + [2] * 3 + [0]))
    asked = ["recall", beir, "--run", f"bad={beir / 'bad.run'}", "--served-log", log]
    document = json.loads(goldset(*asked, "--json").out)
    assert document["served"] == [{"passages": 0, "answers": 1}, {"passages": 2, "answers": 3},
                                  {"passages": 5, "answers": 6}]
    recall = {row["k"]: row["value"] for row in document["measurements"]
              if row["measure"] == "recall" and row["slice"] == "all"}
    assert recall == {2: 0.0, 5: 1.0}
    assert "passages that reached the reader in 10 answers: 0 in 10.0%, 2 in 30.0%, 5 in 60.0%" in goldset(*asked).out
    log.write_text('{"served": "many"}\n')
    assert "line 1: the field 'served' is 'many'; it must hold the list" in goldset(*asked).complaint
    log.write_text('{"n": 4}\n')
    found = json.loads(goldset(*asked, "--served-field", "n", "--json").out)
    assert {row["k"] for row in found["measurements"] if row["measure"] == "recall"} == {4}
    log.write_text('{"n": 0}\n')
    assert "no answer with a passage" in goldset(*asked, "--served-field", "n").complaint


@pytest.mark.parametrize("option", ["--curve", "--headline"])
def test_json_without_the_option_has_no_such_part(goldset: Goldset, beir: Path, option: str) -> None:
    document = json.loads(goldset("recall", beir, "--run", f"a={beir / 'good.run'}", "--k", "1", "--json").out)
    assert option.removeprefix("--") not in document


def test_a_plot_of_both_systems(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    asked = ["recall", beir, "--run", f"bad={beir / 'bad.run'}", "--run", f"good={beir / 'good.run'}", "--k", "2",
             "--eval-k", "4"]
    done = goldset(*asked, "--plot", tmp_path / "a.svg")
    assert (done.code, done.err) == (0, f"plot: {tmp_path / 'a.svg'}\n")
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert all(f">{text}<" in svg for text in ("bad", "good", "served: 2", "evaluated: 4"))
    assert "30 questions with gold" in svg
    goldset(*asked, "--plot", tmp_path / "b.svg")
    assert (tmp_path / "b.svg").read_bytes() == (tmp_path / "a.svg").read_bytes()
    goldset(*asked, "--plot", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    wrong = goldset(*asked, "--plot", tmp_path / "a.jpg")
    assert (wrong.code, "must end in .svg or .png" in wrong.complaint) == (2, True)
