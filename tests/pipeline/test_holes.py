"""Holes as a loop: recall warns, --queue asks, people answer on the page, publish brings it in, recall again."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from goldset.config import load_config
from goldset.errors import UsageError
from goldset.formats.runs import read_run
from goldset.formats.sets import load_set
from goldset.pipeline import finished, open_review, publish, rebuild, store_of
from goldset.pipeline.holes import queue_holes
from goldset.pipeline.people import campaign_of, wave_maker
from goldset.review import Passages, ReviewService, ReviewStore, create_app
from goldset.stats.sampling import inclusion_probabilities
from goldset.text import question_id
from tests.cli.conftest import Done, Goldset, goldset
from tests.pipeline import golden
from tests.pipeline.test_contract import add_question

__all__ = ["goldset"]

Post = Callable[[str, dict[str, Any]], dict[str, Any]]

# In its first two, candidate serves two pairs outside the pool (T2 for WINTER, B1 for MUZZLE) and one that stands in
# the sample of the rejections (DOGS for MUZZLE, a find of weight 11/5). ferry-a and tickets-b hold a quarter of the
# other half of their documents: less than half, so those are no candidates. The rest was judged with certainty.
CANDIDATE = {golden.WINTER: ["ferry-a", "tickets-b"], golden.BICYCLE: ["bikes-a"], golden.LOST: ["lost"],
             golden.MUZZLE: ["dogs", "bikes-a"], golden.HELICOPTER: ["weather"]}
YES = {golden.MUZZLE: ("A bicycle costs three crowns for each passage.",)}  # what people answer on the page


@pytest.fixture
def candidate(copy: Path) -> Path:
    path = copy.parent / "candidate.run"
    path.write_text("\n".join(golden.run_lines(CANDIDATE, "candidate")) + "\n", encoding="utf-8")
    return path


def _client(config_path: Path, who: str) -> Post:
    """The page's server in this process, as ``goldset review serve`` sets it up, and one person before it."""
    from fastapi.testclient import TestClient

    config = load_config(config_path)
    artifacts = finished(config)
    service = ReviewService(store_of(config, artifacts), campaign=campaign_of(artifacts),
                            passages=Passages(spans=artifacts.table("spans")), grow=wave_maker(config, artifacts))
    client = TestClient(create_app(service), base_url="http://127.0.0.1:8765")
    assert client.post("/enter", data={"who": who}).status_code == 200

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        reply = client.post(path, json=body) if body else client.get(path)
        assert reply.status_code == 200, reply.text
        told: dict[str, Any] = reply.json()
        return told

    return post


def _answer(post: Post, who: str, *, most: int = 100) -> int:
    """Answer until nothing is left, or ``most`` items: yes where YES says so, with that sentence."""
    item, count = post("/api/next", {})["item"], 0
    while item and count < most:
        text, wanted = item["passage"]["text"], YES.get(item["question"]["text"], ())
        chosen = [{"start": start, "end": end, "text": text[start:end]} for start, end in item["passage"]["sentences"]
                  if text[start:end].strip() in wanted]
        item = post("/api/answer", {
            "item": item["token"], "key": f"{who}-{item['token']}", "edition": item["edition"], "seconds": 1.0,
            "answer": "yes" if chosen else "no", "sentences": chosen})["item"]
        count += 1
    return count


def _row(done: Done, measure: str) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in json.loads(done.out)["measurements"]
                                 if row["measure"] == measure and row["slice"] == "all")
    return found


