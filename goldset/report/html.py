"""Findings, measurements and what is known of a set -> one self-contained HTML page: no script, no network."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import pyarrow as pa

from goldset.audit import Bars, Worst, by_check, decides, limits, word
from goldset.errors import MissingExtra
from goldset.metrics import COUNTED, EXCLUDED, MEASURES, REASONS, shown_ks
from goldset.report.curve import Curves
from goldset.report.numbers import left_out, measure_name, number
from goldset.report.plots import Mark, bar_plot, interval_plot
from goldset.report.summary import TITLES, headline, in_words, title_of
from goldset.report.words import explained

LONGEST = 280  # characters shown of a question or passage
ORDER = ("circularity", "leakage", "k_mismatch", "completeness", "integrity")
# What a check's interval plot shows: the reasons that share one scale, and the name of that scale.
PLOTS: dict[str, tuple[tuple[str, ...], str]] = {
    "circularity": (("healthy", "truncated", "circular", "suspected", "low", "inconclusive", "too_few", "too_shallow"),
                    "share of gold outside the top 50"),
    "leakage": (("none", "leak", "strong", "inconclusive"), "AUC against real questions (0.5: alike)"),
    "k_mismatch": (("recall",), "recall"),
    "completeness": (("complete", "incomplete", "inconclusive", "pool_only"), "share of the gold that the set holds"),
}


def render_html(title: str, findings: pa.Table, measurements: pa.Table | None = None,
                summary: Mapping[str, Any] | None = None, *, worst: Mapping[str, Sequence[Worst]] | None = None,
                bars: Mapping[str, Sequence[Bars]] | None = None,
                supersedes: Mapping[str, Any] | None = None, quoted_k: int | None = None,
                served_k: int | None = None, curves: Curves | None = None, main: pa.Table | None = None) -> str:
    """Table findings, table measurements, facts about the set -> the text of one HTML file.

    Args:
        title: name of the set, e.g. ``demo/v1``.
        findings: table findings.
        measurements: table measurements, shown as a table and a plot of recall.
        summary: facts worth showing: a mapping of group (pool, judge, people, cost …) to a mapping of label to value;
            a value that is not a mapping goes to the group "The set".
        worst: check -> the questions to look at first, beside their gold.
        bars: check -> bar charts of what lies behind its number.
        supersedes: the set that this one replaces: ``set`` (its name), ``verdicts`` (check -> verdict of its audit),
            ``steps`` from its headline to this number (what, k, value, low, high, n).
        quoted_k: k of the figure that is quoted; the number on the first screen is recall there.
        served_k: passages that reach the reader; recall there stands beside it.
        curves: recall of every system against k.
        main: the measurements that stand open, the others are folded; default: all.

    Raises:
        MissingExtra: jinja2 or matplotlib is not installed.
    """
    verdicts = by_check(findings)
    sections = [_section(check, verdicts[check], findings, (worst or {}).get(check, ()), (bars or {}).get(check, ()))
                for check in (*ORDER, *(set(verdicts) - set(ORDER)))
                if check in verdicts]
    rows = [] if measurements is None else measurements.to_pylist()
    open_rows = rows if main is None else main.to_pylist()
    said = " ".join(f"{row['message']} {word(row['check'], row['reason']).meaning}" for row in findings.to_pylist())
    return str(_template().render(
        title=title, first=headline(findings), sections=sections, verdicts=verdicts, titles=TITLES,
        key_number=_key_number(rows, findings, quoted_k, served_k), measures=_measures(open_rows, rows),
        words=explained(said),
        recall_plot=_recall_plot(rows), curve=_curve(curves), replaced=_replaced(supersedes, verdicts),
        groups=_groups(summary or {}),
        limits=[(name.replace("_", " "), f"{value:g}", doc) for name, value, doc in limits()]))


@cache
def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtra("the HTML report", "all") from error
    source = resources.files("goldset.report").joinpath("template.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)
    environment.filters["flags"] = _flags
    return environment.from_string(source)


def _flags(text: str) -> Any:
    """Text with its options as code, so that no line breaks within one."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"--[a-z][a-z-]*(?: [A-Z][A-Z=]*)?", r"<code>\g<0></code>", str(escape(text))))


