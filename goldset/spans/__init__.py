"""Canonical spans, evidence, and served(): which gold a list of chunks delivers.

* ``canonical_spans``: documents and chunks -> disjoint stretches of text that people judge, with their links.
* ``sentences``: a text -> the ranges that evidence is made of.
* ``served``: gold and one system's run -> the smallest cut of the list that delivers each gold.
* ``context``: the sentence before and after a span, for judge and reviewer.
"""

from goldset.spans.apart import twins_apart
from goldset.spans.canonical import SpanTables, canonical_spans, shared_length
from goldset.spans.context import context, main_span
from goldset.spans.neartwins import decided_pairs, exact_groups, merge_twins, near_twins
from goldset.spans.restored import restored_texts
from goldset.spans.sentences import is_heading, is_table_row, sentences
from goldset.spans.served import served
from goldset.spans.show import explain_document
from goldset.spans.twinlog import TWINS, TwinDecision, append_decision, in_force, read_decisions

__all__ = [
    "TWINS",
    "SpanTables",
    "TwinDecision",
    "append_decision",
    "canonical_spans",
    "context",
    "decided_pairs",
    "exact_groups",
    "explain_document",
    "in_force",
    "is_heading",
    "is_table_row",
    "main_span",
    "merge_twins",
    "near_twins",
    "read_decisions",
    "restored_texts",
    "sentences",
    "served",
    "shared_length",
    "twins_apart",
]
