"""Candidates -> verdicts, and the judge as an instrument that is measured itself."""

from goldset.judges.base import Desk, Judge, Pair
from goldset.judges.card import judge_card
from goldset.judges.independence import independence
from goldset.judges.rubric import Rubric, load_rubric
from goldset.judges.run import build_judge, judge_candidates
from goldset.judges.store import VerdictStore
from goldset.judges.verdict import Verdict
from goldset.judges.version import instrument_version, model_version

__all__ = [
    "Desk", "Judge", "Pair", "Rubric", "Verdict", "VerdictStore", "build_judge", "independence",
    "instrument_version", "judge_candidates", "judge_card", "load_rubric", "model_version",
]