def _section(check: str, verdict: str, findings: pa.Table, worst: Sequence[Worst],
             bars: Sequence[Bars]) -> dict[str, Any]:
    """One property: its words, the numbers shown beside them, its plot and the plot in words."""
    rows = [row for row in findings.to_pylist() if row["check"] == check]
    for row in rows:
        row["number"] = _number(row)
        row["word"], row["meaning"] = in_words(row["reason"]), word(check, row["reason"]).meaning
        row["who"] = "" if row["subject"] == "all" else row["subject"]
        row["message"] = row["message"].removeprefix(f"{row['subject']}: ")
        row["of"] = _measured_thing(check, row)
    title, question = TITLES.get(check, (title_of(check), ""))
    figures = [figure for figure in [_plot(check, rows), *(_bars(check, i, chart) for i, chart in enumerate(bars))]
               if figure[0]]
    return {"check": check, "title": title, "question": question, "verdict": verdict, "figures": figures,
            "worst": [{"said": row.said, "question_id": row.question_id, "span_id": row.span_id,
                       "question": _short(row.question), "passage": _parts(row)} for row in worst],
            "words": [row for row in rows if decides(check, row["reason"])],
            "shown": [row for row in rows if not decides(check, row["reason"])]}


def _number(row: Mapping[str, Any]) -> str:
    value, bar = row["measured"], row["threshold"]
    if value is None:
        return ""
    # What the pre-check counts is a whole number, also where it is 1.
    counted = row["check"] == "integrity" and row["low"] is None and value == int(value) and (bar is None or bar >= 1)
    return f"{value:.0f}" if counted else number(value, row["low"], row["high"])


def _measured_thing(check: str, row: Mapping[str, Any]) -> str:
    """What the number of a word is a number of, where its check's plot has an axis for it."""
    reasons, axis = PLOTS.get(check, ((), ""))
    if check == "completeness" and row["subject"] == "all":
        return "share of questions with one gold passage"
    if check == "k_mismatch" and row["reason"].startswith("mismatch"):
        return "recall lost between the two"
    return axis if row["reason"] in reasons and row["low"] is not None else ""


def _plot(check: str, rows: list[dict[str, Any]]) -> tuple[str, str]:
    reasons, axis = PLOTS.get(check, ((), ""))
    kept = [row for row in rows if row["reason"].split("@")[0] in reasons and row["measured"] is not None]
    if check == "completeness":  # the screen's share of questions with one gold is another scale
        kept = [row for row in kept if row["subject"] != "all"]
    if check == "leakage":  # absolute signs and the proof stand on other scales
        kept = [row for row in kept if row["low"] is not None]
    if not kept:
        return "", ""
    marks = [Mark(row["reason"].replace("@", " at ") if check == "k_mismatch" else
                  "this set" if row["subject"] in ("all", "pool") else row["subject"],
                  row["measured"], row["low"], row["high"],
                  row["verdict"] if decides(check, row["reason"]) else "insufficient") for row in kept]
    thresholds = {row["threshold"] for row in kept if row["threshold"] is not None}
    line = thresholds.pop() if len(thresholds) == 1 else None
    return interval_plot(marks, name=check, axis=axis, threshold=line), _alternative(marks, axis, line)


def _bars(check: str, number_: int, chart: Bars) -> tuple[str, str]:
    """A bar chart and the same in words."""
    shown = [f"{value:.3f}" if chart.axis == "recall" else f"{value:.0f}" for value in chart.values]
    said = "; ".join(f"{label}: {value}" for label, value in zip(chart.labels, shown, strict=True))
    return bar_plot(chart.labels, chart.values, shown, name=f"{check}-bars-{number_}",
                    axis=chart.axis), f"{chart.title} ({chart.axis}): {said}."


def _short(text: str | None) -> str | None:
    """The beginning of a text, so that a thousand questions with long passages still make a small page."""
    if text is None or len(text) <= LONGEST:
        return text
    return text[:LONGEST].rsplit(" ", 1)[0] + " …"


def _parts(row: Worst) -> tuple[str, str, str]:
    """A passage as what stands before the marked part, the marked part, and what stands after it; both ends cut."""
    text = row.passage or "no text"
    if row.mark is None:
        return _short(text) or "", "", ""
    start, end = row.mark
    room = max(0, LONGEST - (end - start)) // 2
    before, after = text[:start], text[end:]
    if len(before) > room:
        before = "… " + before[-room:].partition(" ")[2]
    if len(after) > room:
        after = after[:room].rpartition(" ")[0] + " …"
    return before, text[start : start + LONGEST if end - start > LONGEST else end], after


def _replaced(supersedes: Mapping[str, Any] | None, verdicts: Mapping[str, str]) -> dict[str, Any] | None:
    """Before and after: the verdicts of both sets by property, and the old headline taken apart."""
    if supersedes is None:
        return None
    old = supersedes["verdicts"]
    return {"set": supersedes["set"], "steps": _steps(supersedes["steps"]),
            "verdicts": [(title_of(check), old.get(check, "insufficient"), verdicts.get(check, "insufficient"))
                         for check in ORDER if check in old or check in verdicts]}


