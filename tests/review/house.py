"""A served review of a few questions over one document, and an answer as the page sends it. Not a test itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from goldset.review import ReviewService, ReviewStore, create_app
from goldset.schemas import from_rows

TEXT = "Opening times differ. \U0001F4A9 We open at nine. The library closes at six. Bring a card."
CUT = 40  # after the second sentence
FIRST, LAST = f"d#0-{CUT}", f"d#{CUT}-{len(TEXT)}"


class House:
    """A served review of a few questions over one document."""

    def __init__(self, make: Any, tmp_path: Path, *, reasons: tuple[str, ...] = ("positive", "rejection"),
                 questions: int = 2, **service: Any) -> None:
        self.docs = make.documents(d=TEXT, e="Elsewhere it says ten.", twin="Elsewhere it says ten.")
        cuts = [("d", 0, CUT), ("d", CUT, len(TEXT)), ("e", 0, 22), ("twin", 0, 22)]
        self.spans = make.spans(self.docs, cuts, {"twin#0-22": "e#0-22"})
        self.questions = make.questions(*(f"when, number {n}?" for n in range(questions)))
        ids = self.questions.column("question_id").to_pylist()
        self.rows = [
            {"item_id": f"{reason}-{n}-{s}", "question_id": q, "span_id": span, "campaign": "rebuild", "wave": 1,
             "reason": reason, "stratum": "STRATUM", "stratum_size": 9, "u": 0.5, "order": 100 * n + 10 * k + s}
            for n, q in enumerate(ids) for k, reason in enumerate(reasons)
            for s, span in enumerate([FIRST, LAST])
            if reason in ("second", "adjudication") or s == k]
        self.url = f"sqlite:///{tmp_path / 'review.sqlite'}"
        self.store = ReviewStore(self.url)
        self.store.append_queue(from_rows("queue", self.rows))
        self.store.set_passages(questions=self.questions, spans=self.spans, documents=self.docs)
        self.now: datetime = make.t0
        self.options = service
        self.restart()

    def restart(self, tokens: dict[str, str] | None = None) -> None:
        self.service = ReviewService(self.store, clock=self.clock, reviewers=tuple(tokens or ()), **self.options)
        self.app = create_app(self.service, tokens=tokens, title="Test")

    def clock(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def client(self, name: str) -> Any:
        from fastapi.testclient import TestClient

        client = TestClient(self.app, base_url="http://127.0.0.1:8765")
        assert client.post("/enter", data={"who": name}).status_code == 200
        return client

    def labels(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.store.labels().to_pylist()
        return rows


def long_queue(make: Any, folder: Path, *, questions: int, each: int = 40) -> ReviewStore:
    """A store of ``questions`` questions with ``each`` passages to read, 1 character apart."""
    docs = make.documents(d=TEXT)
    spans = make.spans(docs, [("d", i, i + 40) for i in range(each)])
    ids = spans.column("span_id").to_pylist()
    asked = make.questions(*(f"question {n}" for n in range(questions)))
    store = ReviewStore(f"sqlite:///{folder / f'{questions}.sqlite'}")
    store.append_queue(from_rows("queue", [
        {"item_id": f"i{n}-{s}", "question_id": q, "span_id": span, "campaign": "rebuild", "wave": 1,
         "reason": "positive", "stratum": "positive", "stratum_size": questions * each, "u": 0.5, "order": each * n + s}
        for n, q in enumerate(asked.column("question_id").to_pylist()) for s, span in enumerate(ids)]))
    store.set_passages(questions=asked, spans=spans, documents=docs)
    return store


def body(item: dict[str, Any], answer: str, key: str = "key-00000001", sentences: Any = ()) -> dict[str, Any]:
    text = item["passage"]["text"].encode("utf-16-le")
    chosen = [item["passage"]["sentences"][i] for i in sentences]
    return {"item": item["token"], "key": key, "edition": item["edition"], "answer": answer, "seconds": 4.5,
            "sentences": [{"start": a, "end": b, "text": text[2 * a : 2 * b].decode("utf-16-le")} for a, b in chosen]}
