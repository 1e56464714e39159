"""Near-duplicate questions: candidates by MinHash, decided by exact Jaccard similarity of their word sets.

Near-duplicates stay separate questions; they share a cluster, which is the unit of variance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from goldset.text import question_key, tokenize

_PERMUTATIONS = 128
_MISS = 1e-6  # chance that the approximate step loses a pair that lies exactly on the threshold
_EDGES = "?!.,;:…？！。，'\"()[]{}«»“”„‘’"


def word_set(text: str) -> frozenset[str]:
    """Words of the question_key without surrounding punctuation (``c++`` and ``c#`` stay apart).

    Words in scripts without spaces give their character bigrams. Never empty: a text of symbols is its own word.
    """
    words: set[str] = set()
    key = question_key(text)
    for word in key.split():
        bare = word.strip(_EDGES)
        tokens = tokenize(bare)
        if bare and all(token.isascii() for token in tokens):
            words.add(bare)
        else:
            words.update(tokens)
    return frozenset(words) or frozenset({key})


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Shared words over all words; two empty sets are alike."""
    return len(left & right) / len(left | right) if left or right else 1.0


def clusters(questions: Mapping[str, tuple[str, str | None]], *, threshold: float) -> dict[str, str]:
    """{question_id: (text, last earlier user turn or None)} -> {question_id: cluster_id}.

    Two questions are near-duplicates if the word sets of their texts, and of their last earlier turns where there
    are any, have a Jaccard similarity of at least ``threshold`` in (0, 1]; at 1 the sets are equal. A cluster is a
    connected component; its id is its smallest question_id.
    """
    words = {name: word_set(text) for name, (text, _) in sorted(questions.items())}
    before = {name: frozenset() if turn is None else word_set(turn) for name, (_, turn) in questions.items()}
    parent = {name: name for name in words}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for left, right in _candidates(words, threshold):
        if jaccard(words[left], words[right]) >= threshold and jaccard(before[left], before[right]) >= threshold:
            low, high = sorted((root(left), root(right)))
            parent[high] = low
    return {name: root(name) for name in words}


def _candidates(words: Mapping[str, frozenset[str]], threshold: float) -> Iterator[tuple[str, str]]:
    """Pairs that may reach the threshold; equal sets always come."""
    equal: dict[frozenset[str], list[str]] = defaultdict(list)
    for name, group in words.items():
        equal[group].append(name)
    for names in equal.values():
        # All pairs, not a chain: the earlier turns decide too.
        yield from ((left, right) for i, left in enumerate(names) for right in names[i + 1 :])
    if threshold == 1.0 or len(equal) < 2:
        return
    from datasketch import MinHash, MinHashLSH

    groups = sorted(equal, key=sorted)
    sketches = MinHash.bulk([[word.encode() for word in sorted(group)] for group in groups], num_perm=_PERMUTATIONS)
    index = MinHashLSH(num_perm=_PERMUTATIONS, params=bands(threshold))
    for i, sketch in enumerate(sketches):
        index.insert(i, sketch)
    for i, sketch in enumerate(sketches):
        for j in sorted(index.query(sketch)):
            if i < j:
                yield from _across(equal[groups[i]], equal[groups[j]])


def _across(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((one, other) for one in left for other in right)


def bands(threshold: float) -> tuple[int, int]:
    """Bands and rows of the locality-sensitive hash: the most rows that lose a pair at the threshold by < 1e-6.

    A pair of similarity s is missed with chance (1 - s**rows) ** bands.
    """
    rows = 1
    while (1 - threshold ** (rows + 1)) ** (_PERMUTATIONS // (rows + 1)) <= _MISS:
        rows += 1
    return _PERMUTATIONS // rows, rows