def _steps(before: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Rows of the before-and-after table: the number, its interval, and the change from the last number."""
    rows: list[dict[str, str]] = []
    last: float | None = None
    for step in before:
        value, low, high = step["value"], step["low"], step["high"]
        rows.append({"what": step["what"], "k": str(step["k"]), "n": str(step["n"]),
                     "value": "unknown" if value is None else f"{value:.3f}",
                     "interval": "none" if low is None or high is None else f"{low:.3f} to {high:.3f}",
                     "change": "" if last is None or value is None else f"{value - last:+.3f}"})
        last = value if value is not None else last
    return rows


def _alternative(marks: list[Mark], axis: str, threshold: float | None) -> str:
    """A plot in words, for those who cannot see it."""
    said = "; ".join(f"{mark.label} {number(mark.value, mark.low, mark.high)}" for mark in marks)
    return f"{axis[0].upper()}{axis[1:]}: {said}." + (f" Threshold {threshold:g}." if threshold is not None else "")


def _recall_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["measure"] == "recall" and row["slice"] == "all" and row["value"] is not None]


def _recall_plot(rows: list[dict[str, Any]]) -> tuple[str, str]:
    kept = _recall_rows(rows)
    if not kept:
        return "", ""
    marks = [Mark(f"{row['system']} at {row['k']}", row["value"], row["low"], row["high"], "insufficient")
             for row in kept]
    return interval_plot(marks, name="recall", axis="recall"), _alternative(marks, "recall", None)


def _curve(curves: Curves | None) -> dict[str, Any] | None:
    """The curves as a plot, as a sentence and as a table."""
    if curves is None:
        return None
    head, rows = curves.table(shown_ks(curves.deepest, list(curves.marks.values())))
    return {"plot": curves.inline("curve"), "words": curves.words(), "head": head, "rows": rows}


def _key_number(rows: list[dict[str, Any]], findings: pa.Table, quoted_k: int | None, served_k: int | None) -> str:
    """The number in question: the quoted recall with the served one, else the first that was measured or is shown."""
    recalls = _recall_rows(rows)
    quoted = next((row for row in recalls if row["k"] == quoted_k), None)
    served = next((row for row in recalls if quoted and row["system"] == quoted["system"] and row["k"] == served_k),
                  None)
    for row in [quoted] if quoted else recalls:
        said = f"{measure_name(row)} of {row['system']}: {number(row['value'], row['low'], row['high'])}"
        if served is None or quoted_k == served_k:
            return said
        beside = number(served["value"], served["low"], served["high"])
        return f"{said}; at the k that is served, {measure_name(served)}: {beside}"
    for row in findings.to_pylist():
        if row["reason"].startswith("recall@"):
            return f"{row['reason']} of {row['subject']}: {number(row['measured'], row['low'], row['high'])}"
    return ""


def _measured(row: dict[str, Any]) -> dict[str, Any]:
    return {"system": row["system"], "measure": measure_name(row), "slice": row["slice"], "n": row["n"],
            "value": f"{row['value']:.3f}" if row["value"] is not None else
            f"none: {REASONS.get(row['reason'], row['reason'])}",
            "interval": f"{row['low']:.3f} to {row['high']:.3f}" if row["low"] is not None and row["high"] is not None
            else "none", "excluded": left_out(row["excluded"])}


def _measures(shown: list[dict[str, Any]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The table of measurements: what stands open, what is folded, and what measures and exclusions are."""
    slices = len({row["slice"] for row in rows}) > 1
    names = dict.fromkeys(row["measure"] for row in rows)
    left = dict.fromkeys(item["reason"] for row in rows for item in row["excluded"])
    kept = {(row["system"], row["measure"], row["k"], row["slice"]) for row in shown}
    return {"slices": slices, "open": [_measured(row) for row in shown],
            "folded": [_measured(row) for row in rows
                       if (row["system"], row["measure"], row["k"], row["slice"]) not in kept],
            "docs": [(name, MEASURES[name].formula) for name in names if name in MEASURES],
            "left": [(reason.removeprefix(COUNTED).replace("_", " "), EXCLUDED[reason]) for reason in left
                     if reason in EXCLUDED]}


def _groups(summary: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, value in summary.items():
        if isinstance(value, Mapping):
            groups.setdefault(name, []).extend((str(label), _fact(fact)) for label, fact in value.items())
        else:
            groups.setdefault("The set", []).append((name, _fact(value)))
    return [(name.replace("_", " "), [(label.replace("_", " "), fact) for label, fact in facts])
            for name, facts in groups.items() if facts]


def _fact(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{label} {_fact(inner)}" for label, inner in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(_fact(inner) for inner in value)
    return str(value)
