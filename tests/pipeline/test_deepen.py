"""The deep probe: its draw by hand, its weights, and the loop from the command to recall_deep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.config import load_config
from goldset.pipeline import finished, open_review, publish, rebuild, replay_review, store_of
from goldset.pipeline.deep import Window, chances_of, draw, split
from goldset.review import resolve
from goldset.schemas import from_rows
from goldset.text import question_id, unit_hash
from tests.cli.conftest import Goldset, goldset
from tests.pipeline import golden

__all__ = ["goldset"]

WINDOW = Window(depth=2, down_to=4, top=1, base=["bm25", "dense"], fourth=["other"])


def _run(lists: dict[tuple[str, str], str]) -> pa.Table:
    return from_rows("run", [{"system": system, "family": system, "question_id": question, "rank": rank,
                              "chunk_id": chunk, "score": None}
                             for (system, question), chunks in lists.items() for rank, chunk in enumerate(chunks, 1)])


def _corpus(ids: str) -> dict[str, pa.Table]:
    spans = from_rows("spans", [{"span_id": s, "doc_id": s, "start": None, "end": None, "text": s, "heading": None,
                                 "doc_sha256": None, "text_hash": s, "twin_group": s, "words": 1, "offsets": "absent"}
                                for s in ids])
    links = from_rows("span_links", [{"chunk_id": s, "span_id": s, "chunk_share": 1.0, "span_share": 1.0} for s in ids])
    return {"spans": spans, "links": links}


def test_the_window_is_what_stands_below_the_pool_and_on_top_of_the_fourth() -> None:
    run = _run({("bm25", "q"): "abcdef", ("dense", "q"): "bgcha", ("other", "q"): "ijk", ("hybrid", "q"): "abxyz"})
    # bm25 3 and 4: c, d; dense 3 and 4: c, h; the first of other: i. d was decided by people before. e, f and the
    # last of dense stand too deep, j and k too deep for the fourth, and a fused list is no list of its own.
    drawn = draw(run=run, **_corpus("abcdefghijkxyz"), known={("q", "d"), ("q", "a"), ("q", "b"), ("q", "g")},
                 window=WINDOW, each=20, seed=1)
    assert sorted(drawn.column("span_id").to_pylist()) == ["c", "h", "i"]
    assert {(row["window"], row["drawn"]) for row in drawn.to_pylist()} == {(3, 3)}
    two = draw(run=run, **_corpus("abcdefghijkxyz"), known={("q", "d")}, window=WINDOW, each=2, seed=1)
    numbers = sorted((unit_hash(1, "deep", "q", span), span) for span in "chi")
    assert sorted(two.column("span_id").to_pylist()) == sorted(span for _, span in numbers[:2])
    assert {(row["window"], row["drawn"]) for row in two.to_pylist()} == {(3, 2)}
    # What stands below in one list and in the pool of the other is in the pool.
    assert len(draw(run=run, **_corpus("abcdefghijkxyz"), known={("q", span) for span in "cdhi"}, window=WINDOW, each=2,
                    seed=1)) == 0


def test_strata_are_what_the_judge_says_and_keep_the_first_weight() -> None:
    draws = from_rows("deep_draws", [
        {"question_id": question, "span_id": span, "best_ranks": [], "window": window, "drawn": drawn, "u": 0.5}
        for question, span, window, drawn in (("q", "a", 9, 3), ("q", "b", 9, 3), ("q", "c", 9, 3), ("p", "d", 2, 2))])
    verdict: dict[str, Any] = dict.fromkeys(("score", "quote", "raw", "model_asked", "model_answered", "prompt_tokens",
                                             "completion_tokens", "cost"))
    verdicts = from_rows("verdicts", [
        {**verdict, "question_id": question, "span_id": span, "judge_id": "j", "vote": 1, "attempt": 1, "cached": False,
         "status": "ok" if said is not None else "unparsed", "relevant": said, "cache_key": span, "prompt_hash": "p"}
        for question, span, said in (("q", "a", True), ("q", "b", False), ("q", "c", None), ("p", "d", False))])
    assert split(draws, verdicts) == {"deep_positive": {("q", "a"): 3.0}, "deep_no_verdict": {("q", "c"): 3.0},
                                      "deep_rejection": {("q", "b"): 3.0, ("p", "d"): 1.0}}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The harbour with a pool of first results, and browse outside it.

    Below the pool stand eight pairs: the second of production for LOST (dogs), MUZZLE and WINTER (weather), HELICOPTER
    (P2) and GATE (F2), its third for REFUND (weather), and the first of browse for BICYCLE (B2) and MUZZLE (dogs); its
    ferry-c is in the pool already. The judge is right about dogs for MUZZLE here, and silent about dogs for LOST.
    """
    path = golden.write(tmp_path_factory.mktemp("deep") / "shallow", seed=SEED)
    text = path.read_text().replace('entry = "tests.pipeline.golden:browse"\n',
                                    'entry = "tests.pipeline.golden:browse"\naudit_only = true\n')
    path.write_text(text.replace("[systems.bm25]", "[pool]\ndepth = 1\n[systems.bm25]", 1))
    told = [{**row, "relevant": row["relevant"] or (row["question_id"], row["span_id"]) == MUZZLED}
            for row in golden.verdicts() if (row["question_id"], row["span_id"]) != SILENT]
    golden.jsonl(path.parent / "verdicts.jsonl", told)
    config = load_config(path)
    open_review(config, rebuild(config, quiet=True))
    replay_review(config)
    publish(config)
    return path


