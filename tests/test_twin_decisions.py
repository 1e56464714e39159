"""What people decide about near twins: kept for good, followed by the next rebuild, taken back."""

from __future__ import annotations

import json
import multiprocessing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldset.config import Config, load_config
from goldset.errors import DataError, UsageError
from goldset.pipeline import rebuild
from goldset.pipeline.twins import Twins
from goldset.spans import TwinDecision, append_decision, exact_groups, in_force, merge_twins, read_decisions
from goldset.text import content_hash
from tests.pipeline import golden
from tests.test_near_twins import A, B, C, spans_of

TIME = datetime(2026, 3, 5, 12, tzinfo=UTC)
D = B.replace("word3 ", "third ")  # A and B differ in a word, B and D in another, A and D in both


def decision(action: str, one: str, other: str, by: str = "ada") -> TwinDecision:
    return TwinDecision.of(action, (content_hash(one), one), (content_hash(other), other), by=by, time=TIME)


# --- the file --------------------------------------------------------------------------------------------------------


def test_the_last_word_stands_whichever_text_was_named_first(tmp_path: Path) -> None:
    path = tmp_path / "w/twins.jsonl"
    assert read_decisions(path) == []
    made = [decision("merge", "a", "b"), decision("keep", "b", "a", "ben"), decision("merge", "a", "c"),
            decision("undo", "c", "a")]
    for one in made:
        append_decision(path, one)
    assert read_decisions(path) == made
    standing = in_force(made)
    assert [(row.action, row.by, sorted(row.spans)) for row in standing.values()] == [("keep", "ben", ["a", "b"])]


@given(st.integers(1, 400))
def test_a_killed_write_costs_nothing_but_itself(cut: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "twins.jsonl"
        append_decision(path, decision("merge", "a", "b"))
        whole = path.read_bytes()
        append_decision(path, decision("keep", "c", "d"))
        written = path.read_bytes()
        path.write_bytes(written[: min(len(whole) + cut, len(written))])  # as if killed after so many bytes
        append_decision(path, decision("merge", "e", "f"))
        found = read_decisions(path)
        assert found[0] == decision("merge", "a", "b")
        assert found[-1] == decision("merge", "e", "f")
        assert [row.action for row in found[1:-1]] in ([], ["keep"])


def _write(path: Path, number: int) -> None:
    for i in range(20):
        append_decision(path, decision("merge", f"{number}", f"x{i}"))


def test_several_processes_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "twins.jsonl"
    started = [multiprocessing.get_context("fork").Process(target=_write, args=(path, n)) for n in range(4)]
    for process in started:
        process.start()
    for process in started:
        process.join(30)
    assert len(in_force(read_decisions(path))) == 80


def test_a_line_of_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "twins.jsonl").write_text('{"action": "marry"}\n')
    with pytest.raises(DataError, match=r"twins.jsonl, line 1: not a decision about near twins"):
        read_decisions(tmp_path / "twins.jsonl")


# --- the groups ------------------------------------------------------------------------------------------------------


def test_what_is_kept_apart_is_not_joined_through_a_third() -> None:
    made, _ = spans_of({"a": A, "b": B, "d": D, "c": C})
    name = dict(zip(*(made.spans.column(column).to_pylist() for column in ("doc_id", "span_id")), strict=True))
    pairs = [{"left": name["a"], "right": name["b"]}, {"left": name["b"], "right": name["d"]}]
    groups = dict(zip(name, merge_twins(made.spans, pairs).column("twin_group").to_pylist(), strict=True))
    assert groups == {"a": name["a"], "b": name["a"], "d": name["a"], "c": name["c"]}
    # a and d apart: the first pair is joined, the second would bring them together.
    kept = merge_twins(made.spans, pairs, [(name["d"], name["a"])])
    assert dict(zip(name, kept.column("twin_group").to_pylist(), strict=True)) == {
        "a": name["a"], "b": name["a"], "d": name["d"], "c": name["c"]}
    assert exact_groups(kept).equals(made.spans)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12),
       st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=4))
def test_no_merge_ever_joins_what_is_apart(joined: list[tuple[int, int]], apart: list[tuple[int, int]]) -> None:
    made, _ = spans_of({f"d{i}": f"text {i} of eight" for i in range(8)})
    names = made.spans.column("span_id").to_pylist()
    foes = [(names[a], names[b]) for a, b in apart if a != b]
    pairs = [{"left": names[a], "right": names[b]} for a, b in joined]
    found = dict(zip(names, merge_twins(made.spans, pairs, foes).column("twin_group").to_pylist(), strict=True))
    assert all(found[a] != found[b] for a, b in foes)
    assert all(group == min(name for name in names if found[name] == group) for group in found.values())
    if not foes:
        assert all(found[pair["left"]] == found[pair["right"]] for pair in pairs)


# --- the project -----------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The golden corpus and three documents of one chunk: A, B and D."""
    path = golden.write(tmp_path / "harbour")
    rows = [{"doc_id": name, "text": text} for name, text in (("memo", A), ("note", B), ("draft", D))]
    with (path.parent / "documents.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    with (path.parent / "chunks.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({**row, "chunk_id": row["doc_id"], "start": 0, "end": len(row["text"])}) + "\n"
                        for row in rows)
    return path


MEMO, NOTE, DRAFT = (f"{name}#0-{len(text)}" for name, text in (("memo", A), ("note", B), ("draft", D)))


