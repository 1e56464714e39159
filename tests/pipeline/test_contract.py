"""What holds for every stage: conforming borders, reuse, resumption, and draws that nothing else can move."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from goldset.config import Config, load_config
from goldset.errors import DataError, ReviewIncomplete
from goldset.pipeline import STAGES, Artifacts, open_review, publish, rebuild, replay_review, store_of
from goldset.pipeline.runner import run_stage
from goldset.pipeline.stages import Context
from goldset.schemas import SCHEMAS, conform
from goldset.store import Workspace
from goldset.text import question_id
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour, finish

ROOT = Path(__file__).resolve().parents[2]
STAGE_NAMES = [stage.name for stage in STAGES]
TO_THE_END = """
import sys
from pathlib import Path
from tests.pipeline.conftest import finish
print(finish(Path(sys.argv[1])).published.manifest["content_hash"])
"""


def _process(code: str, path: Path, *, hash_seed: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GOLDSET_")}
    return subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, cwd=ROOT,
                          env={**environment, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed})


def _said(config: Config) -> tuple[Artifacts, dict[str, str]]:
    lines: list[str] = []
    artifacts = rebuild(config, quiet=True, say=lines.append)
    return artifacts, dict(line.split(": ", 1) for line in lines if not line.startswith("  "))  # notes are indented


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def _rows(table: Any, *, without: str | None = None) -> list[dict[str, Any]]:
    """Rows in a fixed order, without those of one question."""
    rows = [row for row in table.to_pylist() if row.get("question_id") != without]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, default=str))


# --- borders -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stage", "table"), [(stage.name, table) for stage in STAGES for table in stage.writes])
def test_every_table_on_disk_conforms(harbour: Harbour, stage: str, table: str) -> None:
    stored = pq.read_table(harbour.artifacts.refs[stage].path / f"{table}.parquet")
    assert len(stored)
    assert conform(stored, table).equals(stored)
    # Not only castable: written with the documentation, and with nulls only where they are allowed.
    assert [(field.name, field.nullable, field.metadata[b"doc"]) for field in stored.schema] == [
        (field.name, field.nullable, field.metadata[b"doc"]) for field in SCHEMAS[table]]


@pytest.mark.parametrize("table", ["questions", "spans", "judgments", "gold", "chunks", "span_links"])
def test_every_published_table_conforms(harbour: Harbour, table: str) -> None:
    stored = pq.read_table(harbour.published.path / f"{table}.parquet")
    assert len(stored)
    assert conform(stored, table).equals(stored)


def test_what_people_did_conforms(harbour: Harbour) -> None:
    store = store_of(harbour.config, harbour.artifacts)
    for name, table in (("queue", store.queue()), ("labels", store.labels())):
        assert conform(table, name).equals(table)
    for name, table in (("findings", harbour.published.outcome.findings),
                        ("measurements", harbour.published.outcome.measurements)):
        assert table is not None
        assert conform(table, name).equals(table)


@pytest.mark.parametrize("position", range(len(STAGES)), ids=STAGE_NAMES)
def test_stage_that_returns_a_bad_table_leaves_nothing(harbour: Harbour, copy: Path, position: int) -> None:
    stage = STAGES[position]
    config = load_config(copy)
    table = stage.writes[-1]

    def bad(context: Context, tables: Any) -> Any:
        made, report = stage.run(context, tables)
        return {**made, table: made[table].append_column("surplus", [["x"] * len(made[table])])}, report

    before = golden.listing(config.workspace / "artifacts")
    context = Context(config, Workspace(config.workspace), quiet=True)
    with pytest.raises(DataError, match=f"table '{table}'.*surplus"):
        run_stage(replace(stage, run=bad, version=99), context, dict(harbour.artifacts.refs))
    assert golden.listing(config.workspace / "artifacts") == before
    assert not list((config.workspace / "artifacts").rglob(".*"))


def test_stage_that_leaves_out_a_table_is_our_own_bug(harbour: Harbour, copy: Path) -> None:
    stage, config = STAGES[0], load_config(copy)

    def half(context: Context, tables: Any) -> Any:
        made, report = stage.run(context, tables)
        return {"chunks": made["chunks"]}, report

    with pytest.raises(AssertionError, match="documents"):
        run_stage(replace(stage, run=half, version=99), Context(config, Workspace(config.workspace), quiet=True), {})


# --- same input, same result -------------------------------------------------------------------------------------


def test_second_run_reuses_every_stage(copy: Path) -> None:
    artifacts, said = _said(load_config(copy))
    assert said == dict.fromkeys(STAGE_NAMES, "nothing changed, reused")
    assert all(ref.reused for ref in artifacts.refs.values())


def test_second_publish_returns_the_same_version(harbour: Harbour, copy: Path) -> None:
    again = publish(load_config(copy))
    assert (again.path.name, again.new) == ("v1", False)
    assert again.manifest["content_hash"] == harbour.published.manifest["content_hash"]


def test_another_process_comes_to_the_same_hash(harbour: Harbour, tmp_path: Path) -> None:
    done = _process(TO_THE_END, golden.write(tmp_path / "other"), hash_seed="4711")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == harbour.published.manifest["content_hash"]


def test_another_seed_comes_to_another_hash(harbour: Harbour, tmp_path: Path) -> None:
    other = finish(golden.write(tmp_path / "other", seed=golden.SEED + 1))
    assert other.published.manifest["content_hash"] != harbour.published.manifest["content_hash"]


@pytest.mark.parametrize("shuffle", [1, 2])
def test_order_of_input_rows_does_not_matter(harbour: Harbour, tmp_path: Path, shuffle: int) -> None:
    path = golden.write(tmp_path / "shuffled")
    for name in ("documents.jsonl", "chunks.jsonl", "log.jsonl", "production.run", "verdicts.jsonl"):
        lines = (path.parent / name).read_text(encoding="utf-8").splitlines(keepends=True)
        before = list(lines)
        random.Random(shuffle).shuffle(lines)
        assert lines != before
        (path.parent / name).write_text("".join(lines), encoding="utf-8")
    assert finish(path).published.manifest["content_hash"] == harbour.published.manifest["content_hash"]


@pytest.mark.parametrize(("old", "new", "redone"), [
    ('profile = "basic"', 'profile = "careful"', ["queue"]),
    ("rejection_min = 5", "rejection_min = 6", ["queue"]),
    ("served_k = 2", "served_k = 3", []),
    ('rubric = "relevance.md"', 'rubric = "relevance.md"\nbudget = {calls = 7}', []),
    ('entry = "tests.pipeline.golden:browse"', 'entry = "tests.pipeline.golden:browse"\naudit_only = true',
     ["retrieve", "pool", "judge", "queue"]),
    ("size = 100", "size = 99", ["questions", "retrieve", "pool", "judge", "queue"]),
])
def test_a_changed_setting_redoes_only_what_depends_on_it(copy: Path, old: str, new: str, redone: list[str]) -> None:
    _edit(copy, old, new)
    _, said = _said(load_config(copy))
    assert [name for name, line in said.items() if line != "nothing changed, reused"] == redone


def test_a_changed_file_redoes_what_depends_on_it(copy: Path) -> None:
    with (copy.parent / "production.run").open("a") as stream:
        stream.write(f"{question_id(golden.MUZZLE)} Q0 lost 3 7 production\n")
    _, said = _said(load_config(copy))
    assert [name for name, line in said.items() if line != "nothing changed, reused"] == [
        "retrieve", "pool", "judge", "queue"]


# --- one more question -------------------------------------------------------------------------------------------


def add_question(path: Path, text: str = "parking costs", times: int = 2) -> str:
    """Append log lines within the window; bm25 finds parking ("parking", "costs") and bikes-a ("costs")."""
    with (path.parent / "log.jsonl").open("a", encoding="utf-8") as stream:
        for number in range(times):
            time = f"2026-03-1{number}T15:{number}7:31Z"
            stream.write("\n" + json.dumps({"q": text, "ts": time, "sid": f"n{number}"}))
    return question_id(text)


def test_one_more_question_changes_nothing_of_the_others(harbour: Harbour, copy: Path) -> None:
    new = add_question(copy)
    artifacts, said = _said(load_config(copy))
    assert said["spans"] == said["corpus"] == "nothing changed, reused"
    for table in ("questions", "run", "run_status", "candidates", "verdicts"):
        after = artifacts.table(table)
        assert new in after.column("question_id").to_pylist()
        assert _rows(after, without=new) == _rows(harbour.artifacts.table(table)), table
    before, after = harbour.artifacts.table("queue"), artifacts.table("queue")
    kept = [{name: row[name] for name in ("question_id", "span_id", "reason", "stratum", "u")} for row in _rows(before)]
    again = [{name: row[name] for name in kept[0]} for row in _rows(after, without=new)]
    assert sorted(kept, key=str) == sorted(again, key=str)
    # Nobody judged the new pairs, so people read both: 2 first and 2 second items.
    assert len(after) - len(before) == 4


def test_one_more_question_keeps_the_numbers_of_a_partial_sample(copy: Path) -> None:
    _edit(copy, "size = 100", "size = 8")
    config = load_config(copy)
    before = {row["question_id"]: row["u"] for row in rebuild(config, until="questions").table("questions").to_pylist()}
    add_question(copy)
    after = {row["question_id"]: row["u"] for row in rebuild(config, until="questions").table("questions").to_pylist()}
    shared = before.keys() & after.keys()
    assert len(shared) >= 3
    assert {name: before[name] for name in shared} == {name: after[name] for name in shared}


def test_questions_keep_their_order_before_people(harbour: Harbour, copy: Path) -> None:
    new = add_question(copy)
    artifacts, _ = _said(load_config(copy))

    def order(table: Any) -> list[str]:
        asked = table.sort_by("order").column("question_id").to_pylist()
        return [name for name in dict.fromkeys(asked) if name != new]

    assert order(artifacts.table("queue")) == order(harbour.artifacts.table("queue"))


# --- killed and resumed ------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
import goldset.store
from goldset.config import load_config
from goldset.pipeline import rebuild
write, count = goldset.store.pq.write_table, 0
def dying(table, where):
    global count
    count += 1
    if count == int(os.environ["KILL_AT"]):
        Path(where).write_bytes(b"PAR1 half a file")
        os.kill(os.getpid(), signal.SIGKILL)
    write(table, where)
goldset.store.pq.write_table = dying
rebuild(load_config(Path(sys.argv[1])), quiet=True)
"""


