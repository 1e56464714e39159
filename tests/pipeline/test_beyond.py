"""What stands beside every recall: what it is relative to, and what lies outside that."""

from __future__ import annotations

import json
from pathlib import Path

from goldset.store import read_json, write_json
from goldset.text import question_id
from tests.cli.conftest import Goldset, goldset
from tests.pipeline import golden

__all__ = ["goldset"]


def test_what_lies_outside_is_said_or_why_it_is_not_known(goldset: Goldset, copy: Path) -> None:
    version, run = copy.parent / "workspace" / "gold" / "harbour" / "v1", f"production={copy.parent / 'production.run'}"
    shown = " ".join(goldset("recall", version, "--run", run).out.split())
    assert ("Relative to the pool: recall counts what bm25, browse, production returned in their first 50; what none "
            "of them returned, nobody has read.") in shown
    # No list is longer than three: nothing stands at ranks 26 to 50.
    assert "cannot be estimated: no gold stands in the lower half of any list" in shown
    told = json.loads(goldset("recall", version, "--run", run, "--json").out)
    assert (told["outside_the_pool"]["at_least"], told["outside_the_pool"]["reason"]) == (None, "no_gold_near_the_edge")
    assert told["deep_probe"] is None
    manifest = read_json(version / "manifest.json")
    edge = {"systems": [], "gold_outside": 0, "near": 4, "near_caught": 1, "low": 1.0, "high": None}
    manifest["outside_the_pool"] = {"at_least": 7.4, "floor": 2.0, "reason": None, "depth": 50, "gold": 7, "known": 0,
                                    "edges": [{"family": "lexical", "estimate": 4.8, **edge},
                                              {"family": "mixed", "estimate": 10.0, **edge}]}
    write_json(version / "manifest.json", manifest)
    assert ("Relevant passages outside the pool: at least about 7, beside 7 gold (lexical says 5, 95 % 1 to no upper "
            "bound: others hold 1 of 4 gold near the end of its list; mixed says 10,"
            ) in " ".join(goldset("recall", version, "--run", run).out.split())
    del manifest["outside_the_pool"]  # a version of before it was kept
    write_json(version / "manifest.json", manifest)
    shown = " ".join(goldset("recall", version, "--run", run).out.split())
    assert "is unknown: this version does not record the ranks of its pool." in shown
    told = json.loads(goldset("recall", version, "--run", run, "--json").out)["outside_the_pool"]
    assert told == {"at_least": None, "reason": "pool_not_recorded"}


def test_a_set_from_elsewhere_does_not_say_how_it_was_pooled(goldset: Goldset, copy: Path) -> None:
    qrels = copy.parent / "foreign.qrels"
    qrels.write_text(f"{question_id(golden.WINTER)} 0 ferry-b 1\n")
    done = goldset("recall", "--qrels", qrels, "--run", f"production={copy.parent / 'production.run'}", "--k", "1")
    assert ("Relative to the pool: recall counts what was labelled. This set does not say how its passages were found, "
            "so how much is missing is unknown.") in " ".join(done.out.split())
