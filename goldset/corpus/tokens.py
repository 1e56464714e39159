"""A model's tokenizer as the chunker uses it: where in the text each token starts."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from goldset.errors import ConfigError, MissingExtra
from goldset.model_files import find_model

TokenStarts = Callable[[str], list[int]]
"""Text -> code point at which each of its tokens starts, ascending; pieces of one code point repeat its position."""


def tokenizer_file(model: str) -> Path:
    """Model as ``encoder.located`` gives it -> its tokenizer.json.

    Raises:
        MissingExtra: the library ``tokenizers`` is not installed.
        ConfigError: no such package, folder or model, or one without that file.
    """
    if importlib.util.find_spec("tokenizers") is None:
        raise MissingExtra(f"the tokenizer '{model}'", "dense")
    folder, _ = find_model(model)
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ConfigError(f"tokenizer '{model}': {folder} has no tokenizer.json; name a model with a fast tokenizer, "
                          "or have transformers write one: AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)")
    return path


def load_token_starts(model: str) -> TokenStarts:
    """Model as ``encoder.located`` gives it -> the starts of its tokens, special tokens left out, nothing cut off.

    Raises:
        MissingExtra, ConfigError: as ``tokenizer_file``; ConfigError too for a file that the library cannot read.
    """
    path = tokenizer_file(model)
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare exceptions
        raise ConfigError(f"tokenizer '{model}': {path} cannot be read ({error}); "
                          "install or download the model again") from error
    # A tokenizer remembers how long its model's inputs are, and would drop the rest of a document.
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def starts(text: str) -> list[int]:
        offsets: list[tuple[int, int]] = tokenizer.encode(text, add_special_tokens=False).offsets
        return sorted(start for start, _ in offsets)

    return starts
