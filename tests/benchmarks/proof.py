"""Plants every defect and every trap in synthetic sets and counts the verdicts; ``--write`` puts them in README.

    python tests/benchmarks/proof.py --seeds 400 --jobs 2 --write

Fewer than 100 seeds are refused: the table would promise more than it tested. About 2 s of one core a seed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from scipy.special import bdtr

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from goldset.text import content_hash  # noqa: E402
from tests.audit.planted import CASES, Case, verdict  # noqa: E402

STRONG, CLEAN, LEVEL, FEWEST = 0.90, 0.07, 0.05, 100
WORDS = ("fail", "warn", "pass", "insufficient")
_BLOCK = re.compile(r"(<!-- generated: proof -->\n).*?(<!-- end -->)", re.DOTALL)


def holds(case: Case, convicted: int, seeds: int) -> tuple[bool, float] | None:
    """Whether a bar holds, with the exact binomial p of so few (strong) or so many (clean, trap) convictions at it."""
    if not case.bar:
        return None
    if case.strength == "strong":
        p = float(bdtr(convicted, seeds, STRONG))
    elif case.strength in ("clean", "trap"):
        p = 1 - float(bdtr(convicted - 1, seeds, CLEAN)) if convicted else 1.0
    else:
        return None
    return p >= LEVEL, p


def verdicts_of(seed: int) -> list[str]:
    """The verdict of every case on its set of this seed."""
    return [verdict(case, seed) for case in CASES]


def fingerprint() -> str:
    """Of everything that can change a verdict here: what was counted with other code is counted again."""
    files = [*(ROOT / "goldset").rglob("*.py"), ROOT / "tests/audit/planted.py", ROOT / "tests/audit/conftest.py"]
    parts = ("audit", "stats", "spans", "planted.py", "conftest.py", "lexical.py", "text.py", "schemas.py")
    return content_hash([path.read_text(encoding="utf-8") for path in sorted(files) if {*path.parts} & {*parts}])


def count(seeds: int, jobs: int = 1, keep: Path | None = None) -> dict[Case, Counter[str]]:
    """Case -> verdict -> seeds, for seeds 0 to ``seeds - 1``; ``keep`` holds the seeds that are counted already."""
    mine, known = fingerprint(), {}
    if keep is not None and keep.exists():
        rows = map(json.loads, keep.read_text(encoding="utf-8").splitlines())
        known = {row["seed"]: row["verdicts"] for row in rows if row["code"] == mine and row["seed"] < seeds}
    left = [seed for seed in range(seeds) if seed not in known]
    began = time.perf_counter()
    with ProcessPoolExecutor(jobs) as pool:
        for done, (seed, words) in enumerate(zip(left, pool.map(verdicts_of, left), strict=True), 1):
            known[seed] = words
            if keep is not None:
                with keep.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps({"seed": seed, "code": mine, "verdicts": words}) + "\n")
            if done % 20 == 0:
                print(f"{done} of {len(left)} seeds, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return {case: Counter(words[place] for words in known.values()) for place, case in enumerate(CASES)}


def table(found: Mapping[Case, Counter[str]], seeds: int) -> str:
    """Counts -> the table of the README."""
    lines = [f"Seeds 0 to {seeds - 1}, {seeds} sets a row; thresholds are those above.", "",
             "| property | set | planted | convicted | warned | acquitted | undecided | bar | exact p |",
             "|---|---|---|---|---|---|---|---|---|"]
    for case, verdicts in found.items():
        held = holds(case, verdicts["fail"], seeds)
        strong = case.strength == "strong"
        bar = "" if held is None else f"≥ {100 * STRONG:.0f} %" if strong else f"≤ {100 * CLEAN:.0f} %"
        said = "" if held is None else f"{held[1]:.2f}{'' if held[0] else ' (missed)'}"
        shares = " | ".join(f"{100 * verdicts[word] / seeds:.1f} %" for word in WORDS)
        lines.append(f"| {case.check} | {case.strength} | {case.what} | {shares} | {bar} | {said} |")
    return "\n".join(lines)


def main() -> int:
    """Count, print, write; exit code 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--keep", type=Path, help="file of the seeds that are counted already, so that a run resumes")
    parser.add_argument("--write", action="store_true", help="replace the block 'proof' of README.md")
    options = parser.parse_args()
    if options.seeds < FEWEST:
        parser.error(f"--seeds {options.seeds}: at least {FEWEST}")
    found = count(options.seeds, options.jobs, options.keep)
    text = table(found, options.seeds)
    print(text)
    if options.write:
        readme = ROOT / "README.md"
        readme.write_text(_BLOCK.sub(lambda match: match[1] + text + "\n" + match[2], readme.read_text()))
    missed = [case.what for case, verdicts in found.items()
              if (held := holds(case, verdicts["fail"], options.seeds)) and not held[0]]
    for what in missed:
        print(f"bar missed: {what}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