def test_the_loop_from_the_warning_to_the_next_version(goldset: Goldset, copy: Path, candidate: Path) -> None:
    version = copy.parent / "workspace" / "gold" / "harbour" / "v1"
    asked = ["recall", version, "--run", f"candidate={candidate}"]
    done = goldset(*asked)
    # Of one and two slots: WINTER 1/2 (3 draws), MUZZLE 1/2 (1 draw), the others 0 (5 draws): 2 / 9.
    assert ("warning: candidate: nobody judged 22.2% of what it serves in its first 2 (more than 10%); gold among it "
            "is not counted; --queue -c CONFIG puts it before people") in done.out
    done = goldset(*asked, "--queue", "-c", copy)
    assert done.code == 0
    assert done.err.splitlines()[-2:] == [
        "queue: 2 passages that candidate serves and nobody judged are put before people; 1 that were read as a sample "
        "count for themselves from now on",
        # Two to read first, and a second reader for each, as [review] second_share = 1 has it.
        f"queue: 4 items wait; goldset review serve -c {copy}, then goldset publish -c {copy}, then score the new "
        "version"]
    # Asking again asks nobody anything new.
    again = json.loads(goldset(*asked, "--queue", "-c", copy, "--json").out)["queue"]
    assert again == {"systems": ["candidate"], "new": 0, "carried": 0, "waiting": 2, "undecided": 0, "unknown": 0,
                     "open": 4, "earlier": None, "questions": 7, "shared": 7}
    assert goldset("publish", "-c", copy).code == 5  # an open queue is refused
    assert _answer(_client(copy, "dora"), "dora") == 2
    assert _answer(_client(copy, "emil"), "emil") == 2
    done = goldset("publish", "-c", copy)
    assert done.code == 0, done.err
    # One and not two: DOGS was known from the sample.
    assert "1 gold are known only because people read what candidate serves" in done.out
    done = goldset("recall", version.parent / "v2", "--run", f"candidate={candidate}", "--json")
    assert _row(done, "unjudged")["value"] == 0
    # WINTER 3 x 1, BICYCLE 2 x 1, LOST 2 x 1, MUZZLE 1 x 1 (dogs and the bicycle sentence); REFUND 2 and GATE 1 are
    # not in the run: 8 / 11. All gold is certain now: 3 + 2 + 2 + 2 of 3 + 2 + 2 + 2 + 2 + 2.
    assert _row(done, "recall")["value"] == pytest.approx(8 / 11)
    assert _row(done, "recall_micro")["value"] == pytest.approx(9 / 13)
    assert not [line for line in json.loads(done.out)["warnings"] if "judged" in line]
    manifest = json.loads((version.parent / "v2" / "manifest.json").read_text())
    assert {name: manifest["sampling"][name] for name in ("rejections", "sampled", "found")} == {
        "rejections": 11, "sampled": 5, "found": 0}
    assert manifest["holes"] == {"read": 2, "gold_by_system": {"candidate": 1}}
    other = f"production={copy.parent / 'production.run'}"
    done = goldset("compare", version.parent / "v2", "--run", other, "--run", f"candidate={candidate}", "--k", "2")
    assert ("but 1 gold are known only because people read what candidate serves, and nobody read what production "
            "serves (goldset recall --queue)") in done.out
    # Under other names nobody can tell whose lists were read.
    done = goldset("compare", version.parent / "v2", "--run", f"x={candidate}", "--run", f"y={candidate}", "--k", "2")
    assert "because people read" not in done.out


def test_holes_have_probability_one_and_the_sample_loses_what_was_read(goldset: Goldset, copy: Path,
                                                                      candidate: Path) -> None:
    from goldset.review import resolve

    version = copy.parent / "workspace" / "gold" / "harbour" / "v1"
    goldset("recall", version, "--run", f"candidate={candidate}", "--queue", "-c", copy)
    config = load_config(copy)
    store = store_of(config, finished(config))
    holes = {(row["question_id"], row["span_id"]): row for row in store.queue().to_pylist() if row["reason"] == "hole"}
    muzzle = question_id(golden.MUZZLE)
    assert set(holes) == {(question_id(golden.WINTER), golden.T2), (muzzle, golden.B1), (muzzle, golden.DOGS)}
    assert {(row["stratum"], row["stratum_size"]) for row in holes.values()} == {("hole candidate", 3)}
    # Blind: what reaches the page of a hole is what reaches it of any item (tests/review has the keys).
    queue, labels = store.queue(), store.labels()
    carried = [row for row in labels.to_pylist() if row["item_id"] == holes[muzzle, golden.DOGS]["item_id"]]
    assert [(row["assessor"], row["origin"], row["relevant"]) for row in carried] == [("ada", "carried", True)]
    chances = {(row["question_id"], row["span_id"]): row["inclusion_prob"]
               for row in inclusion_probabilities(queue, resolve(queue=queue, labels=labels)).to_pylist()}
    assert chances[muzzle, golden.DOGS] == 1
    rest = [chance for (question, span), chance in chances.items() if chance < 1]
    assert rest == pytest.approx([5 / 11] * 4)  # the other sampled rejections stand for what they stood for


