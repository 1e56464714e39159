"""Any labelled set -> findings on the four properties, after an integrity pre-check.

``audit_set`` runs the checks; ``verdicts`` holds the one table of words, verdicts and thresholds.
"""

from goldset.audit.context import Check, Context
from goldset.audit.figures import Bars, figures
from goldset.audit.run import CHECKS, audit_context, audit_set
from goldset.audit.verdicts import LIMITS, TABLE, by_check, decides, finding, limits, overall, word, worst
from goldset.audit.worst import Worst, worst_questions

__all__ = ["CHECKS", "LIMITS", "TABLE", "Bars", "Check", "Context", "Worst", "audit_context", "audit_set", "by_check",
           "decides", "figures", "finding", "limits", "overall", "word", "worst", "worst_questions"]
