"""A labelled set and what else is known -> the table findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from goldset.audit.circularity import Circularity
from goldset.audit.completeness import Completeness
from goldset.audit.context import Check, Context
from goldset.audit.integrity import Integrity
from goldset.audit.k_mismatch import KMismatch
from goldset.audit.leakage import Leakage
from goldset.audit.verdicts import learn
from goldset.formats.sets import LabelledSet
from goldset.schemas import from_rows

CHECKS: tuple[Check, ...] = (Integrity(), Circularity(), Leakage(), KMismatch(), Completeness())


def audit_set(labelled: LabelledSet, runs: Mapping[str, pa.Table], *, families: Mapping[str, str] | None = None,
              log_questions: pa.Table | None = None, eval_k: int | None = None, retrieve_k: int | None = None,
              serving_k: int | None = None, served_system: str | None = None,
              retrieved_system: str | None = None,
              audit_only: frozenset[str] = frozenset(), checks: Sequence[Check] = CHECKS,
              quiet: bool = True) -> pa.Table:
    """Labelled set, runs by system -> table findings: the pre-check, then the four properties.

    Args:
        labelled: the set under audit, from anywhere.
        runs: system -> table run of that system; without any, a BM25 over the set's corpus is the second system.
        families: system -> family, where the caller knows better than the run.
        log_questions: real questions: column text, and query where another string is sent.
        eval_k: k of the quoted figure; default: the manifest's.
        retrieve_k: passages retrieved before reranking; default: the manifest's.
        serving_k: passages that reach the reader; default: the manifest's.
        served_system: system whose run is the list that reaches the reader; default: the manifest's.
        retrieved_system: system whose run is the list before reranking, of which the served one is a part.
        audit_only: systems that never fed the pool.
        checks: what to run, in order; a further check is one class with a name, its words and run(context).
        quiet: no progress on stderr.

    Raises:
        UsageError: the served system has no run.
        DataError: a table breaks its schema.
    """
    context = Context(labelled=labelled, given=runs, families=families or {}, log_questions=log_questions,
                      eval_k=eval_k, retrieve_k=retrieve_k, serving_k=serving_k, served_system=served_system,
                      retrieved_system=retrieved_system, audit_only=audit_only, quiet=quiet)
    return audit_context(context, checks)


def audit_context(context: Context, checks: Sequence[Check] = CHECKS) -> pa.Table:
    """Context -> table findings of the checks; without gold only the pre-check runs."""
    if not len(context.labelled.gold):
        checks = [check for check in checks if check.name == "integrity"]
    for check in checks:
        learn(getattr(check, "words", ()))
    return from_rows("findings", [row for check in checks for row in check.run(context)])