@pytest.fixture
def shallow(published: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return golden.copied(published, tmp_path / "copy")


MUZZLED, SILENT = (question_id(golden.MUZZLE), golden.DOGS), (question_id(golden.LOST), golden.DOGS)
SEED = 1  # with it dogs is drawn of MUZZLE's two


def test_the_loop_from_the_command_to_recall_deep(goldset: Goldset, shallow: Path) -> None:
    gold, run = shallow.parent / "workspace" / "gold" / "harbour", f"production={shallow.parent / 'production.run'}"
    done = goldset("recall", gold / "v1", "--run", run)
    assert "recall_deep: unknown. Nobody has read below the pool; 'goldset deepen' draws what to read." in done.out
    size = ["--each", "1", "--down-to", "3"]
    done = goldset("deepen", "-c", shallow, *size, "--dry-run")
    assert done.out == ("at most 7 pairs for the judge (1 for each of 7 questions), from ranks 2 to 3 of bm25, "
                        "production and the first 10 of browse\n")
    done = goldset("deepen", "-c", shallow, *size)
    # One of eight is left out (MUZZLE's weather); five are rejected, and a tenth of them, rounded up, is one. Each of
    # the three new items has a second reader.
    assert done.out == ("deep probe: 7 of 8 pairs drawn from ranks 2 to 3 of bm25, production and the first 10 of "
                        "browse\npeople read 1 that the judge takes for answers, 1 that it gives no verdict on, 1 of "
                        "the 5 it rejects: 3 new items\n6 items wait; goldset review serve -c "
                        f"{shallow}, then goldset publish -c {shallow}\n")
    config = load_config(shallow)
    artifacts, store = finished(config), store_of(config, finished(config))
    asked = {(row["question_id"], row["span_id"]): row for row in store.queue().to_pylist() if row["reason"] == "deep"}
    assert {row["stratum"]: row["stratum_size"] for row in asked.values()} == {
        "deep_positive": 1, "deep_no_verdict": 1, "deep_rejection": 5}
    # Once more changes nothing; another size is another probe, and there is one a rebuild.
    assert json.loads(goldset("deepen", "-c", shallow, *size, "--json").out)["new"] == 0
    done = goldset("deepen", "-c", shallow)
    assert done.code == 2
    assert "this rebuild has a deep probe already: 1 pairs a question down to rank 3" in done.complaint
    assert goldset("publish", "-c", shallow).code == 5
    replay_review(config)
    decisions = resolve(queue=store.queue(), labels=store.labels())
    chances = {(row["question_id"], row["span_id"]): row["inclusion_prob"]
               for row in chances_of(config, artifacts, store.queue(), decisions, {}).to_pylist()}
    # dogs was one of two; dogs for LOST was alone; the rejection is one of five, each alone in its window.
    assert chances[MUZZLED] == 1 / 2
    assert chances[SILENT] == 1
    assert [chances[pair] for pair, row in asked.items() if row["stratum"] == "deep_rejection"] == [1 / 5]
    done = goldset("publish", "-c", shallow)
    assert done.code == 0, done.err
    told = json.loads((gold / "v2" / "manifest.json").read_text())["deep"]
    assert (told["window"], told["drawn"]) == (8, 7)
    assert (told["systems"], told["fourth"]) == (["bm25", "production"], ["browse"])
    # What a pair that was read stands for: 2 of MUZZLE; 1; five rejections behind one.
    assert {row["stratum"]: (row["read"], row["found"], row["weight"]) for row in told["strata"]} == {
        "deep_positive": (1, 1, 2.0), "deep_no_verdict": (1, 0, 1.0), "deep_rejection": (1, 0, 5.0)}
    now, before = ({row["measure"]: row for row in json.loads(
        goldset("recall", gold / version, "--run", run, "--k", "1", "--json").out)["measurements"]}
        for version in ("v2", "v1"))
    # Gold by draws: WINTER 3, BICYCLE 2, REFUND 2, GATE two of 1, LOST 2. At 1 ferry-b, pier-a (one of two) and lost2
    # deliver 3 + 1 + 2 of 11. From below comes one gold of weight 2 with one draw.
    assert now["recall_micro"]["value"] == pytest.approx(6 / 11)
    assert now["recall_deep"]["value"] == pytest.approx(6 / 13)
    assert (before["recall_deep"]["value"], before["recall_deep"]["reason"]) == (None, "no_deep_probe")
    for name in ("recall", "recall_micro", "recall_floor", "hit", "answerable", "unjudged", "mrr"):
        assert now[name]["value"] == before[name]["value"], name
    shown = " ".join(goldset("recall", gold / "v2", "--run", run, "--k", "1").out.split())
    assert "recall_deep: production at 1: 0.462 (" in shown
    assert ("It covers ranks 2 to 3 of bm25, production and the first 10 of browse too, and nothing beyond: of 8 pairs "
            "there, 7 were drawn, people read 3, 1 answer.") in shown


def test_a_killed_judge_resumes(goldset: Goldset, shallow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from goldset.pipeline import deep

    with monkeypatch.context() as patch:  # broken off after the verdicts, before the items
        def broken(*_: Any, **__: Any) -> int:
            raise KeyboardInterrupt

        patch.setattr(deep, "_ask", broken)
        assert goldset("deepen", "-c", shallow, "--down-to", "3").code == 130
    assert json.loads(goldset("deepen", "-c", shallow, "--down-to", "3", "--json").out)["new"] > 0


def test_a_window_without_anything_in_it_is_said(goldset: Goldset, copy: Path) -> None:
    # The harbour's lists are shorter than its pool is deep.
    done = goldset("deepen", "-c", copy)
    assert done.out == ("deep probe: nothing to draw, the pool holds all that is in ranks 51 to 200 of bm25, "
                        "production, browse\n")
    assert "nothing changed, same version" in goldset("publish", "-c", copy).out


def test_a_rank_within_the_pool_is_refused(goldset: Goldset, shallow: Path) -> None:
    done = goldset("deepen", "-c", shallow, "--down-to", "1")
    assert (done.code, done.complaint) == (2, "--down-to 1: the pool holds the first 1 already; name a rank below, "
                                              "e.g. 200")
