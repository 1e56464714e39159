"""What the words and numbers in a report mean, for those that occur in it."""

from __future__ import annotations

import re

WORDS: tuple[tuple[str, str, str], ...] = (
    ("gold", r"\bgold\b", "the passages that the set says answer a question"),
    ("span", r"\bspans?\b", "a passage, the same one for every system, however it cuts the documents"),
    ("recall@k", r"\brecall\b", "share of a question's gold among a system's first k results, mean over the questions"),
    ("hit rate", r"\bhit rate\b", "share of the questions with any gold among the first results"),
    ("run", r"\bruns?\b", "a file with the ranked results of one system"),
    ("pool", r"\bpool(ed)?\b", "the results that people were given to judge"),
    ("probe", r"\bprobed?\b", "people reading random results that nobody has labelled"),
    ("family", r"\bfamil(y|ies)\b", "systems that work alike, and so find and miss the same"),
    ("BM25", r"\bbm25\b", "word search: passages that hold the question's words rank first, rare words count more"),
    ("95 %", r"95 %", "the true value lies in this interval in 95 of 100 such samples; few questions make it wide"),
    ("p", r"\bp \d", "how often chance alone would look like this; below 0.05 is taken as a sign"),
    ("Bonferroni", r"\bBonferroni\b", "that p is multiplied by the number of ranks that were looked at"),
    ("McNemar", r"\bMcNemar\b", "a test that counts only the questions on which two systems differ"),
    ("Kendall tau", r"\bKendall tau\b", "how alike two rankings are: 1 the same, 0 unrelated, -1 reversed"),
    ("cliff", r"\bcliff\b", "a rank of a system at which the gold suddenly stops"),
    ("near twin", r"\bnear twins?\b", "a passage with almost the same text"),
    ("AUC", r"\bAUC\b", "one question of the set against one real question, both drawn at random: how often the first "
                        "shares more with a passage; 0.5 is no difference, 1 is always"),
    ("idf coverage", r"\bidf coverage\b", "share of a question's words that its gold holds, rare words count more"),
    ("kappa", r"\bkappa\b", "agreement of people beyond chance: 0 is chance, 1 is perfect"),
)
"""Name, pattern by which it is found, meaning."""


def explained(text: str) -> list[tuple[str, str]]:
    """(name, meaning) of the words that stand in a text."""
    return [(name, meaning) for name, pattern, meaning in WORDS if re.search(pattern, text, re.IGNORECASE)]
