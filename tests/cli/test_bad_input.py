"""Bad input, one case a row: one sentence on stderr, the documented exit code, nothing half-written."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from goldset.store import Workspace
from tests.cli.conftest import Goldset
from tests.pipeline import golden
from tests.pipeline.conftest import Harbour

Spoil = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """What is spoilt in the golden project, and how ``goldset rebuild`` must answer."""

    name: str
    spoil: Spoil
    says: str
    code: int = 3


def _edit(file: str, old: str, new: str) -> Spoil:
    def spoil(folder: Path) -> None:
        text = (folder / file).read_text(encoding="utf-8")
        assert old in text
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")

    return spoil


def _write(file: str, content: str | bytes) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)

    return spoil


def _append(file: str, line: str) -> Spoil:
    def spoil(folder: Path) -> None:
        with (folder / file).open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    return spoil


def _remove(file: str) -> Spoil:
    return lambda folder: (folder / file).unlink()


def _lines(file: str, change: Callable[[str], str]) -> Spoil:
    def spoil(folder: Path) -> None:
        lines = (folder / file).read_text(encoding="utf-8").splitlines()
        (folder / file).write_text("".join(change(line) + "\n" for line in lines), encoding="utf-8")

    return spoil


def _strange_chunks(line: str) -> str:
    row = json.loads(line)
    return json.dumps({**row, "text": f"Nothing of the kind stands in any document, says {row['chunk_id']}."})


CUT = gzip.compress(("\n".join(golden.run_lines(golden.PRODUCTION)) + "\n").encode())[:-12]

REBUILD = [
    # the configuration
    Case("misspelt key", _edit("harbour.toml", "served_k = 2", "serverd_k = 2"),
         r"harbour\.toml: unknown key 'scoring\.serverd_k'; did you mean 'served_k'\?"),
    Case("misspelt key of a system", _edit("harbour.toml", 'path = "production.run"', 'pth = "production.run"'),
         r"unknown key 'systems\.production\.pth'; did you mean 'path'\?"),
    Case("misspelt section", _edit("harbour.toml", "[review]", "[reviews]"),
         r"unknown key 'reviews'; did you mean 'review'\?"),
    Case("missing key", _edit("harbour.toml", "served_k = 2\n", ""), r"the key 'scoring\.served_k' is missing"),
    Case("wrong value", _edit("harbour.toml", 'profile = "basic"', 'profile = "thorough"'),
         r"'review\.profile' is 'thorough': .*'basic' or 'careful'"),
    Case("unknown system", _edit("harbour.toml", 'system = "production"', 'system = "produktion"'),
         r"\[scoring\] system: no system 'produktion'; did you mean 'production'\?"),
    Case("not TOML", _edit("harbour.toml", "[corpus]", "[corpus"), r"harbour\.toml: not valid TOML: .*line 5"),
    Case("configuration in UTF-16", lambda folder: (folder / "harbour.toml").write_bytes(
        (folder / "harbour.toml").read_text().encode("utf-16")), r"harbour\.toml: not valid TOML: .*utf-8"),
    Case("no configuration", _remove("harbour.toml"), r"harbour\.toml: no such configuration file; 'goldset init DIR'"),
    # the corpus
    Case("no documents", _remove("documents.jsonl"),
         r"documents\.jsonl: No such file or directory; paths in the configuration are relative to its file"),
    Case("empty corpus file", _write("documents.jsonl", ""), r"documents\.jsonl: no document with any text in it \(0 empty\)"),
    Case("corpus of empty documents", _write("documents.jsonl", '{"doc_id": "a", "text": " "}\n'),
         r"documents\.jsonl: no document with any text in it \(1 empty\)"),
    Case("chunks without text", _lines("chunks.jsonl", lambda line: json.dumps({**json.loads(line), "text": "\u200b"})),
         r"chunks\.jsonl: no chunk with any text in it \(14 empty\)"),
    Case("document id twice", _append("documents.jsonl", '{"doc_id": "ferry", "text": "Another ferry."}'),
         r"documents\.jsonl, lines 1 and 11: the id 'ferry' stands twice"),
    Case("chunk id twice", _append("chunks.jsonl", '{"chunk_id": "dogs", "doc_id": "dogs", "text": "Dogs"}'),
         r"chunks\.jsonl, lines 11 and 15: the id 'dogs' stands twice"),
    Case("no id", _append("documents.jsonl", '{"dok_id": "x", "text": "Another ferry."}'),
         r"documents\.jsonl, line 11: no id in the field 'doc_id' .* did you mean 'dok_id'\?"),
    Case("damaged line", _append("documents.jsonl", '{"doc_id": "x", "text": "Ano'),
         r"documents\.jsonl, line 11: not JSON"),
    Case("offsets of other documents", _lines("chunks.jsonl", _strange_chunks),
         r"chunks\.jsonl, line 1: the text of chunk 'ferry-a' is not in its document 'ferry' \(offsets 0-\d+\), nor are 13"),
    Case("offsets the wrong way round", _edit("chunks.jsonl", '"start": 0, "end": 95', '"start": 95, "end": 0'),
         r"chunks\.jsonl, line \d+: offsets start = 95, end = 0; they must be whole numbers with 0 <= start < end"),
    Case("documents in UTF-16", lambda folder: (folder / "documents.jsonl").write_bytes(
        (folder / "documents.jsonl").read_text().encode("utf-16")), r"documents\.jsonl: UTF-16 text; convert it to UTF-8"),
    Case("documents in Latin-1", _write("documents.jsonl", '{"doc_id": "a", "text": "Fähre"}\n'.encode("latin-1")),
         r"documents\.jsonl, line 1: not UTF-8"),
    # the log
    Case("no log", _remove("log.jsonl"), r"log\.jsonl: No such file or directory"),
    Case("empty log", _write("log.jsonl", ""), r"the logs hold no question at all"),
    Case("log without a usable question",
         _write("log.jsonl", "".join(json.dumps({"q": text, "ts": "2026-03-03T09:00:00Z", "sid": str(number)}) + "\n"
                                     for number, text in enumerate(["hello", "thanks", "ok"]))),
         r"no usable question among 3 log events \(greeting 3; window "),
    Case("log without the column", _edit("harbour.toml", 'text = "q"', 'text = "question"'),
         r"log\.jsonl: no column 'question'; columns found: q, sid, ts; name the right one as text in \[questions\] logs"),
    Case("log full of damaged lines", _lines("log.jsonl", lambda line: line if "boat" in line else line[:-9]),
         r"log\.jsonl, line \d+: not_json; \d+ of 20 log lines cannot be read, \[questions\] bad_share allows 0\.2"),
    # the systems
    Case("no run", _remove("production.run"), r"production\.run: No such file or directory"),
    Case("unknown chunks in the run", _lines("production.run", lambda line: line.replace(" Q0 ", " Q0 v1/")),
         r"\[systems\.production\]: 0 of 11 returned ids resolve to a chunk of this corpus, e\.g\. 'v1/"),
    Case("unknown questions in the run", _lines("production.run", lambda line: "x" + line),
         r"production\.run: 0 of 7 questions are in the run"),
    Case("a chunk twice in the run", _append("production.run", f"{golden.question_id(golden.LOST)} Q0 dogs 9 1 production"),
         r"production\.run, line 18: chunk 'dogs' .*line 13"),
    Case("damaged gzip", _write("production.run", CUT), r"production\.run.* the gzip file is damaged"),
    Case("no such entry", _edit("harbour.toml", "golden:browse", "golden:brows"),
         r"\[systems\.browse\] entry = 'tests\.pipeline\.golden:brows': the module has no 'brows'"),
    # the judge
    Case("no rubric", _remove("relevance.md"), r"relevance\.md: No such file or directory"),
    Case("rubric without a version", _write("relevance.md", "Relevant is what answers.\n"),
         r"relevance\.md, line 1: .*where the version was expected"),
    Case("verdict that is no verdict", _append("verdicts.jsonl", '{"question_id": "q", "span_id": "s", "relevant": "yes"}'),
         r"verdicts\.jsonl, line 19: relevant is 'yes'; write true, false, or null"),
]


@pytest.mark.parametrize("case", REBUILD, ids=lambda case: case.name)
def test_rebuild(goldset: Goldset, tmp_path: Path, case: Case) -> None:
    config = golden.write(tmp_path / "harbour")
    case.spoil(config.parent)
    given = golden.listing(config.parent)
    done = goldset("rebuild", "-c", config)
    assert done.code == case.code
    assert re.search(case.says, done.complaint), done.complaint
    assert done.out == ""
    # What was given is untouched; what was finished is whole; nothing lies half-written, and no queue is open.
    after = golden.listing(config.parent)
    assert {name: after[name] for name in given} == given
    made = sorted(set(after) - set(given))
    assert not [name for name in made if "/." in name or "tmp" in name]
    folders = {Path(name).parent for name in made if name.startswith("workspace/artifacts/")}
    assert all(str(folder / "manifest.json") in made for folder in folders)
    assert not {"workspace/current.json", "workspace/review.sqlite"} & set(made)


def test_rebuild_goes_on_after_the_mistake_is_mended(goldset: Goldset, tmp_path: Path) -> None:
    config = golden.write(tmp_path / "harbour")
    good = (config.parent / "production.run").read_text()
    (config.parent / "production.run").write_text("nonsense\n")
    assert goldset("rebuild", "-c", config).code == 3
    (config.parent / "production.run").write_text(good)
    done = goldset("rebuild", "-c", config)
    assert done.code == 0
    assert "spans: nothing changed, reused" in done.err
    assert done.out.startswith("queue: 26 of 26 items wait for people")


def test_an_empty_document_and_shifted_offsets_are_counted_and_no_errors(goldset: Goldset, tmp_path: Path) -> None:
    config = golden.write(tmp_path / "harbour")
    # One chunk of fourteen says it starts three characters late: it is found where it stands.
    _edit("chunks.jsonl", '"start": 0, "end": 92', '"start": 3, "end": 95')(config.parent)
    done = goldset("rebuild", "-c", config, "--until", "corpus", "--json")
    assert done.code == 0
    (stage,) = json.loads(done.out)["stages"]
    manifest = json.loads((tmp_path / "harbour/workspace/artifacts/corpus" / stage["key"] / "manifest.json").read_text())
    assert manifest["report"]["documents_file"]["empty_documents"] == 1
    assert manifest["report"]["offsets"] == {"verified": 13, "located": 1}
    assert "'dogs'" in manifest["report"]["first"]["located"]


# --- commands on a finished project --------------------------------------------------------------------------------


def _version(harbour: Harbour) -> Path:
    return harbour.published.path


def test_a_locked_workspace_names_the_holder(goldset: Goldset, harbour: Harbour) -> None:
    before = golden.listing(harbour.path.parent)
    with Workspace(harbour.config.workspace).lock("rebuild"):
        for command in ("rebuild", "publish"):
            done = goldset(command, "-c", harbour.path)
            assert done.code == 9
            assert re.search(r"workspace/lock: the workspace is locked by goldset rebuild \(process \d+\); wait",
                             done.complaint)
    assert golden.listing(harbour.path.parent) == before


def test_publish_before_the_review_is_complete(goldset: Goldset, tmp_path: Path) -> None:
    config = golden.write(tmp_path / "harbour")
    done = goldset("publish", "-c", config)
    assert done.code == 3
    assert "no finished rebuild (stage 'corpus' is missing); run 'goldset rebuild' first" in done.complaint
    assert goldset("rebuild", "-c", config).code == 0
    done = goldset("publish", "-c", config)
    assert done.code == 5
    assert done.complaint.startswith("26 of 26 items wait for people (2 no_verdict, 6 positive, 5 rejection, 13 second)")
    assert not (tmp_path / "harbour/workspace/gold").exists()


def test_unknown_chunks_in_a_run_are_an_error_and_never_recall_0(goldset: Goldset, harbour: Harbour, tmp_path: Path) -> None:
    run = tmp_path / "moved.run"
    run.write_text("\n".join(golden.run_lines(golden.PRODUCTION)).replace(" Q0 ", " Q0 v2-") + "\n")
    for command in (["recall", "--k", "2"], ["audit"], ["compare", "--k", "2", "--run", f"b={run}"]):
        done = goldset(command[0], _version(harbour), "--run", f"a={run}", *command[1:])
        assert done.code == 3, command
        assert re.match(r"run '[ab]': 0 of 11 chunk ids resolve; the first is 'v2-", done.complaint), command
        assert done.out == ""


def test_unknown_passages_in_the_run_of_a_foreign_set(goldset: Goldset, beir: Path, tmp_path: Path) -> None:
    run = tmp_path / "moved.run"
    run.write_text((beir / "good.run").read_text().replace(" Q0 d", " Q0 passage"))
    for command in (["recall", "--k", "2"], ["audit"]):
        done = goldset(command[0], beir, "--run", f"a={run}", *command[1:])
        assert done.code == 3, command
        assert "run 'a': 0 of 34 chunk ids resolve; the first is 'passage" in done.complaint
    run.write_text((beir / "good.run").read_text().replace("q", "topic"))
    done = goldset("recall", beir, "--run", f"a={run}", "--k", "2")
    assert done.code == 3
    assert "run 'a': 0 of 30 question ids resolve; the first is 'topic0'" in done.complaint


USAGE = [
    (["rebild"], r"^no command 'rebild'; did you mean 'rebuild'\?$"),
    (["rebuild"], r"Missing option '-c' / '--config'; 'goldset rebuild --help' shows how it is used$"),
    (["rebuild", "-c", "{config}", "--until", "qeue"], r"^no stage 'qeue'; did you mean 'queue'\?$"),
    (["rebuild", "-c", "{config}", "--untill", "pool"], r"No such option.*--untill"),
    (["recall", "{set}", "--run", "{run}"], r"^--run .*production\.run: write it as NAME=FILE"),
    (["recall", "{set}", "--run", "a={run}", "--run", "a={run}"], r"the name 'a' is used twice$"),
    (["recall", "{set}"], r"^name at least one run: --run NAME=FILE$"),
    (["recall", "{set}", "--run", "a={run}", "--k", "0"], r"^--k 0: cutoffs start at 1$"),
    (["recall", "{set}", "--run", "a={run}", "--k", "five"], r"^--k five: whole numbers, separated by commas"),
    (["recall", "--run", "a={run}"], r"^name one labelled set: SET .* or --qrels FILE$"),
    (["recall", "{set}", "--run", "a={run}", "--relevant-from", "1"], r"is a published version and brings its own"),
    (["recall", "{beir}", "--run", "a={beir}/good.run"], r"^no cutoff: name the k that production serves, e\.g\. --k 5"),
    (["compare", "{set}", "--run", "a={run}", "--k", "2"], r"^name two runs, --run A=FILE --run B=FILE; 1 given$"),
    (["audit", "{set}", "--run", "a={run}", "--served", "b"], r"^--served b: no run of that name; allowed: a$"),
]


@pytest.mark.parametrize(("arguments", "says"), USAGE, ids=[" ".join(arguments)[:40] for arguments, _ in USAGE])
def test_wrong_usage(goldset: Goldset, harbour: Harbour, beir: Path, arguments: list[str], says: str) -> None:
    names = {"config": harbour.path, "set": _version(harbour), "run": harbour.path.parent / "production.run", "beir": beir}
    before = golden.listing(harbour.path.parent)
    done = goldset(*(argument.format(**names) for argument in arguments))
    assert done.code == 2
    assert re.search(says, done.complaint), done.complaint
    assert len(done.err.splitlines()) == 1
    assert golden.listing(harbour.path.parent) == before


FILES: list[tuple[str, str, str | bytes, list[str], str]] = [
    ("graded set without a threshold", "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t2\nq1\td1\t1\n", [],
     r"test\.tsv: .*grade.* --relevant-from"),
    ("two grades for one pair", "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t1\nq0\td0\t0\n", [],
     r"test\.tsv, line 3: .*line 2"),
    ("qrels with a field too many", "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t1\nq0\t0\td0\t1\n", [],
     r"test\.tsv, line 3: 4 fields"),
    ("grade that is no number", "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\tyes\n", [],
     r"test\.tsv, line 2: grade 'yes'"),
    ("no judgment", "qrels/test.tsv", "query-id\tcorpus-id\tscore\n", [], r"test\.tsv: no judgment"),
    ("empty qrels", "qrels/test.tsv", "", [], r"test\.tsv: empty"),
    ("qrels in UTF-16", "qrels/test.tsv", "q0\td0\t1\n".encode("utf-16"), [], r"test\.tsv: UTF-16 text; convert it"),
    ("question id twice", "queries.jsonl", '{"_id": "q0", "text": "a"}\n{"_id": "q0", "text": "b"}\n', [],
     r"queries\.jsonl, line 2: question id 'q0' stands in line 1 already"),
    ("questions of another set", "queries.jsonl", '{"_id": "x0", "text": "a"}\n', [], r"0 of 30 question ids stand in"),
    ("run with a field too few", "good.run", "q0 Q0 d0 1 9.0\n", [], r"good\.run, line 1: 5 fields where 6 were expected"),
    ("a rank twice", "good.run", "q0 Q0 d0 1 9.0 a\nq0 Q0 d1 1 8.0 a\n", [], r"good\.run, line 2: rank 1 .*line 1"),
    ("empty run", "good.run", "", [], r"good\.run: no result in the run"),
    ("damaged gzip", "good.run", CUT, [], r"good\.run.*the gzip file is damaged"),
    ("threshold below 1", "good.run", "q0 Q0 d0 1 9.0 a\n", ["--relevant-from", "0"], r"^--relevant-from 0: "),
]


@pytest.mark.parametrize(("file", "content", "more", "says"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_files_of_a_foreign_set(goldset: Goldset, beir: Path, file: str, content: str | bytes, more: list[str],
                                says: str) -> None:
    _write(file, content)(beir)
    before = golden.listing(beir)
    done = goldset("recall", beir, "--run", f"good={beir / 'good.run'}", "--k", "2", *more)
    assert done.code == (2 if more else 3)
    assert re.search(says, done.complaint), done.complaint
    assert golden.listing(beir) == before


def test_corpus_of_a_foreign_set_with_an_id_twice(goldset: Goldset, beir: Path) -> None:
    _append("corpus.jsonl", '{"_id": "d7", "text": "Again."}')(beir)
    done = goldset("audit", beir)
    assert done.code == 3
    assert re.search(r"corpus\.jsonl, line 41: id 'd7' stands in line 8 already", done.complaint)


def test_a_graded_set_with_its_threshold_is_read(goldset: Goldset, beir: Path) -> None:
    _write("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t2\nq1\td1\t1\n")(beir)
    done = goldset("recall", beir, "--run", f"good={beir / 'good.run'}", "--k", "1", "--relevant-from", "2", "--json")
    assert done.code == 0
    rows = {row["measure"]: row for row in json.loads(done.out)["measurements"]}
    assert (rows["recall"]["value"], rows["recall"]["n"]) == (1.0, 1)


@pytest.mark.parametrize(("run", "least", "code"), [
    ("good", "0.8", 0),  # 30 of 30: the lower bound is 0.88
    ("bad", "0.5", 1),  # 0 of 30 at k = 1: the upper bound is 0.12
    ("good", "0.95", 6),  # between the bounds: cannot be told
    ("bad", "0.05", 6),
])
def test_the_gate(goldset: Goldset, beir: Path, run: str, least: str, code: int) -> None:
    done = goldset("recall", beir, "--run", f"{run}={beir / f'{run}.run'}", "--k", "1", "--min", least)
    assert done.code == code


def test_compare_with_too_few_questions(goldset: Goldset, harbour: Harbour) -> None:
    run = harbour.path.parent / "production.run"
    done = goldset("compare", _version(harbour), "--run", f"a={run}", "--run", f"b={run}", "--k", "2", "--json")
    assert done.code == 6
    assert json.loads(done.out)["verdict"] == "too_few_to_tell"


def test_audit_with_too_little_data(goldset: Goldset, harbour: Harbour) -> None:
    done = goldset("audit", _version(harbour), "--json")
    assert done.code == 6
    assert json.loads(done.out)["verdict"] == "insufficient"


@pytest.mark.parametrize(("module", "arguments", "extra"), [
    ("faiss", ["audit", "{beir}", "--with", "dense"], "dense"),
    ("sentence_transformers", ["audit", "{beir}", "--with", "dense"], "dense"),
    ("sqlalchemy", ["publish", "-c", "{config}"], "review"),
    ("fastapi", ["review", "serve", "-c", "{config}", "--port", "0"], "review"),
])
def test_a_missing_extra_is_named(goldset: Goldset, harbour: Harbour, beir: Path, monkeypatch: pytest.MonkeyPatch,
                                  module: str, arguments: list[str], extra: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # an import of it fails now
    before = golden.listing(harbour.path.parent)
    done = goldset(*(argument.format(beir=beir, config=harbour.path) for argument in arguments))
    assert done.code == 4
    assert re.search(rf"needs the extra '{extra}', which is not installed: pip install 'goldset-rebuilder\[{extra}\]'",
                     done.complaint)
    # The database's own side files come and go with its readers.
    after = golden.listing(harbour.path.parent)
    assert {name for name in after if not name.endswith(("-wal", "-shm"))} == {
        name for name in before if not name.endswith(("-wal", "-shm"))}


def test_a_report_that_cannot_be_written(goldset: Goldset, beir: Path) -> None:
    done = goldset("audit", beir, "--run", f"good={beir / 'good.run'}", "--html", beir / "good.run" / "report.html")
    assert done.code == 9
    assert re.search(r"report\.html: cannot be written", done.complaint)


def test_init_on_an_empty_folder_and_on_none(goldset: Goldset, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = goldset("init", empty)
    assert done.code == 3
    assert re.search(r"empty: no question log found; it is a \.jsonl or \.csv file", done.complaint)
    assert not list(empty.iterdir())
    done = goldset("init", tmp_path / "nowhere")
    assert done.code == 3
    assert "no such folder" in done.complaint
    (empty / "log.jsonl").write_text("\n".join(golden.log()))
    done = goldset("init", empty)
    assert done.code == 3
    assert "no corpus found" in done.complaint
    assert [path.name for path in empty.iterdir()] == ["log.jsonl"]


def test_interrupted(goldset: Goldset, harbour: Harbour, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **names: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("goldset.pipeline.rebuild", interrupt)
    done = goldset("rebuild", "-c", harbour.path)
    assert done.code == 130
    assert done.complaint == "interrupted; what was finished is kept, run again to resume"