def test_what_cannot_be_told_stays_unjudged_and_is_not_asked_again(goldset: Goldset, copy: Path) -> None:
    run = copy.parent / "odd.run"
    run.write_text("\n".join(golden.run_lines({golden.WINTER: ["nowhere", "tickets-b"]}, "odd")) + "\n")
    version = copy.parent / "workspace" / "gold" / "harbour" / "v1"
    asked = ["recall", version, "--run", f"odd={run}", "--queue", "-c", copy]
    done = goldset(*asked)
    assert "queue: 1 served chunks stay unjudged: the version does not hold them" in done.err
    for who in ("dora", "emil"):
        post = _client(copy, who)
        item = post("/api/next", {})["item"]
        post("/api/answer", {"item": item["token"], "key": f"{who}-cannot", "edition": item["edition"], "seconds": 1.0,
                             "answer": "cant_tell", "sentences": []})
    assert goldset("publish", "-c", copy).code == 0
    done = goldset("recall", version.parent / "v2", *asked[2:])
    assert done.err.splitlines()[-4:] == [
        "queue: 0 passages that odd serves and nobody judged are put before people",
        "queue: 1 stay unjudged: people read them and cannot tell",
        "queue: 1 served chunks stay unjudged: the version does not hold them",
        f"queue: nothing waits for people; goldset publish -c {copy} makes the next version"]
    assert "nobody judged 100.0% of what it serves" in done.out


@pytest.mark.parametrize(("arguments", "complaint"), [
    (["--queue"], "--queue: name the configuration that the version was published from, with -c CONFIG"),
    (["-c", "x.toml"], "-c names the configuration for --queue: give both, or neither"),
])
def test_queue_and_configuration_go_together(goldset: Goldset, copy: Path, candidate: Path, arguments: list[str],
                                             complaint: str) -> None:
    version = copy.parent / "workspace" / "gold" / "harbour" / "v1"
    done = goldset("recall", version, "--run", f"candidate={candidate}", *arguments)
    assert (done.code, done.complaint) == (2, complaint)


def test_a_set_without_a_review_is_told_where_to_go(goldset: Goldset, copy: Path, candidate: Path) -> None:
    qrels = copy.parent / "foreign.qrels"
    qrels.write_text(f"{question_id(golden.WINTER)} 0 ferry-a 1\n")
    done = goldset("recall", "--qrels", qrels, "--run", f"candidate={candidate}", "--k", "2", "--queue", "-c", copy)
    assert done.code == 2
    assert "is not a published version, so no review belongs to it; 'goldset audit SET --run NAME=FILE --probe DIR'" \
        in done.complaint
    version = copy.parent / "workspace" / "gold" / "harbour" / "v1"
    copy.write_text(copy.read_text().replace('name = "harbour"', 'name = "port"'))
    rebuild(load_config(copy), quiet=True)
    done = goldset("recall", version, "--run", f"candidate={candidate}", "--queue", "-c", copy)
    assert done.code == 2
    assert "harbour/v1 is no version of 'port'" in done.complaint


def test_after_a_later_rebuild_its_review_asks(goldset: Goldset, copy: Path, candidate: Path) -> None:
    version = copy.parent / "workspace" / "gold" / "harbour" / "v1"
    log = copy.parent / "log.jsonl"
    asked = ["recall", version, "--run", f"candidate={candidate}", "--queue", "-c", copy]
    # The next rebuild has another question, and MUZZLE is not asked any more.
    add_question(copy)
    log.write_text("".join(line for line in log.read_text().splitlines(True) if golden.MUZZLE not in line))
    rebuild(load_config(copy), quiet=True)
    done = goldset(*asked)
    assert done.code == 0, done.err
    assert done.err.splitlines()[-3:-1] == [
        "queue: an earlier rebuild made harbour/v1; people are asked in the review of the last one, which has 6 of its "
        "7 questions",
        "queue: 1 passages that candidate serves and nobody judged are put before people"]  # T2 for WINTER
    config = load_config(copy)
    store = store_of(config, finished(config))
    holes = {(row["question_id"], row["span_id"]) for row in store.queue().to_pylist() if row["reason"] == "hole"}
    assert holes == {(question_id(golden.WINTER), golden.T2)}
    # What it says comes next works.
    for who in ("dora", "emil"):
        _answer(_client(copy, who), who)
    assert goldset("publish", "-c", copy).code == 0
    done = goldset("recall", version.parent / "v2", "--run", f"candidate={candidate}", "--json")
    assert _row(done, "unjudged")["value"] == 0


