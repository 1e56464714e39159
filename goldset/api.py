"""Recall and audit for notebooks: gold and runs as files or as plain dicts; results print themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goldset.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from goldset.formats.sets import LabelledSet
    from goldset.pipeline.checks import Outcome
    from goldset.pipeline.scores import Measured


@dataclass(frozen=True, repr=False)
class Recall:
    """Measurements of one or more systems. ``value``, ``low``, ``high`` and ``n`` are those of the first recall."""

    measured: Measured

    @cached_property
    def _first(self) -> dict[str, Any]:
        rows: list[dict[str, Any]] = self.measured.measurements.to_pylist()
        return next(row for row in rows if row["measure"] == "recall" and row["slice"] == "all")

    @property
    def value(self) -> float | None:
        """Mean recall over the questions with gold; None where it is not known (``to_frame()`` has the reason)."""
        value: float | None = self._first["value"]
        return value

    @property
    def low(self) -> float | None:
        """Lower end of its 95 % interval; None where there is none."""
        low: float | None = self._first["low"]
        return low

    @property
    def high(self) -> float | None:
        """Upper end of its 95 % interval."""
        high: float | None = self._first["high"]
        return high

    @property
    def n(self) -> int:
        """Questions that it rests on."""
        return int(self._first["n"])

    def to_frame(self) -> pd.DataFrame:
        """Every measure: columns of table measurements, ``excluded`` as reason -> count."""
        from goldset.report import render_recall_json

        return _frame(render_recall_json(self.measured.measurements)["measurements"])

    def __repr__(self) -> str:
        return self.measured.text()

    def _repr_html_(self) -> str:
        from goldset.pipeline.scores import main_measures
        from goldset.report.numbers import measure_name, number

        rows = [[row["system"], measure_name(row), row["slice"], number(row["value"], row["low"], row["high"])
                 if row["value"] is not None else f"none: {row['reason']}", str(row["n"]),
                 ", ".join(f"{item['count']} {item['reason']}" for item in row["excluded"])]
                for row in main_measures(self.measured.measurements).to_pylist()]
        head = ["system", "measure", "slice", "value (95 % interval)", "n", "left out"]
        return _html(self.measured.heading, head, rows, [*self.measured.relative_to, *self.measured.notes()])


@dataclass(frozen=True, repr=False)
class Audit:
    """Findings on a labelled set; ``verdict`` is pass, warn, fail or insufficient."""

    outcome: Outcome

    @property
    def verdict(self) -> str:
        """The gravest verdict of the checks."""
        return self.outcome.verdict

    def to_frame(self) -> pd.DataFrame:
        """Columns of table findings, one row a finding."""
        return _frame(self.outcome.findings.to_pylist())

    def __repr__(self) -> str:
        return self.outcome.text()

    def _repr_html_(self) -> str:
        from goldset.report import headline

        first = headline(self.outcome.findings)
        rows = [[row["check"], row["subject"], row["verdict"], row["message"], row["remedy"] or ""]
                for row in self.outcome.findings.to_pylist()]
        return _html(f"{self.outcome.labelled.label}: {first.answer}", ["check", "subject", "verdict", "why", "next"],
                     rows, [])


def recall(gold: str | Path | LabelledSet | Mapping[str, Mapping[str, int] | Sequence[str]],
           run: str | Path | pa.Table | Mapping[str, Any], *, k: int | Sequence[int] | None = None,
           budget: int | None = None, by: Sequence[str] = (), relevant_from: int | None = None) -> Recall:
    """Recall of one or more systems, with its interval.

    Args:
        gold: a published version, BEIR folder or qrels file; or question -> passage -> grade, or question -> passages.
        run: a run file or table; or question -> chunk -> score, or question -> chunks in order; or, for several
            systems, name -> any of these.
        k: the k that production serves, or several; default: the one that a published version names.
        budget: cut each list at this many words instead.
        by: columns of the questions to slice by.
        relevant_from: smallest grade that counts as relevant; needed where grades go above 1.

    Raises:
        UsageError: no cutoff. DataError: input that cannot be read, or ids that do not join.

    >>> import goldset
    >>> found = goldset.recall({"q1": ["a", "b"], "q2": ["c"], "q3": ["d"]},
    ...                        {"q1": ["a", "x"], "q2": ["c"], "q3": ["y"]}, k=2)
    >>> found.value, found.n
    (0.5, 3)
    >>> print(f"{found.low:.3f} to {found.high:.3f}")
    0.036 to 0.964
    >>> found.to_frame().query("measure == 'hit'")["value"].tolist()
    [0.6666666666666666]
    """
    from goldset.pipeline.scores import recall_any

    ks = [] if k is None else [k] if isinstance(k, int) else list(k)
    runs = _runs(run)
    return Recall(recall_any(_gold(gold, relevant_from), {name: _run(one, name) for name, one in runs.items()}, ks=ks,
                             budget=budget, by=by, empty={name: _empty(one) for name, one in runs.items()}))


def audit(gold: str | Path | LabelledSet | Mapping[str, Mapping[str, int] | Sequence[str]],
          run: str | Path | pa.Table | Mapping[str, Any] | None = None, *, logs: str | Path | None = None,
          logs_text: str = "text", eval_k: int | None = None, retrieve_k: int | None = None,
          serving_k: int | None = None, served: str | None = None, relevant_from: int | None = None) -> Audit:
    """Can this labelled set be believed? Integrity, circularity, leakage, k mismatch, completeness.

    Args:
        gold: as in ``recall``.
        run: as in ``recall``; None audits what needs no run.
        logs: question log (JSONL), the reference for lexical leakage.
        logs_text: its field with the question.
        eval_k: k of the headline figure.
        retrieve_k: passages retrieved before reranking.
        serving_k: passages that reach the reader.
        served: which of several runs is in production; default the first.
        relevant_from: as in ``recall``.

    Raises:
        UsageError, DataError: as in ``recall``.

    >>> import goldset
    >>> questions = [f"q{i}" for i in range(12)]
    >>> found = goldset.audit({q: [f"{q}-answer"] for q in questions},
    ...                       {q: [f"{q}-other", f"{q}-answer"] for q in questions}, eval_k=10, serving_k=1)
    >>> found.verdict
    'fail'
    >>> found.to_frame().query("check == 'k_mismatch'")["verdict"].tolist()[0]
    'fail'
    """
    from goldset.pipeline.checks import Given, audit_any

    runs = {} if run is None else {name: _run(one, name) for name, one in _runs(run).items()}
    return Audit(audit_any(_gold(gold, relevant_from), runs,
                           given=Given(logs=None if logs is None else Path(logs), logs_text=logs_text), eval_k=eval_k,
                           retrieve_k=retrieve_k, serving_k=serving_k, served=served, quiet=True))


def _gold(gold: Any, relevant_from: int | None) -> LabelledSet:
    from goldset.formats.qrels import qrels_of
    from goldset.formats.sets import LabelledSet, load_set

    if isinstance(gold, LabelledSet):
        if relevant_from is not None:
            raise UsageError("relevant_from: this set has been read already; give it when reading, as in "
                             "load_set(path, relevant_from=2)")
        return gold
    if not isinstance(gold, Mapping):
        return load_set(Path(gold), relevant_from=relevant_from)
    judged = {question: passages if isinstance(passages, Mapping) else dict.fromkeys(passages, 1)
              for question, passages in gold.items()}
    read = qrels_of(judged, name="gold", relevant_from=relevant_from)
    return LabelledSet(name="gold", version=None, kind="trec", judgments=read.judgments, gold=read.gold,
                       notes=read.notes, relevant_from=read.relevant_from, mapping=(read.mapping,))


def _runs(run: Any) -> dict[str, Any]:
    """One run, or name -> run; a mapping whose values are files or tables names systems."""
    import pyarrow as pa

    if isinstance(run, Mapping):
        values = list(run.values())
        several = bool(values) and all(isinstance(value, str | Path | pa.Table) or (
            isinstance(value, Mapping) and any(isinstance(inner, Mapping | list) for inner in value.values()))
            for value in values)
        if several:
            return dict(run)
    return {"run": run}


def _run(run: Any, name: str) -> pa.Table:
    import pyarrow as pa

    from goldset.formats.runs import read_run, run_of
    from goldset.schemas import conform

    if isinstance(run, pa.Table):
        return conform(run, "run")
    return run_of(run, system=name) if isinstance(run, Mapping) else read_run(Path(run), system=name)


def _empty(run: Any) -> list[str]:
    """Questions that a run answers with an empty list."""
    import pyarrow as pa

    from goldset.formats.runs import empty_lists

    if isinstance(run, pa.Table):
        return []
    return [question for question, chunks in run.items() if not chunks] if isinstance(run, Mapping) else empty_lists(
        Path(run))


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows)


def _html(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """A table for a notebook; everything that comes from data is escaped."""
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (f"<table><caption>{escape(title)}</caption><thead><tr>{names}</tr></thead><tbody>{cells}</tbody></table>"
            f"{below}")
