"""The two functions for notebooks."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from pathlib import Path

import pytest

import goldset
from goldset import api
from goldset.errors import DataError, UsageError
from goldset.formats.runs import run_of
from goldset.formats.sets import load_set

GOLD = {"q1": {"a": 1, "b": 1, "c": 0}, "q2": {"d": 1}}
RUN = {"q1": {"a": 3.0, "x": 2.0}, "q2": {"y": 1.0}}


def test_the_examples_are_true() -> None:
    found = doctest.testmod(api)
    assert found.attempted >= 8
    assert found.failed == 0


def test_every_form_of_gold_and_run_gives_the_same(tmp_path: Path) -> None:
    (tmp_path / "gold.json").write_text(json.dumps(GOLD))
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    for gold in (GOLD, {"q1": ["a", "b"], "q2": ["d"]}, tmp_path / "gold.json", str(tmp_path / "gold.json"),
                 load_set(tmp_path / "gold.json")):
        for run in (RUN, {"q1": ["a", "x"], "q2": ["y"]}, tmp_path / "run.json", run_of(RUN, system="run")):
            assert goldset.recall(gold, run, k=2).value == 0.25
    both = goldset.recall(GOLD, {"a": RUN, "b": {"q1": ["a", "b"], "q2": ["d"]}}, k=[1, 2]).to_frame()
    values = both[(both["measure"] == "recall") & (both["k"] == 2)].set_index("system")["value"]
    assert values.to_dict() == {"a": 0.25, "b": 1.0}
    assert goldset.recall(GOLD, {"a": tmp_path / "run.json"}, k=2).value == 0.25


def test_results_print_themselves_and_escape_what_comes_from_data() -> None:
    found = goldset.recall({"q1": ["<b>"], "q2": ["d"]}, {"<i>": {"q1": ["<b>"], "q2": ["x"]}}, k=1)
    assert "recall@1" in repr(found)
    assert "0.500" in str(found)
    page = found._repr_html_()
    assert "&lt;i&gt;" in page
    assert "<i>" not in page
    # The page says what the terminal says: the threshold, what recall is relative to, the warnings.
    graded = goldset.recall({"q1": {"a": 2, "b": 0}, "q2": {"c": 3}}, {"q1": ["a"]}, k=1, relevant_from=2)
    page = graded._repr_html_()
    for part in ("relevant from grade 2", "Relative to the pool", "warning: run: recall cannot exceed 0.500"):
        assert part in repr(graded)
        assert part in page
    audited = goldset.audit(GOLD, RUN, eval_k=2, serving_k=1)
    assert audited.verdict in repr(audited).lower() or "Can this number be believed?" in repr(audited)
    assert "<table>" in audited._repr_html_()
    assert {"check", "verdict", "message"} <= set(audited.to_frame().columns)


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="no cutoff"):
        goldset.recall(GOLD, RUN)
    with pytest.raises(DataError, match="grades go from 0 to 2"):
        goldset.recall({"q1": {"a": 2, "b": 0}}, RUN, k=1)
    assert goldset.recall({"q1": {"a": 2, "b": 0}}, {"q1": ["a"]}, k=1, relevant_from=2).value == 1.0
    with pytest.raises(AttributeError, match="has no attribute 'recal'"):
        _ = goldset.recal


def test_the_function_is_there_before_and_after_its_package_is_imported() -> None:
    code = ("import goldset, sys\n"
            "assert not {'numpy', 'pyarrow', 'pandas', 'click'} & set(sys.modules)\n"
            "first = goldset.audit({'q': ['a']}).verdict\n"
            "import goldset.audit as package\n"
            "assert callable(package.audit_set) and goldset.audit({'q': ['a']}).verdict == first\n"
            "from goldset.audit import overall\n"
            "print(goldset.recall({'q': ['a']}, {'q': ['a']}, k=1).value)\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1.0\n"), done.stderr
