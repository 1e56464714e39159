"""The probe as a loop: drawn once, answered on the review page, taken up again by the next audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goldset.formats.sets import load_set
from goldset.pipeline.probe import campaign_of
from goldset.review import Passages, ReviewService, ReviewStore, create_app
from tests.cli.conftest import Goldset, beir, goldset

__all__ = ["beir", "goldset"]


def answer_everything(folder: Path, campaign: str, corpus: Any, relevant: bool) -> int:
    """What a person does on the page: yes or no until nothing is left."""
    from fastapi.testclient import TestClient

    store = ReviewStore(f"sqlite:///{folder / 'review.sqlite'}", campaign=campaign)
    service = ReviewService(store, campaign=campaign, passages=Passages(spans=corpus.spans))
    client = TestClient(create_app(service, title="Probe"), base_url="http://127.0.0.1:8765")
    assert client.post("/enter", data={"who": "ada"}).status_code == 200
    count = 0
    item = client.get("/api/next").json()["item"]
    while item:
        text = item["passage"]["text"]
        start, end = item["passage"]["sentences"][0]
        chosen = [{"start": start, "end": end, "text": text[start:end]}] if relevant else []
        reply = client.post("/api/answer", json={
            "item": item["token"], "key": f"key-{count:08}", "edition": item["edition"],
            "answer": "yes" if relevant else "no", "seconds": 1.0, "sentences": chosen})
        assert reply.status_code == 200, reply.text
        count += 1
        item = reply.json()["item"]
    store.close()
    return count


@pytest.mark.parametrize("relevant", [True, False])
def test_the_audit_draws_people_answer_and_the_audit_goes_on(
        goldset: Goldset, beir: Path, tmp_path: Path, relevant: bool) -> None:
    folder = tmp_path / "probe"
    arguments = ["audit", beir, "--run", f"good={beir / 'good.run'}", "--probe", folder]
    done = goldset(*arguments)
    # Of good.run (four other passages) and our BM25 over all lockers, two a question: sixty for thirty questions.
    assert f"probe: 0 of 60 passages answered in {folder}; answer the others on the page" in done.err
    assert "[insufficient] probe: probe open. 0 of 60 probed passages are answered" in done.out
    labelled = load_set(beir)
    from goldset.audit import Context

    campaign = campaign_of(Context(labelled))
    assert answer_everything(folder, campaign, labelled.corpus, relevant) == 60
    done = goldset(*arguments)
    assert f"probe: 60 of 60 passages answered in {folder}" in done.err
    # Thirty gold and no find: the upper bound of what two of about ten results a question may hide decides nothing.
    word, found = ("fail] probe: incomplete", 60) if relevant else ("insufficient] probe: inconclusive", 0)
    assert f"[{word}. {found} of 60 unlabelled results that people read answer after" in " ".join(
        done.out.split())
    assert "Completeness: fail" in done.out if relevant else "Completeness: insufficient" in done.out


def test_answers_stay_with_their_set(beir: Path, tmp_path: Path) -> None:
    from goldset.audit import Context

    labelled = load_set(beir)
    context = Context(labelled)
    other = Context(load_set(beir, relevant_from=1))
    assert campaign_of(context) == campaign_of(other)
    first = (beir / "qrels" / "test.tsv").read_text().splitlines()
    (beir / "qrels" / "test.tsv").write_text("\n".join(first[:-1]) + "\n")
    assert campaign_of(Context(load_set(beir))) != campaign_of(context)


def test_answer_needs_a_folder(goldset: Goldset, beir: Path) -> None:
    done = goldset("audit", beir, "--answer")
    assert (done.code, done.complaint) == (2, "--answer serves the page of a probe: name its folder with --probe DIR")


def test_one_family_is_not_enough(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    done = goldset("audit", beir, "--probe", tmp_path / "p")  # our BM25 alone
    assert done.code == 2
    assert "--probe needs two unrelated systems and has bm25: give another --run" in done.complaint
