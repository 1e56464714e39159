"""The judge kind ``cross_encoder``: a model that reads question and passage together and gives one score.

Its threshold comes from people's labels: the score's scale is the model's own. Long passages are scored window by
window. Every forward pass has 16 rows of a width that follows from the text alone, so a pair has one score, whatever
is judged with it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldset.errors import ConfigError, DataError, MissingExtra
from goldset.judges.rubric import Rubric
from goldset.judges.scored import ThresholdJudge
from goldset.model_files import file_hashes, find_model, offline
from goldset.text import content_hash

ROWS, TOKENS = 16, 32
OVERLAP = 0.25  # share of the room for the passage that the next window repeats
LIBRARIES = ("sentence-transformers", "torch", "transformers")


class _Window(NamedTuple):
    """One row for the model: tokens of question and window, the pair it belongs to."""

    width: int
    pair: int
    row: dict[str, list[int]]


class CrossScorer:
    """The model's raw output for question and passage, the greatest over the passage's windows."""

    unit = "logit"
    rule = "raw output of the cross-encoder, greatest over windows, of the need or else the question/1"

    def __init__(self, model: str) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise MissingExtra(f"the cross-encoder '{model}'", "dense")
        self._folder, name = find_model(model)
        self.identity: dict[str, Any] = {
            "model": name, "revision": content_hash(sorted(file_hashes(self._folder, name).items())),
            "dtype": "float32", "device": "cpu", "shape": f"rows{ROWS}-tokens{TOKENS}",
            "libraries": {library: importlib.metadata.version(library) for library in LIBRARIES}}

    def score(self, questions: Sequence[str], passages: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """See ``Scorer.score``.

        Raises:
            DataError: the model gives a score that is not finite.
        """
        scores = np.full(len(questions), -np.inf)
        counts = np.zeros(len(questions), np.int64)
        rows = [window for number, (question, passage) in enumerate(zip(questions, passages, strict=True))
                for window in self._windows(number, question, passage)]
        for batch in _batches(sorted(rows, key=lambda window: -window.width)):
            for window, score in zip(batch, self._forward(batch), strict=True):
                if not np.isfinite(score):
                    raise DataError(f"the cross-encoder '{self.identity['model']}' gives {score} for the passage "
                                    f"'{passages[window.pair][:60]}'; look at this text, or use another model")
                scores[window.pair] = max(scores[window.pair], score)
                counts[window.pair] += 1
        return scores, counts

    def cut(self, questions: Sequence[str]) -> list[bool]:
        """Whether a question takes more than half of the model's window, and is cut there."""
        return [len(self._offsets(question)) > self._room for question in questions]

    def _windows(self, number: int, question: str, passage: str) -> Iterator[_Window]:
        """A pair -> the rows that the model reads: the question, whole or cut, before each window of the passage."""
        question, passage = _clean(question), _clean(passage)
        offsets = self._offsets(question)
        if len(offsets) > self._room:
            question = question[: offsets[self._room - 1][1]]
        taken = min(len(offsets), self._room) + self._tokenizer.num_special_tokens_to_add(pair=True)
        found = self._tokenizer(question, passage, truncation="only_second", max_length=self._longest, verbose=False,
                                stride=int(OVERLAP * (self._longest - taken)), return_overflowing_tokens=True)
        names = [name for name in self._tokenizer.model_input_names if name in found]
        for row in range(len(found["input_ids"])):
            length = len(found["input_ids"][row])
            width = min(-(-length // TOKENS) * TOKENS, self._longest)
            yield _Window(width, number, {name: found[name][row] for name in names})

    def _forward(self, batch: list[_Window]) -> NDArray[np.float64]:
        """One forward pass of exactly 16 rows -> the scores of those asked for."""
        import torch

        rows = [window.row for window in batch] + [batch[-1].row] * (ROWS - len(batch))
        padded = self._tokenizer.pad(rows, padding="max_length", max_length=batch[0].width, return_tensors="pt",
                                     verbose=False)
        with torch.inference_mode():
            scores: NDArray[np.float64] = self._model.model(**padded).logits[: len(batch), 0].double().numpy()
        return scores

    def _offsets(self, text: str) -> list[tuple[int, int]]:
        found = self._tokenizer(_clean(text), add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return list(found["offset_mapping"])

    @property
    def _tokenizer(self) -> Any:
        return self._model.tokenizer

    @cached_property
    def _longest(self) -> int:
        """Tokens that the model sees at most."""
        return int(self._model.max_seq_length or 512)

    @property
    def _room(self) -> int:
        """Tokens that a question may take."""
        return self._longest // 2

    @cached_property
    def _model(self) -> Any:
        with offline():
            from sentence_transformers import CrossEncoder
            from transformers.utils import logging

            logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # our own bars, and none off a terminal
            try:
                model = CrossEncoder(str(self._folder), device="cpu", local_files_only=True)
            except (OSError, ValueError, KeyError) as error:
                raise ConfigError(f"{self._folder}: not a cross-encoder ({error}); name a model, a folder that holds "
                                  "one, or package:<module>") from error
        # Without trained weights for its output the library would draw some at random, with a warning only.
        kind = (model.model.config.architectures or ["unknown"])[0]
        if not kind.endswith("ForSequenceClassification") or model.num_labels != 1:
            raise ConfigError(f"{self._folder}: {kind} with {model.num_labels} outputs; a judge needs a cross-encoder "
                              "(…ForSequenceClassification) with one, such as those trained on MS MARCO")
        if not model.tokenizer.is_fast:
            raise ConfigError(f"{self._folder}: no fast tokenizer, so long passages cannot be cut into windows; "
                              "use another model")
        return model.eval()


class CrossEncoderJudge(ThresholdJudge):
    """Relevant when the greatest score over the passage's windows reaches the calibrated threshold."""

    def __init__(self, scorer: CrossScorer, *, model: str, family: str, rubric: Rubric, calibration: Path) -> None:
        super().__init__(scorer, kind="cross_encoder", weak=False, model=model, family=family, rubric=rubric,
                         calibration=calibration)


def _batches(windows: list[_Window]) -> Iterator[list[_Window]]:
    """At most 16 windows of one width each."""
    batch: list[_Window] = []
    for window in windows:
        if batch and (len(batch) == ROWS or window.width != batch[0].width):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _clean(text: str) -> str:
    """Lone surrogates replaced: the tokenizers take UTF-8 only."""
    return text.encode("utf-8", "replace").decode("utf-8")
