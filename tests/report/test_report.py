"""Reports: the first screen, the terminal text, the JSON documents, the page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goldset.audit import LIMITS, Bars, Worst, finding
from goldset.errors import DataError
from goldset.report import (
    headline,
    newly_convicted,
    read_audit_json,
    render_html,
    render_json,
    render_measurements,
    render_recall_json,
    render_terminal,
)
from goldset.report.numbers import number
from goldset.report.plots import Mark, fitting, interval_plot
from goldset.report.words import explained
from goldset.schemas import from_rows, schema_of

ROWS = [
    finding("integrity", "bm25", "unknown_ids", n=100, measured=3, message="bm25: 3 of 100 ids are not there."),
    finding("circularity", "bm25", "truncated", n=43, measured=0.0, interval=(0.0, 0.067), threshold=0.05,
            message="0 of 549 gold spans outside bm25 top 50 & <more>; the gold stops at rank 10 of bm25."),
    finding("circularity", "bm25", "unjudged", n=43, measured=0.25, interval=(0.2, 0.3), message="1 of 4 unjudged."),
    finding("circularity", "dense", "healthy", n=43, measured=0.4, interval=(0.3, 0.5), threshold=0.05, message="fine"),
    finding("leakage", "all", "no_text", n=0, message="The set comes without question texts."),
    finding("k_mismatch", "bm25", "mismatch", n=43, measured=0.15, interval=(0.1, 0.2), message="quoted at 10"),
    finding("k_mismatch", "bm25", "recall@5", n=43, measured=0.35, interval=(0.28, 0.42), message="recall@5 is 0.35"),
    finding("k_mismatch", "bm25", "recall@10", n=43, measured=0.5, interval=(0.42, 0.58), message="recall@10 is 0.5"),
    finding("completeness", "all", "one_gold", n=43, measured=1.0, interval=(0.92, 1.0), threshold=0.9, message="one"),
]


@pytest.fixture
def findings() -> pa.Table:
    return from_rows("findings", ROWS)


@pytest.fixture
def measurements() -> pa.Table:
    base: dict[str, Any] = {"system": "bm25", "k": 5, "slice": "all", "reason": None, "n": 40,
                            "excluded": [{"reason": "no_gold", "count": 3}], "low": 0.28, "high": 0.42,
                            "method": "wilson_n_eff", "weighting": "none", "gold_version": "demo/v1"}
    return from_rows("measurements", [
        {**base, "measure": "recall", "value": 0.35},
        {**base, "measure": "recall_micro", "value": None, "reason": "not_sampled", "low": None, "high": None},
        {**base, "measure": "answerable", "k": None, "value": 0.93}])


class Page(HTMLParser):
    """Tags, ids, addresses and visible text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in ("href", "src", "xlink:href", "action"):
                self.addresses.append(str(value))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def test_headline_is_the_first_failure_of_a_property(findings: pa.Table) -> None:
    first = headline(findings)
    assert (first.verdict, first.evidence) == ("fail", ROWS[1]["message"])
    assert first.reason == "Circularity (bm25): gold ends at a rank of this system: its results chose the gold, "\
        "so its recall comes out too high"
    assert first.answer.startswith("No: ")
    assert first.step == ROWS[1]["remedy"]


def test_a_warning_of_the_pre_check_stands_behind_those_of_the_properties() -> None:
    table = from_rows("findings", [ROWS[0], ROWS[8]])
    assert headline(table).evidence == "one"
    assert headline(from_rows("findings", ROWS[:1])).evidence.startswith("bm25: 3 of 100 ids")


def test_headline_without_a_finding_is_not_a_yes() -> None:
    assert headline(from_rows("findings", [])).verdict == "insufficient"


@pytest.mark.parametrize(("values", "text"), [
    ((None, None, None), "not measured"), ((0.175, 0.12, 0.246), "0.175 (0.120 to 0.246)"),
    ((0.0, None, None), "0.000"), ((1515.0, None, None), "1515"), ((1.0, None, None), "1.000")])
def test_number(values: tuple[float | None, float | None, float | None], text: str) -> None:
    assert number(*values) == text


def test_terminal_is_plain_and_says_everything_once(findings: pa.Table, measurements: pa.Table) -> None:
    text = render_terminal(findings, measurements, title="demo/v1", width=100)
    lines = text.split("\n")
    assert lines[0] == "demo/v1"
    assert lines[3] == "Can this number be believed? No: the number cannot be believed as it stands."
    assert "\x1b" not in text
    assert max(map(len, lines)) <= 100
    flat = re.sub(r"\s+", " ", text)
    for row in ROWS:
        assert row["message"].removeprefix("bm25: ") in flat
    assert flat.count("next: quote recall at the served k") == 1
    assert "Circularity: fail" in lines
    assert "recall@5" in text
    assert re.search(r"recall_micro@5 +none +none +40 +not sampled, 3 no gold", text)


