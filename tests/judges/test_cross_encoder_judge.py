"""The cross-encoder judge, on a tiny model with random weights: its own numbers are the oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goldset.cli import main
from goldset.config import load_config
from goldset.errors import ConfigError
from goldset.judges import Desk, Pair, VerdictStore, build_judge, judge_candidates, model_version
from goldset.judges.cross_encoder import CrossScorer
from goldset.judges.meter import Meter
from goldset.schemas import from_rows
from tests.judges.tables import candidate_row, question_row, span_row
from tests.test_config import GOOD

pytest.importorskip("sentence_transformers")

WORDS = ["fuse", "door", "lamp", "key", "paper", "cable", "signal", "desk", "cup", "tray"]
WINDOW = 48


def _save(folder: Path, *, outputs: int = 1, seed: int = 4, head: bool = True) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizer

    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    BertTokenizer(str(folder / "vocab.txt"), model_max_length=WINDOW).save_pretrained(folder)
    torch.manual_seed(seed)
    shape: dict[str, Any] = {
        "vocab_size": 5 + len(WORDS), "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": WINDOW, "num_labels": outputs, "initializer_range": 1.0}
    config = BertConfig(**shape)
    (BertForSequenceClassification(config) if head else BertModel(config)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _save(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def scorer(model: Path) -> CrossScorer:
    return CrossScorer(str(model))


def _text(seed: int, words: int) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, words))


PAIRS = [(_text(i, 3 + i % 4), _text(100 + i, 2 + i)) for i in range(24)]  # 5 to 32 tokens, and some above


def test_the_score_is_the_librarys_own_and_the_same_in_any_company(model: Path, scorer: CrossScorer) -> None:
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    oracle = CrossEncoder(str(model), device="cpu", local_files_only=True).predict(PAIRS, activation_fn=Identity())
    scores, windows = scorer.score(*zip(*PAIRS, strict=True))
    assert windows.tolist() == [1] * len(PAIRS)
    assert scores == pytest.approx(np.asarray(oracle), abs=1e-4)
    assert np.ptp(scores) > 0.5
    for number in (0, 11, 23):
        alone, _ = scorer.score([PAIRS[number][0]], [PAIRS[number][1]])
        assert alone[0] == scores[number]


def test_a_long_passage_is_read_in_windows_and_a_long_question_is_cut(scorer: CrossScorer) -> None:
    question, long = "fuse door", _text(7, 100)
    (score,), (windows,) = scorer.score([question], [long])
    # [CLS] fuse door [SEP] … [SEP]: 43 of the 48 tokens are left for the passage, a quarter (10) is repeated: windows
    # begin at words 0, 33 and 66, and the last ends at 100.
    assert windows == 3
    words = long.split()
    parts = [" ".join(words[at : at + 43]) for at in (0, 33, 66)]
    assert score == pytest.approx(scorer.score([question] * 3, parts)[0].max(), abs=1e-5)
    # A word in the last window alone can change the score; one is a token here, and the question may take 24.
    assert scorer.cut([" ".join(["fuse"] * 24), " ".join(["fuse"] * 25)]) == [False, True]
    assert scorer.score([" ".join(["fuse"] * 25 + ["cup"])], ["lamp"])[0] == scorer.score([" ".join(["fuse"] * 24)],
                                                                                         ["lamp"])[0]


@pytest.fixture
def project(tmp_path: Path, scorer: CrossScorer, model: Path) -> Path:
    """A configuration whose calibration calls the better half of the scores relevant."""
    scores, _ = scorer.score(*zip(*PAIRS, strict=True))
    bar = float(np.median(scores))
    (tmp_path / "calibration.jsonl").write_text("".join(
        json.dumps({"question": question, "passage": passage, "relevant": bool(score > bar)}) + "\n"
        for (question, passage), score in zip(PAIRS, scores, strict=True)))
    (tmp_path / "rubric.md").write_text("version: 1.0\nStates part of the answer.")
    (tmp_path / "tiny").symlink_to(model)
    path = tmp_path / "config.toml"
    path.write_text(GOOD.replace('kind = "similarity"', 'kind = "cross_encoder"').replace(
        'model = "package:m"\ncalibration', 'model = "tiny"\ncalibration'))
    return path


def test_from_configuration_to_verdicts(project: Path, store: VerdictStore, scorer: CrossScorer) -> None:
    config = load_config(project)
    judge = build_judge(config=config, cache=project.parent, store=store)
    card = judge.card_info()
    assert (card["kind"], card["family"], card["declared_weak"]) == ("cross_encoder", "minilm", False)
    scores = np.sort(scorer.score(*zip(*PAIRS, strict=True))[0])
    assert card["threshold"] == pytest.approx((scores[11] + scores[12]) / 2)
    assert (card["calibration"]["tp"], card["calibration"]["tn"]) == (12, 12)
    spans = [span_row(f"s{i}", PAIRS[i][1]) for i in range(6)]
    tables = {"candidates": from_rows("candidates", [candidate_row("q", row["span_id"], "a") for row in spans]),
              "questions": from_rows("questions", [question_row("q", PAIRS[0][0])]), "spans": from_rows("spans", spans)}

    def run() -> list[dict[str, Any]]:
        return list(judge_candidates(**tables, judge=judge, store=store, budget=config.judge.budget,
                                     quiet=True).to_pylist())

    rows = run()
    expected = scorer.score([PAIRS[0][0]] * 6, [row["text"] for row in spans])[0]
    assert [row["relevant"] for row in rows] == [bool(score >= card["threshold"]) for score in expected]
    assert [json.loads(row["raw"]) for row in rows] == [{"logit": score, "windows": 1} for score in expected]
    assert all(row["cached"] for row in run())


def test_a_cut_question_is_no_ground_for_a_rejection(project: Path, store: VerdictStore) -> None:
    config = load_config(project)
    judge = build_judge(config=config, cache=project.parent, store=store)
    pairs = [Pair("q", f"s{i}", " ".join([question] * 12), passage) for i, (question, passage) in enumerate(PAIRS)]
    found = judge.judge(pairs, Desk(store, Meter(config.judge.budget)))
    assert {(verdict.status, verdict.relevant) for verdict in found} == {("ok", True), ("truncated", None)}


def test_the_model_is_part_of_the_key(project: Path, tmp_path: Path, store: VerdictStore) -> None:
    config = load_config(project)
    first, one = model_version(config), build_judge(config=config, cache=tmp_path, store=store)
    (tmp_path / "tiny").unlink()
    _save(tmp_path / "tiny", seed=5)
    assert model_version(config) != first
    (tmp_path / "calibration.jsonl").write_text("".join(
        json.dumps({"question": question, "passage": passage, "relevant": index % 2 == 0}) + "\n"
        for index, (question, passage) in enumerate(PAIRS)))
    other = build_judge(config=config, cache=tmp_path, store=store)
    assert other.fingerprint(Pair("q", "s", "fuse", "door")) != one.fingerprint(Pair("q", "s", "fuse", "door"))


@pytest.mark.parametrize(("how", "says"), [
    ({"outputs": 3}, "BertForSequenceClassification with 3 outputs; a judge needs a cross-encoder"),
    ({"head": False}, "BertModel with .* a judge needs a cross-encoder"),  # an encoder: its head would be drawn
])
def test_a_model_of_another_kind_is_refused(tmp_path: Path, how: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        CrossScorer(str(_save(tmp_path / "m", **how))).score(["fuse"], ["door"])


def test_calibrate_shows_threshold_and_sample(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["judge", "calibrate", "-c", str(project)])
    out = capsys.readouterr().out
    assert not stop.value.code
    assert "from 12 relevant and 12 other pairs" in out
    assert "weak" not in out