def test_a_version_whose_questions_are_all_gone_is_told_what_to_do(copy: Path, candidate: Path) -> None:
    labelled = load_set(copy.parent / "workspace" / "gold" / "harbour" / "v1")
    others = pa.array([f"q{number}" for number in range(7)])
    assert labelled.questions is not None
    gone = replace(labelled, questions=labelled.questions.set_column(0, "question_id", others))
    with pytest.raises(UsageError, match=re.escape(
            "the last rebuild of 'harbour' has none of the 7 questions of harbour/v1, so its review cannot ask about "
            "them; have that review answered and published")):
        queue_holes(load_config(copy), gone, {"candidate": read_run(candidate, system="candidate")}, ks=[2])


def test_the_next_rebuild_keeps_what_the_holes_taught(goldset: Goldset, copy: Path, candidate: Path) -> None:
    version = copy.parent / "workspace" / "gold" / "harbour" / "v1"
    goldset("recall", version, "--run", f"candidate={candidate}", "--queue", "-c", copy)
    for who in ("dora", "emil"):
        _answer(_client(copy, who), who)
    add_question(copy)
    config = load_config(copy)
    artifacts = rebuild(config, quiet=True)
    open_review(config, artifacts)
    store = store_of(config, artifacts)
    holes = {row["item_id"]: (row["question_id"], row["span_id"]) for row in store.queue().to_pylist()
             if row["reason"] == "hole"}
    muzzle = question_id(golden.MUZZLE)
    assert set(holes.values()) == {(question_id(golden.WINTER), golden.T2), (muzzle, golden.B1), (muzzle, golden.DOGS)}
    answers = {holes[row["item_id"]]: row["relevant"] for row in store.labels().to_pylist() if row["item_id"] in holes}
    assert answers[muzzle, golden.B1] is True
    assert answers[question_id(golden.WINTER), golden.T2] is False
    published = publish(config, partial=True)  # the new question waits
    gold = {(row["question_id"], row["span_id"]): row["weight"] for row in published.outcome.labelled.gold.to_pylist()}
    assert gold[muzzle, golden.B1] == 1


def _serve(copy: Path) -> tuple[subprocess.Popen[str], Post]:
    process = subprocess.Popen([sys.executable, "-m", "goldset", "review", "serve", "-c", str(copy), "--port", "0"],
                               stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    address = re.search(r"http://\S+/", process.stderr.readline())
    assert address is not None
    client = httpx.Client(base_url=address[0])
    client.post("/enter", data={"who": "dora"})

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = (client.post(path, json=body) if body else client.get(path)).raise_for_status().json()
        return told

    return process, post


def test_killed_on_the_way_nothing_is_lost(goldset: Goldset, copy: Path, candidate: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    version = copy.parent / "workspace" / "gold" / "harbour" / "v1"
    asked = ["recall", version, "--run", f"candidate={candidate}", "--queue", "-c", copy]
    with monkeypatch.context() as patch:  # broken off between the items and their texts
        def broken(*_: Any, **__: Any) -> int:
            raise KeyboardInterrupt

        patch.setattr(ReviewStore, "keep_passages", broken)
        assert goldset(*asked).code == 130
    assert json.loads(goldset(*asked, "--json").out)["queue"]["open"] == 4
    process, post = _serve(copy)
    try:
        assert _answer(post, "dora", most=1) == 1
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert _answer(_client(copy, "dora"), "dora") == 1  # the other one; the server that took the first is gone
    assert _answer(_client(copy, "emil"), "emil") == 2
    assert goldset("publish", "-c", copy).code == 0
