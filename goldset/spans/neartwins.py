"""Near twins: spans that almost repeat each other, found by MinHash, decided by exact similarity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

import pyarrow as pa

from goldset.progress import progress
from goldset.schemas import conform
from goldset.spans.twinlog import TwinDecision
from goldset.text import twin_key

LISTED = 0.8
"""Similarity from which near twins are listed."""
MOST = 200_000
"""Above so many texts near twins are looked for only where they are to be merged: it takes memory and minutes."""
_RUN = 3  # words in a row that are compared
_PERMUTATIONS = 128
_BLOCK = 2_000


def shingles(text: str) -> frozenset[str]:
    """All runs of three words of a text; shorter texts are one run."""
    words = text.split()
    return frozenset(" ".join(words[at : at + _RUN]) for at in range(max(len(words) - _RUN + 1, 1)))


def similarity(left: str, right: str) -> float:
    """Jaccard similarity of the runs of three words of two texts."""
    one, other = shingles(left), shingles(right)
    return len(one & other) / len(one | other)


def near_twins(spans: pa.Table, *, threshold: float = LISTED, quiet: bool = True) -> list[dict[str, Any]]:
    """Spans -> pairs of texts of at least this similarity, most alike first.

    Each text is looked at once, under the first of its exact twins. Candidates come from locality-sensitive hashing
    tuned to miss few; the similarity is exact. Unless ``quiet``, a bar shows how far it is.

    Returns:
        Rows with left and right (span_ids, in order), similarity, and difference: what to change in left to get right.
    """
    from datasketch import MinHash, MinHashLSH

    first = {row["span_id"]: row["text"] for row in spans.select(["span_id", "text", "twin_group"]).to_pylist()
             if row["span_id"] == row["twin_group"]}
    ids = sorted(first)
    index = MinHashLSH(threshold=max(threshold - 0.1, 0.1), num_perm=_PERMUTATIONS, weights=(0.1, 0.9))
    pairs: list[dict[str, Any]] = []
    with progress("looking for near twins", len(ids), quiet=quiet) as advance:
        for low in range(0, len(ids), _BLOCK):
            block = ids[low : low + _BLOCK]
            runs = [[run.encode("utf-8", "surrogatepass") for run in sorted(shingles(first[name]))] for name in block]
            for name, sketch in zip(block, MinHash.bulk(runs, num_perm=_PERMUTATIONS), strict=True):
                for other in index.query(sketch):
                    alike = similarity(first[other], first[name])
                    if alike >= threshold:
                        pairs.append({"left": other, "right": name, "similarity": alike,
                                      "difference": difference(first[other], first[name])})
                index.insert(name, sketch)
            advance(len(block))
    return sorted(pairs, key=lambda pair: (-pair["similarity"], pair["left"], pair["right"]))


def difference(left: str, right: str, most: int = 3) -> str:
    """The first differences between two texts, in words: ``'three' -> 'four'; + 'now'; - 'then'``."""
    one, other = left.split(), right.split()
    changes = []
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        old, new = (_short(words) for words in (one[a:b], other[c:d]))
        if kind != "equal":
            changes.append(f"'{old}' -> '{new}'" if old and new else f"- '{old}'" if old else f"+ '{new}'")
    more = [f"and {len(changes) - most} more"] if len(changes) > most else []
    return "; ".join(changes[:most] + more)


def segments(left: str, right: str, around: int = 6) -> list[tuple[str, str]]:
    """Two texts word by word, to be shown: (same | gap | left | right, words) in reading order.

    Around each difference stand the words that both have; what lies further off is a gap.
    """
    one, other = left.split(), right.split()
    parts: list[tuple[str, str]] = []
    codes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    for number, (kind, a, b, c, d) in enumerate(codes):
        if kind != "equal":
            parts += [(side, " ".join(words)) for side, words in (("left", one[a:b]), ("right", other[c:d])) if words]
            continue
        before = one[a : a + around] if number else []
        after = one[max(b - around, a + len(before)) : b] if number < len(codes) - 1 else []
        if b - a > len(before) + len(after):
            parts += [("same", " ".join(before)), ("gap", "…"), ("same", " ".join(after))]
        else:
            parts.append(("same", " ".join([*before, *after])))
    return [(kind, words) for kind, words in parts if words]


def _short(words: Sequence[str]) -> str:
    return " ".join(words) if len(words) <= 12 else " ".join([*words[:6], "…", *words[-5:]])


def merge_twins(spans: pa.Table, pairs: Sequence[Mapping[str, Any]],
                apart: Sequence[tuple[str, str]] = ()) -> pa.Table:
    """Spans, pairs of near twins -> spans whose twin groups are joined; a group is named after its smallest span_id.

    Joined spans are judged once, under that span; served() follows evidence into the others word by word, and what a
    near twin lacks it does not deliver. Pairs are taken in order; one that would bring two groups of ``apart``
    together, directly or through others, is left out.
    """
    parent: dict[str, str] = {}
    foes: dict[str, set[str]] = {}

    def root(name: str) -> str:
        while parent.get(name, name) != name:
            name = parent[name]
        return name

    for one, other in apart:
        foes.setdefault(one, set()).add(other)
        foes.setdefault(other, set()).add(one)
    for pair in pairs:
        low, high = sorted((root(pair["left"]), root(pair["right"])))
        if low == high or any(root(foe) == high for foe in foes.get(low, ())):
            continue
        parent[high] = low
        foes[low] = foes.get(low, set()) | foes.pop(high, set())
    groups = pa.array([root(name) for name in spans.column("twin_group").to_pylist()], pa.string())
    return _grouped(spans, groups)


def exact_groups(spans: pa.Table) -> pa.Table:
    """Spans -> the same with the groups of exact twins only: what they were before near twins were merged."""
    keys = [twin_key(text) for text in spans.column("text").to_pylist()]
    first: dict[str, str] = {}
    for key, span_id in zip(keys, spans.column("span_id").to_pylist(), strict=True):
        first[key] = min(span_id, first.get(key, span_id))
    return _grouped(spans, pa.array([first[key] for key in keys], pa.string()))


def _grouped(spans: pa.Table, groups: pa.Array) -> pa.Table:
    at = spans.column_names.index("twin_group")
    return conform(spans.set_column(at, spans.schema.field(at), groups), "spans")


def decided_pairs(spans: pa.Table, decisions: Iterable[TwinDecision]) -> tuple[list[dict[str, Any]],
                                                                               list[tuple[str, str]], int]:
    """Spans and decisions in force -> pairs to merge, groups to keep apart, decisions about texts that are not here."""
    group = dict(zip(spans.column("text_hash").to_pylist(), spans.column("twin_group").to_pylist(), strict=True))
    merge: list[dict[str, Any]] = []
    apart: list[tuple[str, str]] = []
    absent = 0
    for decision in decisions:
        sides = [group.get(text) for text in decision.texts]
        if sides[0] is None or sides[1] is None:
            absent += 1
        elif decision.action == "merge":
            merge.append({"left": sides[0], "right": sides[1]})
        else:
            apart.append((sides[0], sides[1]))
    return merge, apart, absent


def aligned(text: str, other: str) -> list[tuple[int, int, int]]:
    """Two texts -> stretches that are the same word for word: (start in text, start in other, length)."""
    ours, theirs = _words(text), _words(other)
    found: list[tuple[int, int, int]] = []
    blocks = SequenceMatcher(None, [word for _, word in ours], [word for _, word in theirs],
                             autojunk=False).get_matching_blocks()
    for a, b, size in blocks:
        pieces = [(ours[a + i][0], theirs[b + i][0], len(ours[a + i][1])) for i in range(size)]
        for piece, following in pairwise([*pieces, None]):
            # White space after a word belongs to it where both texts have the same of it.
            assert piece is not None, "only the last of the pair can be the end mark"
            gap = following[0] - piece[0] - piece[2] if following else 0
            same = following is not None and gap == following[1] - piece[1] - piece[2]
            found.append((piece[0], piece[1], piece[2] + (gap if same else 0)))
    return found


def _words(text: str) -> list[tuple[int, str]]:
    found, at = [], 0
    for word in text.split():
        at = text.index(word, at)
        found.append((at, word))
        at += len(word)
    return found
