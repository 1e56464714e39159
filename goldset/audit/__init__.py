"""Any labelled set -> findings on the four properties, after an integrity pre-check.

``audit_set`` runs the checks; ``verdicts`` holds the one table of words, verdicts and thresholds.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from goldset.audit.context import Check, Context
from goldset.audit.distributions import Bars, figures
from goldset.audit.examples import Worst, worst_questions
from goldset.audit.probe import PER_QUESTION, Drawn, Probe, draw, reachable_spans, sift, take
from goldset.audit.run import CHECKS, audit_context, audit_set
from goldset.audit.staleness import Aged
from goldset.audit.verdicts import LIMITS, TABLE, Word, by_check, decides, finding, limits, overall, word, worst

__all__ = ["CHECKS", "LIMITS", "PER_QUESTION", "TABLE", "Aged", "Bars", "Check", "Context", "Drawn", "Probe", "Word",
           "Worst", "audit_context", "audit_set", "by_check", "decides", "draw", "figures", "finding", "limits",
           "overall", "reachable_spans", "sift", "take", "word", "worst", "worst_questions"]


class _Callable(ModuleType):
    """``goldset.audit(…)`` is the notebook's audit (goldset/api.py), also once this package bears the name."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return import_module("goldset.api").audit(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
