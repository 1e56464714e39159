"""served() at size: 10,000 questions by 100 chunks, every gold decided by its evidence; and cutting changes no rank."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldset.schemas import from_rows, schema_of
from goldset.spans import SpanTables, canonical_spans, main_span, served

N, DEPTH, DOCUMENTS, EACH = 10_000, 100, 500, 100
WIDTH, STEP = 208, 160  # neighbouring chunks share 48 of 208 code points


def _corpus() -> tuple[pa.Table, SpanTables]:
    size = STEP * (EACH - 1) + WIDTH
    texts = {}
    for number in range(DOCUMENTS):
        row = "".join(f"Part {number} of {line} is kept in hall {line * 7 % 90}. " for line in range(size // 30 + 1))
        texts[f"d{number}"] = row[:size]
    documents = from_rows("documents", [
        {"doc_id": name, "text": text, "title": None, "url": None, "sha256": name, "metadata": "{}"}
        for name, text in texts.items()])
    chunks = from_rows("chunks", [
        {"chunk_id": f"{name}:{i}", "doc_id": name, "start": i * STEP, "end": i * STEP + WIDTH,
         "text": text[i * STEP : i * STEP + WIDTH], "body_start": 0, "offsets": "verified"}
        for name, text in texts.items() for i in range(EACH)])
    return chunks, canonical_spans(documents=documents, chunks=chunks)


def case() -> dict[str, pa.Table]:
    """Gold, run, spans, links and chunks: what served() takes. tests/benchmarks/served_speed.py times it."""
    chunks, made = _corpus()
    rng = np.random.default_rng(1)
    ids = np.array(chunks.column("chunk_id").to_pylist())
    drawn = np.concatenate([rng.choice(len(ids), DEPTH, replace=False) for _ in range(N)])
    run = pa.table({
        "system": pa.array(["s"] * len(drawn)), "family": pa.array(["f"] * len(drawn)),
        "question_id": pa.array(np.repeat([f"q{i}" for i in range(N)], DEPTH)),
        "rank": pa.array(np.tile(np.arange(1, DEPTH + 1), N), pa.int32()),
        "chunk_id": pa.array(ids[drawn]), "score": pa.nulls(len(drawn), pa.float64())})
    main, spans = main_span(made.links), {row["span_id"]: row for row in made.spans.to_pylist()}
    starts = dict(zip(ids.tolist(), chunks.column("start").to_pylist(), strict=True))
    rows = []
    for i in range(N):  # evidence in the middle of the chunk at rank 8, which no neighbour reaches
        chunk = ids[drawn[i * DEPTH + 7]]
        span, middle = spans[main[chunk]], starts[chunk] + WIDTH // 2
        rows.append({"question_id": f"q{i}", "span_id": span["span_id"], "evidence_source": "selected", "facet": None,
                     "evidence": [{"start": middle - 20, "end": middle + 20}], "weight": 1.0,
                     "twin_group": span["twin_group"]})
    return {"gold": from_rows("gold", rows), "run": run, "spans": made.spans, "links": made.links, "chunks": chunks}


def test_ten_thousand_questions_by_a_hundred_with_evidence() -> None:
    tables = case()
    run = tables["run"]
    found = served(**tables)
    assert found.schema == schema_of("deliveries")
    assert set(found.column("basis").to_pylist()) == {"evidence"}
    assert set(found.column("rank").to_pylist()) == {8}
    # Monotone in k: a list that is cut delivers what the whole list delivers down to there, and nothing else.
    for k in (7, 8):
        cut = run.filter(pc.less_equal(run.column("rank"), k))
        again = served(**{**tables, "run": cut})
        assert again.column("rank").null_count == (N if k == 7 else 0)