def groups(config: Config) -> dict[str, str]:
    table = rebuild(config, quiet=True, until="spans").table("spans")
    return dict(zip(*(table.column(name).to_pylist() for name in ("span_id", "twin_group")), strict=True))


def decide(config: Config, action: str, left: str, right: str, by: str = "ada") -> float:
    return Twins.load(config).decide(action, left, right, by=by, time=TIME)


def test_a_merge_is_followed_by_the_next_rebuild_and_undone(project: Path) -> None:
    config = load_config(project)
    before = rebuild(config, quiet=True, until="spans").refs["spans"].key
    assert groups(config)[NOTE] == NOTE
    # 35 of 41 runs of three words, as derived in test_near_twins.
    assert decide(config, "merge", NOTE, MEMO) == pytest.approx(35 / 41)
    artifacts = rebuild(config, quiet=True, until="spans")
    assert artifacts.refs["spans"].key != before
    assert groups(config)[NOTE] == groups(config)[MEMO] == MEMO
    assert groups(config)[DRAFT] == DRAFT
    assert artifacts.report("spans")["near_twins"]["merged"] == 1
    decide(config, "undo", MEMO, NOTE, by="ben")
    assert rebuild(config, quiet=True, until="spans").refs["spans"].key == before
    with pytest.raises(UsageError, match="nobody has decided anything about"):
        decide(config, "undo", MEMO, NOTE)
    # All three lines are there, with who and when.
    lines = [json.loads(line) for line in (config.workspace / "twins.jsonl").read_text().splitlines()]
    assert [(row["action"], row["by"], row["time"]) for row in lines] == [
        ("merge", "ada", TIME.isoformat()), ("undo", "ben", TIME.isoformat())]
    assert lines[0]["texts"] == sorted([content_hash(A), content_hash(B)])


def test_a_person_keeps_apart_what_the_configuration_merges(project: Path) -> None:
    project.write_text(project.read_text().replace("[corpus]\n", "[corpus]\nmerge_near_twins = 0.8\n"))
    config = load_config(project)
    assert groups(config)[MEMO] == groups(config)[NOTE] == groups(config)[DRAFT] == DRAFT
    decide(config, "keep", MEMO, NOTE)
    found = groups(config)
    # draft and note are the more alike of the two other pairs (35 of 41 each; ties go by name: draft-note is joined).
    assert found[MEMO] != found[NOTE]
    assert {found[MEMO], found[NOTE]} >= {DRAFT}
    assert rebuild(config, quiet=True, until="spans").report("spans")["near_twins"]["kept_apart"] == 1
    states = {(pair["left"], pair["right"]): (pair["state"], pair["by"]) for pair in Twins.load(config).listed()}
    assert states[MEMO, NOTE] == ("kept", "ada")


def test_decisions_follow_the_texts_into_other_spans(project: Path) -> None:
    config = load_config(project)
    decide(config, "merge", MEMO, NOTE)
    for name in ("documents.jsonl", "chunks.jsonl"):
        file = project.parent / name
        file.write_text(file.read_text().replace('"memo"', '"minutes"'))
    found = groups(config)
    assert found[NOTE] == found[f"minutes#0-{len(A)}"] == f"minutes#0-{len(A)}"
    # A text that changed is another one: the decision waits for it to come back, and is counted.
    for name in ("documents.jsonl", "chunks.jsonl"):
        file = project.parent / name
        file.write_text(file.read_text().replace("word7 ", "wort7 "))
    report = rebuild(config, quiet=True, until="spans").report("spans")["near_twins"]
    assert (report["merged"], report["decided_about_other_texts"]) == (0, 1)


def test_decisions_that_contradict_are_refused(project: Path) -> None:
    config = load_config(project)
    decide(config, "merge", MEMO, NOTE)
    decide(config, "merge", NOTE, DRAFT)
    with pytest.raises(UsageError, match="cannot be kept apart and be merged, directly or through other spans"):
        decide(config, "keep", MEMO, DRAFT)
    decide(config, "undo", NOTE, DRAFT)
    decide(config, "keep", MEMO, DRAFT)
    with pytest.raises(UsageError, match="cannot be kept apart and be merged"):
        decide(config, "merge", NOTE, DRAFT)
    # A second decision about the same two replaces the first.
    decide(config, "keep", MEMO, NOTE, by="ben")
    assert groups(config)[NOTE] == NOTE


def test_what_is_no_pair_is_refused(project: Path) -> None:
    config = load_config(project)
    lost, again = golden.cut("lost"), golden.cut("lost2")
    with pytest.raises(UsageError, match="are the same text and are judged once anyway"):
        decide(config, "merge", lost, again)
    with pytest.raises(DataError, match=r"no span 'memo#0-1' in the corpus; did you mean 'memo#0-\d+'\?"):
        decide(config, "merge", "memo#0-1", NOTE)
    assert not (config.workspace / "twins.jsonl").exists()


def test_the_list_has_pairs_that_were_decided_though_little_is_alike(project: Path) -> None:
    config = load_config(project)
    decide(config, "merge", MEMO, golden.PARKING)
    listed: list[dict[str, Any]] = Twins.load(config).listed()
    assert [(pair["left"], pair["right"], pair["state"]) for pair in listed] == [
        (DRAFT, NOTE, "open"), (MEMO, NOTE, "open"), (MEMO, golden.PARKING, "merged")]
    assert listed[-1]["similarity"] == 0