@pytest.mark.parametrize(("table", "stage"), [(4, "spans"), (8, "retrieve")])
def test_killed_in_the_middle_of_a_write_it_resumes(harbour: Harbour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    table: int, stage: str) -> None:
    # Tables are written in the order documents, chunks | spans, span_links | questions, drops | run, run_status | …
    path = golden.write(tmp_path / "killed")
    monkeypatch.setenv("KILL_AT", str(table))
    done = _process(KILLED, path, hash_seed="1")
    assert done.returncode == -signal.SIGKILL
    config = load_config(path)
    left = [name.name for name in (config.workspace / "artifacts" / stage).iterdir()]
    assert len(left) == 1
    assert left[0].startswith(".")  # half a result lies aside and does not count
    _, said = _said(config)
    reused = [name for name, line in said.items() if line == "nothing changed, reused"]
    assert reused == STAGE_NAMES[: STAGE_NAMES.index(stage)]
    assert finish(path).published.manifest["content_hash"] == harbour.published.manifest["content_hash"]


def test_a_half_written_folder_does_not_count(harbour: Harbour, copy: Path) -> None:
    config = load_config(copy)
    ref = harbour.artifacts.refs["pool"]
    folder = config.workspace / "artifacts" / "pool"
    (folder / ref.key / "manifest.json").unlink()  # as if only some of a copied workspace had arrived
    _, said = _said(config)
    assert said["pool"].startswith("19 candidates")
    assert (folder / ref.key / "manifest.json").exists()
    assert not list(folder.glob(".*"))


