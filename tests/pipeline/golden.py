"""The golden corpus: ten tiny documents, a log of twenty lines, recorded verdicts and recorded readers.

Everything is small enough to be worked out by hand; the derivations stand in the tests.

Four documents have eight sentences of about the same length and two chunks, ``a`` = sentences 0-4 and ``b`` = 3-7
(ferry has a third, ``c`` = 1-4, that lies inside ``a``). a and b share two sentences of five, less than half, so both
are anchors; the sentence boundary nearest the middle of the overlap is the one between 3 and 4. So the two spans of
such a document are sentences 0-3 and 4-7. The other documents are one chunk and one span each; lost2 repeats lost.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from goldset.text import question_id

LONG: dict[str, list[str]] = {
    "ferry": [
        "Ferry one leaves North Quay at seven each day.",
        "The crossing to Seal Island takes half an hour.",
        "Boats carry eighty people and twelve bicycles.",
        "In winter the last boat returns at four o'clock.",
        "Storms above force nine cancel every crossing.",
        "Cancelled trips are posted on the harbour board.",
        "Crew members wear red jackets on the open deck.",
        "Life vests are kept beneath the wooden benches.",
    ],
    "bikes": [
        "Cyclists ride on the lower deck by the stern.",
        "A bicycle costs three crowns for each passage.",
        "Folding cycles in a bag are carried for nothing.",
        "Tandems need a second place and two payments.",
        "Racks hold twelve machines and fill by half past.",
        "Straps hang from hooks along the painted railing.",
        "Batteries must be taken off before the departure.",
        "Repairs are done in the shed behind the old kiosk.",
    ],
    "tickets": [
        "Tickets are sold at the counter beside the ramp.",
        "Children under six go free with a grown companion.",
        "A family card covers two adults and four children.",
        "Cards are valid for ten days after their purchase.",
        "Refunds need the paper slip and the payment card.",
        "A refund is paid within five days of the request.",
        "Students show a college pass to save a third part.",
        "Groups of ten or more must book one week earlier.",
    ],
    "pier": [
        "The pier opens at nine and closes after sunset.",
        "Anglers may fish from the western rail all night.",
        "Steps on the east side lead down to the shingle.",
        "A plaque names the builder and his seven brothers.",
        "Lamps along the walk are lit by solar collectors.",
        "Swimming beside the piles is forbidden by bylaw.",
        "On holidays the gate stays open until midnight.",
        "Keepers lock the turnstile when waves come over.",
    ],
}
SHORT: dict[str, list[str]] = {
    "parking": ["Parking costs two crowns an hour near the church.", "Permits for residents hang in the windscreen."],
    "dogs": ["Dogs travel free when they are on a short lead.", "Muzzles are lent at the counter for nothing."],
    "lost": ["Found property is kept for a month at the kiosk.", "Ask the porter and describe the missing thing."],
    "lost2": ["Found property is kept for a month at the kiosk.", "Ask the porter and describe the missing thing."],
    "weather": ["Wind speeds are measured on the harbour tower.", "Readings appear on the harbour board hourly."],
}
DOCUMENTS = {**LONG, **SHORT}
CHUNKS: dict[str, tuple[str, int, int]] = {  # chunk -> document, first and last sentence
    **{f"{name}-{part}": (name, *reach) for name in LONG for part, reach in (("a", (0, 4)), ("b", (3, 7)))},
    "ferry-c": ("ferry", 1, 4),
    **{name: (name, 0, 1) for name in SHORT},
}

WINTER, BICYCLE, REFUND = "last boat winter", "bicycle price", "refund days"
GATE, LOST, HELICOPTER, MUZZLE = "pier gate open", "lost property", "helicopter landing", "dog muzzle"
ASKED = {WINTER: 3, BICYCLE: 2, REFUND: 2, GATE: 1, LOST: 2, HELICOPTER: 1, MUZZLE: 1}  # 12 events

PRODUCTION: dict[str, list[str]] = {
    WINTER: ["ferry-b", "weather", "ferry-a"],
    BICYCLE: ["parking", "bikes-a"],
    REFUND: ["tickets-a", "tickets-b", "weather"],
    GATE: ["pier-a", "ferry-b", "pier-b"],
    LOST: ["lost2", "dogs"],
    HELICOPTER: ["weather", "pier-b"],
    MUZZLE: ["parking", "weather"],
}
BROWSED: dict[str, list[str]] = {WINTER: ["ferry-c"], BICYCLE: ["bikes-b"], MUZZLE: ["dogs"]}
SEED = 8  # with it the pair (MUZZLE, dogs), where the judge is wrong, is among the sampled rejections


def place(doc_id: str, first: int, last: int | None = None) -> tuple[int, int]:
    """Offsets of some sentences of a document; sentences are joined by one space."""
    sentences = DOCUMENTS[doc_id]
    last = first if last is None else last
    start = sum(len(sentence) + 1 for sentence in sentences[:first])
    return start, start + len(" ".join(sentences[first : last + 1]))


def cut(doc_id: str, part: int = 0) -> str:
    """The span id of a short document, or of the first or second half of a long one.

    The cut lies where sentence 4 starts, so the first half keeps the space before it.
    """
    if doc_id in SHORT:
        start, end = place(doc_id, 0, 1)
    else:
        middle = place(doc_id, 4)[0]
        start, end = (0, middle) if part == 0 else (middle, place(doc_id, 4, 7)[1])
    return f"{doc_id}#{start}-{end}"


F1, F2, B1, B2 = cut("ferry", 0), cut("ferry", 1), cut("bikes", 0), cut("bikes", 1)
T1, T2, P1, P2 = cut("tickets", 0), cut("tickets", 1), cut("pier", 0), cut("pier", 1)
PARKING, DOGS, PROPERTY, WEATHER = cut("parking"), cut("dogs"), cut("lost"), cut("weather")

# bm25 returns every chunk that shares a word: WINTER a, b, c of ferry (sentence 3 is in all); BICYCLE bikes-a;
# REFUND both of tickets ("days" in 3 and 5); GATE pier-a ("pier"), pier-b and ferry-b ("gate", "open"); LOST lost and
# lost2 ("property"), one twin group; HELICOPTER and MUZZLE nothing. With production and browse:
POOL: dict[str, set[str]] = {
    WINTER: {F1, F2, WEATHER},
    BICYCLE: {B1, B2, PARKING},
    REFUND: {T1, T2, WEATHER},
    GATE: {P1, P2, F2},
    LOST: {PROPERTY, DOGS},
    HELICOPTER: {WEATHER, P2},
    MUZZLE: {PARKING, WEATHER, DOGS},
}
SAID_YES = {(WINTER, F1), (BICYCLE, B1), (REFUND, T1), (REFUND, T2), (GATE, P1), (LOST, PROPERTY)}  # T1 is wrong
SAID_NOTHING = {(GATE, P2), (HELICOPTER, WEATHER)}
REJECTED = {(text, span) for text, spans in POOL.items() for span in spans} - SAID_YES - SAID_NOTHING  # 19 - 6 - 2 = 11
SAMPLED = 5  # [review] rejection_min; a tenth of 11 would be 2

# What ada and ben found, as sentences of documents; cleo reads what they disagree on.
FOUND: dict[str, list[tuple[str, int]]] = {
    WINTER: [("ferry", 3)], BICYCLE: [("bikes", 1)], REFUND: [("tickets", 4), ("tickets", 5)],
    GATE: [("pier", 0), ("pier", 6)], LOST: [("lost", 0)], HELICOPTER: [], MUZZLE: [("dogs", 1)],
}
BEN_TOO: dict[str, list[tuple[str, int]]] = {BICYCLE: [("bikes", 2)]}
BEN_NOT: dict[str, list[tuple[str, int]]] = {GATE: [("pier", 0)]}

CONFIG = """\
[project]
name = "harbour"
workspace = "workspace"
seed = {seed}
[corpus]
documents = "documents.jsonl"
chunks = "chunks.jsonl"
[questions]
logs = [{{path = "log.jsonl", text = "q", time = "ts", session = "sid"}}]
window = "6w"
size = 100
languages = ["en"]
[systems.bm25]
kind = "bm25"
family = "lexical"
[systems.production]
kind = "run"
family = "mixed"
path = "production.run"
[systems.browse]
kind = "python"
family = "browse"
entry = "tests.pipeline.golden:browse"
[judge]
kind = "replay"
family = "recorded"
path = "verdicts.jsonl"
rubric = "relevance.md"
[review]
profile = "basic"
rejection_min = 5
second_share = 1.0
carried_share = 0.0
replay = "labels.jsonl"
[scoring]
system = "production"
served_k = 2
evaluated_k = 2
"""


def browse(questions: pa.Table, depth: int) -> list[dict[str, Any]]:
    """The system ``browse``: what somebody who leafs through the documents would open."""
    found = zip(questions.column("question_id").to_pylist(), questions.column("text").to_pylist(), strict=True)
    return [{"question_id": name, "chunk_id": chunk} for name, text in found for chunk in BROWSED.get(text, [])[:depth]]


def documents() -> list[dict[str, Any]]:
    """Ten documents; one has nothing in it."""
    rows = [{"doc_id": name, "text": " ".join(sentences)} for name, sentences in DOCUMENTS.items()]
    return [*rows, {"doc_id": "blank", "text": " \n "}]


def chunks() -> list[dict[str, Any]]:
    """Fourteen chunks with offsets."""
    rows = []
    for chunk, (doc_id, first, last) in CHUNKS.items():
        start, end = place(doc_id, first, last)
        text = " ".join(DOCUMENTS[doc_id])[start:end]
        rows.append({"chunk_id": chunk, "doc_id": doc_id, "text": text, "start": start, "end": end})
    return rows


def log() -> list[str]:
    """Twenty lines: twelve events of seven questions, and eight that must be dropped, each for another reason."""
    asked = [text for text, times in ASKED.items() for _ in range(times)]
    lines = [json.dumps({"q": text, "ts": f"2026-03-{2 + number:02d}T{8 + number % 7:02d}:{(number * 17) % 60:02d}:11Z",
                         "sid": f"s{number}"}) for number, text in enumerate(asked)]
    other = [("hello", "2026-03-03T09:01:00Z"), ("thank you", "2026-03-04T10:22:00Z"),
             ("and on sundays?", "2026-03-05T11:43:00Z"), ("  ", "2026-03-06T12:04:00Z"),
             ("Wie komme ich am Sonntag mit dem Hund zum Hafen?", "2026-03-07T13:35:00Z"),
             ("harbour museum entrance", "2025-03-08T14:56:00Z"), ("harbour museum entrance", None)]
    lines += [json.dumps({"q": text, "ts": time, "sid": f"t{number}"}) for number, (text, time) in enumerate(other)]
    return [*lines, '{"q": "lost prop']


def run_lines(lists: dict[str, list[str]], tag: str = "production") -> list[str]:
    """TREC lines of ranked chunks by question text."""
    return [f"{question_id(text)} Q0 {chunk} {rank} {10 - rank} {tag}"
            for text, chunks_ in lists.items() for rank, chunk in enumerate(chunks_, 1)]


def verdicts() -> list[dict[str, Any]]:
    """What the judge is recorded to have said; one pair with null, one not at all."""
    said = {**dict.fromkeys(REJECTED, False), **dict.fromkeys(SAID_YES, True)}
    rows: list[dict[str, Any]] = [{"question_id": question_id(text), "span_id": span, "relevant": relevant}
                                  for (text, span), relevant in sorted(said.items())]
    return [*rows, {"question_id": question_id(HELICOPTER), "span_id": WEATHER, "relevant": None}]


def labels() -> list[dict[str, Any]]:
    """Three recorded readers."""
    rows = []
    for text, found in FOUND.items():
        rows.append({"question": text, "assessor": "ada", "evidence": ranges(found)})
        rows.append({"question": text, "assessor": "ben", "evidence": ranges([*found, *BEN_TOO.get(text, [])]),
                     "no": ranges(BEN_NOT.get(text, []))})
        rows.append({"question": text, "assessor": "cleo", "evidence": ranges(found)})
    return rows


def ranges(sentences: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """Sentences as ranges of the replay file."""
    return [{"doc_id": doc_id, "start": place(doc_id, number)[0], "end": place(doc_id, number)[1]}
            for doc_id, number in sentences]


def jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write(folder: Path, *, seed: int = SEED) -> Path:
    """Write corpus, log, run, verdicts, labels, rubric and configuration; return the configuration's path."""
    folder.mkdir(parents=True, exist_ok=True)
    jsonl(folder / "documents.jsonl", documents())
    jsonl(folder / "chunks.jsonl", chunks())
    (folder / "log.jsonl").write_text("\n".join(log()) + "\n", encoding="utf-8")
    (folder / "production.run").write_text("\n".join(run_lines(PRODUCTION)) + "\n", encoding="utf-8")
    jsonl(folder / "verdicts.jsonl", verdicts())
    jsonl(folder / "labels.jsonl", labels())
    (folder / "relevance.md").write_text("version: 1.0\n\nRelevant is what answers.\n", encoding="utf-8")
    config = folder / "harbour.toml"
    config.write_text(CONFIG.format(seed=seed), encoding="utf-8")
    return config


def copied(config: Path, folder: Path) -> Path:
    """A copy of a whole project with its workspace, to be changed."""
    shutil.copytree(config.parent, folder)
    return folder / config.name


def listing(folder: Path) -> dict[str, int]:
    """Every file under a folder with its size."""
    return {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
