"""Texts -> unit vectors, the same bits on every start: fixed shapes, and a cache that only grows.

An embedding computed in a batch depends in its last bits on its batch mates, through the shape of the matrices.
So every forward pass here has 16 rows, padded to a multiple of 32 tokens that follows from the text alone: shuffled,
in a subset or resumed, a text has one vector. The model is loaded only when a text is not in the cache.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from goldset.errors import ConfigError, DataError, MissingExtra
from goldset.hardware import CPU, gpu_name, multiplies_with, resolved_device, resolved_dtype, through_onednn
from goldset.model_files import file_hashes, find_model, located, offline
from goldset.progress import Advance, progress
from goldset.text import content_hash
from goldset.vectors import Vectors, VectorStore

__all__ = ["BadVector", "Encoder", "PassageVectors", "load_encoder", "located", "vectors_key"]

ROWS = 16
TOKENS = 32
SHAPE_RULE = f"rows{ROWS}-tokens{TOKENS}"
SAVED = 64 * ROWS  # texts that are stored together
OVERLAP = 0.25  # share of a window that the next one repeats
SPECIAL = 8  # tokens that a tokenizer may add around a text, and more
MARGIN = 2  # tokens a window may grow by when it is tokenised on its own
LIBRARIES = ("sentence-transformers", "torch", "transformers")


class PassageVectors(NamedTuple):
    """Vectors of passages, one or more windows each.

    Attributes:
        vectors: float32, (windows, dimension), unit length.
        owners: int64, (windows,): which passage a window belongs to, ascending.
        windowed: passages longer than the encoder's window, embedded in several.
    """

    vectors: Vectors
    owners: npt.NDArray[np.int64]
    windowed: int


@dataclass(frozen=True)
class _Piece:
    """One text to run through the model: ``tokens`` wide, for window ``window`` of the entry ``key``."""

    tokens: int
    key: bytes
    window: int
    text: str


class BadVector(DataError):
    """A text whose vector is no direction.

    Attributes:
        number: of the text, from 0, among those given.
        why: what is wrong, and what to do.
    """

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"text {number + 1}: {why}")
        self.number, self.why = number, why


def load_encoder(model: str, *, dtype: str, cache: Path, device: str = "auto") -> Encoder:
    """Model name, folder, or ``package:<module with get_model_path>`` -> encoder; nothing heavy is loaded yet.

    Args:
        model: a package or folder never touches the network; a name is resolved by the model hub's client.
        dtype: float32, bfloat16, or auto = bfloat16 where the device computes in it.
        cache: root of the caches; vectors lie in ``embeddings/<key>/``.
        device: cpu, cuda, or auto = a GPU where there is one.

    Raises:
        MissingExtra: sentence-transformers, or the default encoder's package, is not installed.
        ConfigError: no such package, folder or model.
        DataError: the package's files are not those that were published.
    """
    folder, identity = _identify(model, dtype, device)
    return Encoder(folder, identity, cache)


def vectors_key(model: str, *, dtype: str, device: str = "auto") -> str:
    """Hash of all that can change a vector but its text and prompt. The model itself is not loaded."""
    return _key(_identify(model, dtype, device)[1])


def _identify(model: str, dtype: str, device: str) -> tuple[Path, dict[str, Any]]:
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingExtra(f"the encoder '{model}'", "dense")
    folder, name = find_model(model)
    device = resolved_device(device)
    dtype = resolved_dtype(dtype, device)
    return folder, {
        "model": name,
        "revision": content_hash(sorted(file_hashes(folder, name).items())),
        "dtype": dtype,
        "device": device if device == CPU else f"{device}: {gpu_name()}",
        "shape": SHAPE_RULE,
        "linear": multiplies_with(device, dtype),
        "libraries": {library: importlib.metadata.version(library) for library in LIBRARIES},
    }


def _key(identity: dict[str, Any]) -> str:
    """The same files are the same model under any name; everything else in the identity makes other vectors."""
    return content_hash({part: value for part, value in identity.items() if part != "model"})


class Encoder:
    """A sentence-transformers model with fixed shapes and a cache. ``load_encoder`` makes one."""

    def __init__(self, folder: Path, identity: dict[str, Any], cache: Path) -> None:
        self.folder = folder
        self.identity = identity
        self.store = VectorStore(cache / "embeddings" / _key(identity), identity)
        self.embedded = 0
        """Texts that went through the model since it was loaded; all others were in the cache."""

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> Vectors:
        """Texts -> float32 (n, dimension), unit length; what exceeds the encoder's window is cut (see ``cut``).

        Raises:
            BadVector: the model gives a vector that is not finite, or zero.
        """
        with progress("embedding", len(texts), quiet=quiet) as advance:
            found, keys = self._entries("text", texts, prompt, advance)
        return np.concatenate([found[key] for key in keys]) if keys else np.empty((0, 0), np.float32)

    def encode_passages(
        self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False, advance: Advance | None = None
    ) -> PassageVectors:
        """Texts -> vectors of overlapping windows, so that no word is cut off; a score is the maximum over windows.

        Args:
            texts: passages.
            prompt: put before each window.
            quiet: no progress bar.
            advance: called with the number of texts just finished, instead of a bar.

        Raises:
            BadVector: as ``encode``.
        """
        with progress("embedding", len(texts), quiet=quiet or advance is not None) as bar:
            found, keys = self._entries("passage", texts, prompt, advance or bar)
        windows = np.array([len(found[key]) for key in keys], dtype=np.int64)
        vectors = np.concatenate([found[key] for key in keys]) if keys else np.empty((0, 0), np.float32)
        return PassageVectors(vectors, np.repeat(np.arange(len(keys)), windows), int((windows > 1).sum()))

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        """Whether ``encode`` sees less than the whole text, one answer a text."""
        if all(self._surely_fits(prompt + text) for text in texts):
            return [False] * len(texts)
        return [length > self._window for length in self._lengths([prompt + _clean(text) for text in texts])]

    def _surely_fits(self, text: str) -> bool:
        """Whether a text is so short that neither model nor tokenizer is needed to tell.

        A token covers at least one byte; in ASCII also after the tokenizer has normalised the text.
        """
        size = len(text.encode("utf-8", "replace"))
        return size <= TOKENS or (text.isascii() and size + SPECIAL <= self._told_window)

    @cached_property
    def _told_window(self) -> int:
        """Tokens that the model sees, as its files tell without being loaded; 0 where they do not."""
        try:
            told = json.loads((self.folder / "sentence_bert_config.json").read_text(encoding="utf-8"))["max_seq_length"]
        except (OSError, ValueError, LookupError, TypeError):
            return 0
        return told if isinstance(told, int) else 0

    def _entries(
        self, kind: str, texts: Sequence[str], prompt: str, advance: Advance
    ) -> tuple[dict[bytes, Vectors], list[bytes]]:
        keys = [bytes.fromhex(content_hash(kind, prompt, _clean(text))) for text in texts]
        found = self.store.read(set(keys))
        numbers = {key: number for number, key in reversed(list(enumerate(keys))) if key not in found}
        advance(len(texts) - len(numbers))
        if numbers:
            missing = {key: _clean(texts[number]) for key, number in sorted(numbers.items())}
            found.update(self._embed(kind, missing, prompt, numbers, advance))
        return found, keys

    def _embed(
        self, kind: str, texts: dict[bytes, str], prompt: str, numbers: dict[bytes, int], advance: Advance
    ) -> dict[bytes, Vectors]:
        """Missing texts -> entries, stored as they are finished: a killed run repeats at most ``SAVED`` texts."""
        pieces = self._pieces(kind, texts, prompt)
        open_windows: dict[bytes, list[Any]] = {}
        for piece in pieces:
            open_windows.setdefault(piece.key, []).append(None)
        done: dict[bytes, Vectors] = {}
        unsaved: dict[bytes, Vectors] = {}
        try:
            for batch in _batches(pieces):
                finished = 0
                for piece, vector in zip(batch, self._forward(batch, prompt), strict=True):
                    norm = float(np.sqrt(np.square(vector, dtype=np.float64).sum()))
                    if not np.isfinite(norm) or norm == 0:
                        what = "zero" if norm == 0 else "NaN or infinite"
                        raise BadVector(
                            numbers[piece.key],
                            f"the encoder '{self.identity['model']}' in {self.identity['dtype']} gives a vector that "
                            f'is {what}; try dtype = "float32", or look at this text',
                        )
                    windows = open_windows[piece.key]
                    windows[piece.window] = (vector / norm).astype(np.float32)
                    if all(window is not None for window in windows):
                        unsaved[piece.key] = np.stack(windows)
                        finished += 1
                self.embedded += finished
                advance(finished)
                if len(unsaved) >= SAVED:
                    done.update(self.store.append(unsaved))
                    unsaved = {}
        finally:
            done.update(self.store.append(unsaved))
        return done

    def _pieces(self, kind: str, texts: dict[bytes, str], prompt: str) -> list[_Piece]:
        """What to run, longest shapes first."""
        lengths = self._lengths([prompt + text for text in texts.values()])
        pieces = []
        for (key, text), length in zip(texts.items(), lengths, strict=True):
            parts = self._split(text, prompt) if kind == "passage" and length > self._window else [text]
            sizes = [length] if len(parts) == 1 else self._lengths([prompt + part for part in parts])
            for window, (part, size) in enumerate(zip(parts, sizes, strict=True)):
                pieces.append(_Piece(self._width(size), key, window, part))
        return sorted(pieces, key=lambda piece: (-piece.tokens, piece.key, piece.window))

    def _split(self, text: str, prompt: str) -> list[str]:
        """A long text -> overlapping pieces that fit the window, cut where words begin."""
        tokenizer = self._tokenizer
        if not tokenizer.is_fast:
            raise ConfigError(
                f"the encoder '{self.identity['model']}' has no fast tokenizer, so passages beyond its "
                f"{self._window} tokens cannot be cut into windows; use shorter chunks or another model"
            )
        taken = self._lengths([prompt])[0] + MARGIN
        size = self._window - taken
        if size < TOKENS // 2:
            raise ConfigError(
                f"the prompt takes {taken} of the {self._window} tokens of the encoder "
                f"'{self.identity['model']}'; shorten passage_prompt"
            )
        tokens = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets, words = tokens["offset_mapping"], tokens.word_ids()
        parts, start = [], 0
        while True:
            end = min(start + size, len(offsets))
            parts.append(text[offsets[start][0] : offsets[end - 1][1]])
            if end == len(offsets):
                return parts
            after = start + int(size * (1 - OVERLAP))
            begin = after
            while begin > start + size // 2 and words[begin] == words[begin - 1]:
                begin -= 1
            start = begin if words[begin] != words[begin - 1] else after

    def _width(self, length: int) -> int:
        """Tokens a row is padded to: a multiple of 32, or the whole window where the width cannot be told."""
        if "message" in getattr(self._model[0], "modality_config", {}):
            return self._window
        return min(-(-length // TOKENS) * TOKENS, self._window)

    def _forward(self, batch: list[_Piece], prompt: str) -> Vectors:
        """One forward pass of exactly 16 rows -> float32 (rows asked for, dimension), not normalised."""
        import torch

        texts = [piece.text for piece in batch]
        texts += [texts[-1]] * (ROWS - len(texts))
        shape = {"text": {"padding": "max_length", "max_length": batch[0].tokens, "truncation": True}}
        with torch.inference_mode():
            features = self._model.preprocess(texts, prompt=prompt or None, processing_kwargs=shape)
            features = {name: part.to(self._device) if hasattr(part, "to") else part for name, part in features.items()}
            out = self._model(features)["sentence_embedding"]
        if self._model.truncate_dim is not None:
            out = out[:, : self._model.truncate_dim]
        result: Vectors = out[: len(batch)].to(torch.float32).cpu().numpy()
        return result

    def _lengths(self, texts: list[str]) -> list[int]:
        """Tokens of each text, special ones included, before any cut."""
        lengths: list[int] = []
        for low in range(0, len(texts), 4096):
            tokens = self._tokenizer(
                texts[low : low + 4096], truncation=False, return_attention_mask=False, verbose=False
            )["input_ids"]
            lengths.extend(map(len, tokens))
        return lengths

    @property
    def _tokenizer(self) -> Any:
        return self._model[0].tokenizer

    @cached_property
    def _window(self) -> int:
        """Tokens that the model sees at most."""
        return int(self._model.max_seq_length or 512)

    @property
    def _device(self) -> str:
        return str(self.identity["device"]).partition(":")[0]

    @cached_property
    def _model(self) -> Any:
        with offline():
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging

            logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # our own bars, and none off a terminal
            dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[self.identity["dtype"]]
            try:
                model = SentenceTransformer(
                    str(self.folder), device=self._device, local_files_only=True, model_kwargs={"dtype": dtype}
                )
            except (OSError, ValueError, KeyError) as error:
                raise ConfigError(
                    f"{self.folder}: not a sentence-transformers model ({error}); "
                    "name a model, a folder that holds one, or package:<module>"
                ) from error
        if self.identity["linear"] == "onednn":
            through_onednn(model)
        return model.eval()


def _batches(pieces: list[_Piece]) -> Iterator[list[_Piece]]:
    """At most 16 pieces of one width each."""
    batch: list[_Piece] = []
    for piece in pieces:
        if batch and (len(batch) == ROWS or piece.tokens != batch[0].tokens):
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch


def _clean(text: str) -> str:
    """Lone surrogates replaced: the tokenizers take UTF-8 only."""
    return text.encode("utf-8", "replace").decode("utf-8")
