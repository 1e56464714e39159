"""The pool over systems that chunk the same text unlike each other: what holds whatever they return."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.pool import PoolTables, pool_candidates
from goldset.schemas import from_rows
from goldset.spans import canonical_spans, sentences
from goldset.text import count_words, text_sha256

Range = tuple[int, int]
WORDS = np.array(["tide", "quay", "ferry", "anchor", "harbour", "of", "to", "the", "salt", "rope", "storm", "lamps"])


@dataclass(frozen=True)
class World:
    """One long document and a short one, and what each system indexed and returned of them."""

    texts: dict[str, str]
    place: dict[str, tuple[str, int, int]]  # chunk -> document, start, end
    run: pa.Table
    spans: pa.Table
    links: pa.Table
    chunks: pa.Table
    depth: int

    def pool(self) -> PoolTables:
        return pool_candidates(run=self.run, spans=self.spans, links=self.links, depth=self.depth, chunks=self.chunks)

    def ink(self, document: str, low: int, high: int) -> set[int]:
        return {at for at in range(low, high) if not self.texts[document][at].isspace()}


def _prose(rng: np.random.Generator, words: int) -> str:
    parts: list[str] = []
    while words > 0:
        size = int(rng.integers(4, 25))
        parts.append(" ".join(rng.choice(WORDS, size=size)).capitalize() + ".")
        words -= size
    return "".join(part + ("\n" if rng.random() < 0.1 else " ") for part in parts).rstrip()


def _windows(units: list[Range], size: int, step: int) -> list[Range]:
    starts = range(0, max(len(units) - size + step, 1), step)
    return [(units[first][0], units[min(first + size, len(units)) - 1][1]) for first in starts if first < len(units)]


def _words(text: str) -> list[Range]:
    found, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        found.append((start, at))
    return found


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Four systems: windows of 300 to 800 words, of 64 to 128, of whole sentences, and children with their parents."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    texts = {"long": _prose(rng, draw(st.integers(400, 1600))), "short": _prose(rng, draw(st.integers(5, 60)))}
    big, small = draw(st.integers(300, 800)), draw(st.integers(64, 128))
    few, child = draw(st.integers(2, 12)), draw(st.integers(40, 120))
    overlap = {size: draw(st.integers(-(-size // 4), size)) for size in (big, small, few)}
    place: dict[str, tuple[str, int, int]] = {}
    indexed: dict[str, list[str]] = {"big": [], "small": [], "sentences": [], "family": []}
    for document, text in texts.items():
        words = _words(text)
        children = _windows(words, child, child)
        parents = [(group[0][0], group[-1][1]) for group in
                   (children[first:first + 4] for first in range(0, len(children), 4))]
        cut = {"big": _windows(words, big, overlap[big]), "small": _windows(words, small, overlap[small]),
               "sentences": _windows(sentences(text), few, overlap[few]), "family": [*children, *parents]}
        for system, ranges in cut.items():
            for low, high in ranges:
                chunk = f"{system}-{document}-{low}-{high}"
                if chunk not in place:
                    indexed[system].append(chunk)
                place[chunk] = (document, low, high)
    rows = []
    for system, chunks in indexed.items():
        for question in ("q1", "q2"):
            returned = rng.permutation(chunks)[: rng.integers(0, len(chunks) + 1)]
            rows += [{"system": system, "family": system, "question_id": question, "rank": rank, "chunk_id": chunk,
                      "score": None} for rank, chunk in enumerate(returned.tolist(), 1)]
    documents = from_rows("documents", [{"doc_id": name, "text": text, "title": None, "url": None, "metadata": "{}",
                                         "sha256": text_sha256(text)} for name, text in texts.items()])
    table = from_rows("chunks", [{"chunk_id": chunk, "doc_id": document, "start": low, "end": high,
                                  "text": texts[document][low:high], "body_start": 0, "offsets": "verified"}
                                 for chunk, (document, low, high) in place.items()])
    made = canonical_spans(documents=documents, chunks=table)
    return World(texts, place, from_rows("run", rows), made.spans, made.links, table, draw(st.integers(1, 12)))


@settings(max_examples=20, deadline=None)
@given(worlds())
def test_a_pooled_chunk_is_read_and_what_is_left_out_is_counted(world: World) -> None:
    pooled = world.pool()
    candidates = {(row["question_id"], row["span_id"]) for row in pooled.candidates.to_pylist()}
    spans = {row["span_id"]: row for row in world.spans.to_pylist()}
    group = {name: row["twin_group"] for name, row in spans.items()}
    ink = {name: world.ink(row["doc_id"], row["start"], row["end"]) for name, row in spans.items()}
    pooled_chunks: dict[str, set[str]] = {"q1": set(), "q2": set()}
    wanted = set()
    for row in world.run.to_pylist():
        if row["rank"] > world.depth:
            continue
        question, (document, low, high) = row["question_id"], world.place[row["chunk_id"]]
        mine = world.ink(document, low, high)
        pooled_chunks[question].add(row["chunk_id"])
        shared = {name: len(mine & ink[name]) for name, about in spans.items() if about["doc_id"] == document}
        # Of two spans that hold as much of it, the first by id.
        most = min(shared, key=lambda name: (-shared[name], name))
        assert shared[most]
        chosen = {name for name, count in shared.items() if 2 * count >= len(ink[name])} | {most}
        assert all((question, group[name]) in candidates for name in chosen)
        wanted |= {(question, group[name]) for name in chosen}
    assert candidates == wanted
    asked = pooled.report["questions"]
    told = pooled.report["words_in_no_candidate_per_question"]
    if not asked:
        assert told is None
        return
    # Words of each span that was returned in part and is no candidate: the shares that the chunks cover, added up to
    # the whole at most. So never less than what is left out.
    outside = 0.0
    for question, returned in pooled_chunks.items():
        for name, about in spans.items():
            if (question, group[name]) in candidates:
                continue
            covering = [ink[name] & world.ink(*world.place[chunk]) for chunk in returned
                        if world.place[chunk][0] == about["doc_id"]]
            share = min(1.0, sum(map(len, covering)) / len(ink[name]))
            assert len(set().union(*covering)) <= share * len(ink[name]) + 1e-9
            outside += share * about["words"]
    assert told * asked == pytest.approx(outside, abs=1e-5)
    assert pooled.report["unlinked_chunks"] == 0
    total = sum(count_words(spans[name]["text"]) for _, name in candidates)
    assert pooled.report["words_per_question"] * asked == total