def test_a_terminal_of_eighty_columns_is_enough(findings: pa.Table, measurements: pa.Table) -> None:
    name = "a-system-with-a-very-long-name-indeed/2026-11"
    left = [{"reason": "no_gold", "count": 3}, {"reason": "not_in_set", "count": 261},
            {"reason": "counted_more_gold_than_k", "count": 11}]
    rows = [{**row, "system": name, "excluded": left} for row in measurements.to_pylist()]
    text = render_terminal(findings, from_rows("measurements", rows))
    assert max(map(len, text.split("\n"))) <= 80
    flat = re.sub(r"\s+", " ", text)
    assert f"{name} recall@5 0.350 0.280 to 0.420 40 3 no gold, 261 not in set, 11 more gold than k" in flat
    # What a word of the four properties means stands below it; an integrity finding says it itself.
    assert flat.count("means: ") == 3
    assert "means: recall is quoted at a larger k than production serves" in flat


def test_words_are_explained_where_they_occur_and_only_there(findings: pa.Table) -> None:
    assert [name for name, _ in explained("AUC 0.93 of the gold, Bonferroni p 1.9e-05")] == [
        "gold", "p", "Bonferroni", "AUC"]
    assert explained("The marigolds run out of Auckland.") == [("run", dict(explained("run"))["run"])]
    for shown in (render_terminal(findings), render_html("demo", findings)):
        assert dict(explained("gold"))["gold"] in " ".join(shown.split())
        assert dict(explained("kappa"))["kappa"] not in " ".join(shown.split())


@pytest.mark.parametrize(("label", "lines"), [
    ("bm25", "bm25"), ("a" * 50, f"{'a' * 22}\n{'a' * 22}\n{'a' * 6}"),
    ("dense-minilm-l6-v2_multilingual.x at 20", "dense-minilm-l6-v2_\nmultilingual.x at 20")])
def test_long_labels_are_broken_and_never_cut(label: str, lines: str) -> None:
    assert fitting(label) == lines


def test_the_copied_words_are_marked_in_a_long_gold(findings: pa.Table) -> None:
    passage = "before " * 200 + "the quick brown fox jumps over it" + " after" * 200
    start = passage.index("quick")
    row = Worst("q1", "quick brown fox jumps over what", "d1", passage, "5 words in a row", (start, start + 26))
    html = render_html("demo", findings, worst={"leakage": [row]})
    assert "before the <mark>quick brown fox jumps over</mark> it after" in html
    assert "… before" in html
    assert html.count("before ") < 40


def test_options_are_not_broken_over_lines(findings: pa.Table) -> None:
    html = render_html("demo", findings)
    assert "<code>--questions FILE</code>" in html
    assert "<code>--corpus FILE</code>" in html

def test_measurements_keep_unknown_apart_from_zero(measurements: pa.Table) -> None:
    line = next(line for line in render_measurements(measurements).split("\n") if "recall_micro" in line)
    assert "none (not_sampled)" in line
    assert "0.000" not in line


def test_json_documents(findings: pa.Table, measurements: pa.Table) -> None:
    audit = json.loads(json.dumps(render_json(findings), allow_nan=False))
    assert (audit["schema"], audit["verdict"]) == ("goldset.audit/1", "fail")
    assert [list(row) for row in audit["findings"]] == [schema_of("findings").names] * len(ROWS)
    recall = json.loads(json.dumps(render_recall_json(measurements), allow_nan=False))
    assert recall["schema"] == "goldset.recall/1"
    assert recall["measurements"][0]["value"] == 0.35
    assert recall["measurements"][0]["excluded"] == {"no_gold": 3}
    assert recall["measurements"][1]["value"] is None


SUMMARY = {"questions": 90, "pool": {"depth": 50, "words_per_question": 12345.5}, "judge": {"kind": "similarity"},
           "people": {"hours": None, "assessors": ["a1", "a2"]}}


