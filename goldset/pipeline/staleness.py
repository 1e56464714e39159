"""A labelled set against the documents as they are now: what of its gold was kept, moved, changed, lost?"""

from __future__ import annotations

from pathlib import Path

from goldset.audit import Aged
from goldset.errors import DataError
from goldset.formats.sets import LabelledSet
from goldset.text import quote_key

Pair = tuple[str, str]


def aged(labelled: LabelledSet, path: Path) -> Aged:
    """A set with texts and a file of today's documents -> Aged.

    A published version is re-anchored by its evidence; any other set is compared passage by passage: the same id with
    the same text (case, white space, quotes and dashes aside) is kept, the same text under another id has moved, the
    same id with another text has changed.

    Raises:
        DataError: the set has no texts to compare.
    """
    if labelled.kind == "published":
        return _version(labelled, path)
    return _foreign(labelled, path)


def _version(labelled: LabelledSet, path: Path) -> Aged:
    from goldset.pipeline.reanchor import reanchor_version

    found = reanchor_version(labelled, path)
    lost = set(found.stale)
    states: dict[Pair, set[str]] = {}
    for anchor in found.anchors:
        pair = (anchor.question_id, anchor.span_id)
        states.setdefault(pair, set()).add("changed" if anchor.similarity not in (None, 1.0) else anchor.status)
    missing = [pair for pair in states if pair in lost]
    changed = [pair for pair, told in states.items() if pair not in lost and "changed" in told]
    moved = [pair for pair, told in states.items() if pair not in lost and told & {"moved"} and "changed" not in told]
    return Aged(str(path), tuple(moved), tuple(changed), tuple(missing))


def _foreign(labelled: LabelledSet, path: Path) -> Aged:
    from goldset.formats.beir import read_corpus

    if labelled.corpus is None:
        raise DataError(f"{labelled.label} has no texts to compare with --documents {path}: give those that the labels "
                        "were made on with --corpus FILE")
    new = read_corpus(path).chunks
    now = {name: quote_key(text) for name, text in zip(new.column("chunk_id").to_pylist(),
                                                      new.column("text").to_pylist(), strict=True)}
    texts = set(now.values())
    spans = labelled.corpus.spans
    before = dict(zip(spans.column("span_id").to_pylist(), spans.column("text").to_pylist(), strict=True))
    found: dict[str, list[Pair]] = {"moved": [], "changed": [], "missing": []}
    for question, span in zip(labelled.gold.column("question_id").to_pylist(),
                              labelled.gold.column("span_id").to_pylist(), strict=True):
        text = quote_key(before[span]) if span in before else None
        if text is not None and now.get(span) == text:
            continue
        state = "moved" if text and text in texts else "changed" if span in now else "missing"
        found[state].append((question, span))
    return Aged(str(path), *(tuple(found[state]) for state in ("moved", "changed", "missing")))