# --- people ------------------------------------------------------------------------------------------------------


def test_inclusion_probabilities_are_computed_at_publish(tmp_path: Path) -> None:
    path = golden.write(tmp_path / "partly")
    some = [row for row in golden.labels() if row["question"] not in (golden.WINTER, golden.HELICOPTER)]
    golden.jsonl(path.parent / "labels.jsonl", some)
    config = load_config(path)
    artifacts = rebuild(config, quiet=True)
    open_review(config, artifacts)
    replay_review(config)
    with pytest.raises(ReviewIncomplete, match="wait for people"):
        publish(config)
    partial = publish(config, partial=True)
    muzzle = question_id(golden.MUZZLE)

    def weight(published: Any) -> float:
        gold = published.outcome.labelled.gold
        found: float = gold.filter(pc.equal(gold.column("question_id"), muzzle)).column("weight")[0].as_py()
        return found

    # The sample of five has one pair each of BICYCLE, REFUND, MUZZLE, HELICOPTER and WINTER: three are read so far.
    assert weight(partial) == pytest.approx(11 / 3)
    assert (partial.path.name, partial.manifest["partial"]) == ("v1", True)
    golden.jsonl(path.parent / "labels.jsonl", golden.labels())
    replay_review(config)
    whole = publish(config)
    assert weight(whole) == pytest.approx(11 / 5)
    assert (whole.path.name, whole.manifest["partial"]) == ("v2", False)
    # Nothing before publication knows a probability of a pair.
    stored = {name for stage in STAGES for name in stage.writes if "inclusion_prob" in SCHEMAS[name].names}
    assert stored == {"questions"}  # of a draw from the log
    assert "inclusion_prob" not in SCHEMAS["labels"].names


def test_the_lock_names_its_holder(copy: Path) -> None:
    config = load_config(copy)
    from goldset.errors import ExternalError

    with Workspace(config.workspace).lock("rebuild"), pytest.raises(ExternalError, match=f"process {os.getpid()}"):
        publish(config)