def test_page_is_self_contained_and_answers_first(findings: pa.Table, measurements: pa.Table) -> None:
    html = render_html("demo/v1 <x>", findings, measurements, SUMMARY)
    page = Page(html)
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert all(address.startswith("#") for address in page.addresses)
    # The only addresses with a host are XML namespaces.
    assert set(re.findall(r"https?://[^\s\"'<)]+", html)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert len(page.ids) == len(set(page.ids))
    assert {address[1:] for address in page.addresses} <= set(page.ids)
    order = [page.text.index(part) for part in (
        "Can this number be believed?", "No: the number cannot", "recall@5 of bm25: 0.350 (0.280 to 0.420)",
        ROWS[1]["message"], "Next step", "Did a system choose the gold")]
    assert order == sorted(order)
    assert "demo/v1 &lt;x&gt;" in html
    assert "&amp; &lt;more&gt;" in html
    assert "not known" in page.text
    assert "12,345.5" in page.text
    assert f"{LIMITS.leak_strong:g}" in page.text
    assert len(html) < 200_000


def test_plots_have_a_text_alternative(findings: pa.Table) -> None:
    page = Page(render_html("demo/v1", findings))
    assert page.tags.count("svg") == page.tags.count("figcaption") == 2  # circularity and k mismatch
    assert ("Share of gold outside the top 50: bm25 0.000 (0.000 to 0.067); dense 0.400 (0.300 to 0.500). "
            "Threshold 0.05.") in page.text
    assert "Recall: recall at 5 0.350 (0.280 to 0.420)" in page.text


def test_same_findings_same_page(findings: pa.Table, measurements: pa.Table) -> None:
    assert render_html("a", findings, measurements, SUMMARY) == render_html("a", findings, measurements, SUMMARY)


def test_plot_takes_its_colours_from_the_page() -> None:
    svg = interval_plot([Mark("a", 0.2, 0.1, 0.3, "fail"), Mark("b", 0.5, None, None, "pass")], name="p", axis="share",
                        threshold=0.05)
    assert svg.startswith("<svg aria-hidden")
    assert "var(--fail)" in svg
    assert "currentColor" in svg
    assert re.findall(r"#[0-9a-f]{6}", svg) == []
    assert ">share<" in svg


def verdicts(**given: str) -> pa.Table:
    words = {"fail": "truncated", "warn": "low", "pass": "healthy", "insufficient": "too_few"}
    return from_rows("findings", [finding("circularity", name, words[verdict], n=60, message="m")
                                  for name, verdict in given.items()])


@pytest.mark.parametrize(("before", "now", "fail", "warn"), [
    ("fail", "fail", False, False),
    ("pass", "fail", True, True),
    ("insufficient", "fail", True, True),  # not measured is not convicted
    ("warn", "fail", True, True),
    ("fail", "warn", False, False),  # it got better
    ("pass", "warn", False, True),
    ("pass", "insufficient", False, False),
])
def test_only_what_is_newly_convicted_counts(before: str, now: str, fail: bool, warn: bool) -> None:
    earlier = verdicts(a=before, b="fail").to_pylist()
    found = verdicts(a=now, b="fail")
    assert newly_convicted(found, earlier, from_verdict="fail") == ([f"circularity (a): {now}"] if fail else [])
    assert newly_convicted(found, earlier, from_verdict="warn") == ([f"circularity (a): {now}"] if warn else [])
    # A system that the earlier audit did not know is new.
    assert newly_convicted(verdicts(c="fail"), earlier, from_verdict="fail") == ["circularity (c): fail"]


def test_a_baseline_is_an_audits_json(findings: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(render_json(findings)))
    assert len(read_audit_json(path)) == len(findings)
    for content, says in (("{", "not an audit's JSON"), ('{"schema": "goldset.recall/1"}', "schema 'goldset.recall/1'"),
                          ("[]", "schema 'None'")):
        path.write_text(content)
        with pytest.raises(DataError, match=says):
            read_audit_json(path)
    with pytest.raises(DataError, match="no such file; keep one with"):
        read_audit_json(tmp_path / "none.json")


SCHEMAS = Path(__file__).resolve().parents[2] / "goldset" / "report" / "schema"


@pytest.mark.parametrize(("name", "table", "key"), [
    ("audit-1", "findings", "findings"), ("recall-1", "measurements", "measurements")])
def test_published_schemas_have_the_columns_and_accept_what_is_printed(
        name: str, table: str, key: str, findings: pa.Table, measurements: pa.Table) -> None:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    rows = schema["properties"][key]["items"]
    assert list(rows["properties"]) == rows["required"] == schema_of(table).names
    jsonschema = pytest.importorskip("jsonschema")
    document = render_json(findings) if name == "audit-1" else render_recall_json(measurements)
    assert document["schema"] == schema["properties"]["schema"]["const"]
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    assert list(validator.iter_errors(json.loads(json.dumps(document)))) == []
    changes: tuple[dict[str, Any], ...] = ({"n": -1}, {"n": 1.5}, {"low": "0.1"})
    for change in changes:
        damaged = {**document, key: [{**document[key][0], **change}]}
        assert len(list(validator.iter_errors(damaged))) == 1, change


def test_worst_questions_bars_and_steps_are_on_the_page(findings: pa.Table) -> None:
    worst = {"circularity": [Worst("q1", "when <b>does</b> it open", "d9", "x " * 400, "at rank 2 of bm25")]}
    bars = {"circularity": [Bars("Gold by its rank in bm25", "gold passages", ("1", "2–5", "not in list"), (3, 40, 0))]}
    steps = [{"what": "the old headline", "k": 20, "value": 1.0, "low": 0.96, "high": 1.0, "n": 100},
             {"what": "k: what is served", "k": 5, "value": 0.69, "low": None, "high": None, "n": 100}]
    html = render_html("demo", findings, worst=worst, bars=bars,
                       supersedes={"set": "old-set", "verdicts": {"circularity": "fail"}, "steps": steps})
    page = Page(html)
    assert "At rank 2 of bm25." in page.text
    assert "when <b>does</b> it open" in page.text  # escaped, so it is text and no tag
    assert "b" not in page.tags
    assert "x …" in page.text
    assert "x " * 300 not in page.text
    assert "Gold by its rank in bm25 (gold passages): 1: 3; 2–5: 40; not in list: 0." in page.text
    assert "-0.310" in page.text
    assert "This version replaces old-set." in page.text
    assert len(page.ids) == len(set(page.ids))
    assert not any(tag in page.tags for tag in ("script", "link", "img", "iframe"))
