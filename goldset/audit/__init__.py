"""Any labelled set -> findings on the four properties, after an integrity pre-check.

``audit_set`` runs the checks; ``verdicts`` holds the one table of words, verdicts and thresholds.
"""

from goldset.audit.context import Check, Context
from goldset.audit.run import CHECKS, audit_set
from goldset.audit.verdicts import LIMITS, TABLE, by_check, decides, finding, limits, overall, word, worst

__all__ = ["CHECKS", "LIMITS", "TABLE", "Check", "Context", "audit_set", "by_check", "decides", "finding",
           "limits", "overall", "word", "worst"]
