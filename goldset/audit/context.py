"""What every check reads: the set, the runs and what follows from them, each computed once and on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from goldset.audit.probe import Probe, percent
from goldset.audit.staleness import Aged
from goldset.errors import UsageError, nearest
from goldset.formats.sets import Corpus, LabelledSet
from goldset.lexical import BM25Index
from goldset.progress import progress
from goldset.schemas import conform
from goldset.spans import main_span, served
from goldset.stats.intervals import Estimate, ratio
from goldset.text import tokenize

__all__ = ["BM25_DEPTH", "BM25_NAME", "Check", "Context", "percent", "plural"]

T = TypeVar("T")

BM25_DEPTH = 200
BM25_NAME = "bm25"


class Check(Protocol):
    """One audit: a name, and a function from a context to rows of findings.

    A further check also has ``words``, the rows that it adds to the table of words and verdicts.
    """

    name: str

    def run(self, context: Context) -> list[dict[str, Any]]:
        """Context -> rows of the table findings, made with verdicts.finding()."""
        ...


@dataclass(frozen=True, eq=False)
class Context:
    """A labelled set with the runs and the facts about production that the caller knows.

    Attributes:
        labelled: the set under audit.
        given: runs by system name, each the table run of one system.
        families: system -> family for systems whose family the caller knows better than the run.
        log_questions: real questions to compare with: a table with the column text, and query where it differs.
        eval_k: k of the quoted figure; retrieve_k: what is retrieved; serving_k: what reaches the reader.
        served_system: the system whose run is the list that reaches the reader.
        retrieved_system: the system whose run is the list before reranking.
        audit_only: systems that never fed the pool.
        probing: people's answers to unlabelled results, drawn or read when a check asks for them.
        observed: passages that reached a reader -> answers with so many, from the log of what was served.
        reference: real questions with gold that people found, the best reference for leakage.
        aged: where the gold stands in the documents as they are now.
        quiet: no progress on stderr.
        own: runs of systems of ours, which stand beside the given ones, or beside the BM25.
    """

    labelled: LabelledSet
    given: Mapping[str, pa.Table] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    log_questions: pa.Table | None = None
    eval_k: int | None = None
    retrieve_k: int | None = None
    serving_k: int | None = None
    served_system: str | None = None
    retrieved_system: str | None = None
    audit_only: frozenset[str] = frozenset()
    probing: Callable[[Context], Probe] | None = None
    observed: Mapping[int, int] | None = None
    reference: LabelledSet | None = None
    aged: Aged | None = None
    quiet: bool = True
    own: Mapping[str, pa.Table] = field(default_factory=dict)
    _made: dict[tuple[str, str], Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, what: str, system: str, make: Callable[[], T]) -> T:
        """What depends on a system, made on first use."""
        if (what, system) not in self._made:
            self._made[what, system] = make()
        made: T = self._made[what, system]
        return made

    def __post_init__(self) -> None:
        if self.given and self.served_system is not None and self.served_system not in self.given:
            raise UsageError(f"served system '{self.served_system}' has no run; "
                             f"{nearest(self.served_system, self.given)}")
        if self.retrieved_system is not None and self.retrieved_system not in self.given:
            raise UsageError(f"retrieved system '{self.retrieved_system}' has no run; "
                             f"{nearest(self.retrieved_system, self.given)}")

    def place(self, question: str, span: str) -> str:
        """``, file, line n`` of a label, for a sentence; empty where it is not known."""
        found = self.labelled.locate(question, span) if self.labelled.locate else None
        return f", {found}" if found else ""

    @cached_property
    def known_ks(self) -> list[int]:
        """The served, retrieved and quoted k that the caller or the manifest knows, ascending."""
        return sorted({k for k in (self.serving(), self.retrieved_k, self.quoted_k) if k})

    @property
    def configured_k(self) -> int | None:
        """Passages that reach the reader, as the caller or the manifest says."""
        k = self.serving_k or self.labelled.manifest.get("scoring", {}).get("served_k")
        return int(k) if k else None

    @property
    def observed_k(self) -> int | None:
        """Passages that most answers in the log of what was served have; the smaller of two as common ones."""
        seen = {size: count for size, count in (self.observed or {}).items() if size}
        return max(seen, key=lambda size: (seen[size], -size)) if seen else None

    def serving(self) -> int | None:
        """Cutoff of what reaches the reader: the smaller of what is said and what the log shows."""
        return min((k for k in (self.configured_k, self.observed_k) if k), default=None)

    @property
    def retrieved_k(self) -> int | None:
        """Passages retrieved before reranking, as the caller or the manifest says."""
        k = self.retrieve_k or self.labelled.manifest.get("scoring", {}).get("retrieved_k")
        return int(k) if k else None

    @property
    def quoted_k(self) -> int | None:
        """Cutoff of the quoted figure, as the caller or the manifest says."""
        k = self.eval_k or self.labelled.manifest.get("scoring", {}).get("evaluated_k")
        return int(k) if k else None

    # --- texts ---

    @property
    def corpus(self) -> Corpus | None:
        """Texts behind the set, or None."""
        return self.labelled.corpus

    @cached_property
    def queries(self) -> dict[str, str]:
        """question_id -> the string sent to retrieval; empty without question texts."""
        table = self.labelled.questions
        if table is None:
            return {}
        return dict(zip(table.column("question_id").to_pylist(), table.column("query").to_pylist(), strict=True))

    @cached_property
    def span_texts(self) -> dict[str, str]:
        """span_id -> text of the gold spans as indexed: the chunk's where span and chunk are one, else the span's.

        Without a corpus the texts that the set's own file gives its gold.
        """
        if self.corpus is None:
            return dict(self.labelled.gold_texts)
        wanted = pc.unique(self.labelled.gold.column("span_id"))
        texts: dict[str, str] = {}
        for table, key in ((self.corpus.spans, "span_id"), (self.corpus.chunks, "chunk_id")):
            rows = table.filter(pc.is_in(table.column(key), wanted))
            texts.update(zip(rows.column(key).to_pylist(), rows.column("text").to_pylist(), strict=True))
        return texts

    @cached_property
    def index(self) -> BM25Index | None:
        """BM25 over the corpus' chunks, or None without a corpus."""
        if self.corpus is None:
            return None
        chunks = self.corpus.chunks.select(["chunk_id", "text"]).sort_by("chunk_id")
        with progress("indexing the corpus", len(chunks), quiet=self.quiet) as advance:

            def words() -> Any:
                for text in chunks.column("text"):
                    advance(1)
                    yield tokenize(text.as_py())

            return BM25Index.build(chunks.column("chunk_id").to_pylist(), words())

    # --- gold ---

    @cached_property
    def unresolved(self) -> frozenset[str]:
        """Gold span ids that the corpus does not hold; empty without a corpus."""
        if self.corpus is None:
            return frozenset()
        gold = pc.unique(self.labelled.gold.column("span_id"))
        return frozenset(gold.filter(pc.invert(pc.is_in(gold, self.corpus.spans.column("span_id")))).to_pylist())

    @cached_property
    def gold_table(self) -> pa.Table:
        """Table gold without the rows that do not resolve, and without those that a deep probe drew from below."""
        gold, below = self.labelled.gold, self.labelled.from_deep_probe
        if below is not None:
            gold = gold.filter(pc.invert(below))
        if not self.unresolved:
            return gold
        return gold.filter(pc.invert(pc.is_in(gold.column("span_id"), pa.array(sorted(self.unresolved)))))

    @cached_property
    def gold(self) -> pd.DataFrame:
        """question_id, span_id of the gold that resolves."""
        frame: pd.DataFrame = self.gold_table.select(["question_id", "span_id"]).to_pandas()
        return frame

    @cached_property
    def gold_count(self) -> pd.Series[int]:
        """question_id -> number of gold spans that resolve, ascending by question_id."""
        return self.gold.groupby("question_id").size()

    @cached_property
    def clusters(self) -> dict[str, str]:
        """question_id -> near-duplicate cluster, the unit of variance; empty where the set knows none."""
        table = self.labelled.questions
        if table is None:
            return {}
        return dict(zip(table.column("question_id").to_pylist(), table.column("cluster_id").to_pylist(), strict=True))

    @cached_property
    def draws(self) -> dict[str, int]:
        """question_id -> how often it was drawn; empty where the set knows none."""
        table = self.labelled.questions
        if table is None:
            return {}
        return dict(zip(table.column("question_id").to_pylist(), table.column("draws").to_pylist(), strict=True))

    def mean(self, values: pd.Series[Any]) -> Estimate:
        """Mean over questions (the index) as recall takes it: a question counts as often as it was drawn."""
        weight = np.array([self.draws.get(question, 1) for question in values.index], dtype=np.float64)
        return self.ratio(values * weight, pd.Series(weight, index=values.index))

    def ratio(self, num: pd.Series[Any], den: pd.Series[Any] | float = 1.0) -> Estimate:
        """Sum of num / sum of den over questions (the index), interval clustered by near-duplicate questions."""
        names = {name: code for code, name in enumerate(dict.fromkeys(self.clusters.get(q, q) for q in num.index))}
        codes = np.array([names[self.clusters.get(q, q)] for q in num.index], dtype=np.int64)
        below = np.broadcast_to(np.asarray(den, dtype=np.float64), (len(num),))
        return ratio(num.to_numpy(dtype=np.float64), below, cluster=codes)

    # --- runs ---

    @cached_property
    def runs(self) -> dict[str, pa.Table]:
        """The given runs, without any a BM25 over the corpus where there are texts, and other systems of ours."""
        if self.given:
            return {**self.given, **self.own}
        made = self.bm25_run
        return dict(self.own) if made is None else {BM25_NAME: made, **self.own}

    @cached_property
    def bm25_run(self) -> pa.Table | None:
        """Our BM25 over the corpus for the questions with gold; None without texts."""
        if self.index is None or not self.queries:
            return None
        rows: dict[str, list[Any]] = {"question_id": [], "rank": [], "chunk_id": [], "score": []}
        asked = [question for question in self.gold_count.index if question in self.queries]
        with progress("searching with BM25", len(asked), quiet=self.quiet) as advance:
            for question in asked:
                for rank, (chunk, score) in enumerate(
                        self.index.search(tokenize(self.queries[question]), BM25_DEPTH), 1):
                    for name, value in zip(rows, (question, rank, chunk, score), strict=True):
                        rows[name].append(value)
                advance(1)
        count = len(rows["rank"])
        columns = {"system": pa.repeat(BM25_NAME, count), "family": pa.repeat("lexical", count), **rows}
        return conform(pa.table(columns), "run") if count else None

    def family(self, system: str) -> frozenset[str]:
        """Elementary families of a system (a hybrid has several)."""
        known = self.families.get(system) or self.labelled.manifest.get("systems", {}).get(system, {}).get("family")
        if not known:
            known = self.runs[system].column("family")[0].as_py() if len(self.runs[system]) else system
        return frozenset(str(known).split("+"))

    @cached_property
    def probe(self) -> Probe | None:
        """The hole probe, or None where nobody asked for one."""
        return self.probing(self) if self.probing else None

    @cached_property
    def independent(self) -> frozenset[str]:
        """Audited systems that never fed the pool: as the caller says, or as the set's manifest records."""
        recorded = {name for name, facts in self.labelled.manifest.get("systems", {}).items()
                    if facts.get("audit_only")}
        return frozenset(self.runs) & (self.audit_only | recorded)

    def lengths(self, system: str) -> dict[str, int]:
        """question_id -> length of the system's list."""

        def make() -> dict[str, int]:
            counts = self.runs[system].group_by("question_id").aggregate([("rank", "max")])
            columns = (counts.column(name).to_pylist() for name in ("question_id", "rank_max"))
            return dict(zip(*columns, strict=True))

        return self.once("lengths", system, make)

    def depth(self, system: str) -> int:
        """Longest list of a system."""
        return max(self.lengths(system).values(), default=0)

    def delivered(self, system: str) -> pd.DataFrame:
        """question_id, span_id, strict, lenient: smallest cut that delivers the gold, infinity where none does.

        ``strict`` and ``lenient`` differ only where evidence is missing and the two readings of the span rule
        disagree. One row a gold span that resolves, also for questions the run does not answer.
        """

        def make() -> pd.DataFrame:
            parts = self.corpus
            table = served(gold=self.gold_table, run=self.runs[system], spans=parts.spans if parts else None,
                           links=parts.links if parts else None, chunks=parts.chunks if parts else None)
            frame: pd.DataFrame = table.select(["question_id", "span_id"]).to_pandas()
            for name, reading in (("strict", "rank_low"), ("lenient", "rank_high")):
                rank = pc.coalesce(table.column("rank"), table.column(reading))
                frame[name] = pc.fill_null(pc.cast(rank, pa.float64()), np.inf).to_numpy()
            return frame

        return self.once("delivered", system, make)

    def recalls(self, system: str, k: int) -> pd.DataFrame:
        """question_id -> delivered (gold within the first k), count (gold), known (readings agree), by question_id.

        Over confirmed gold, as ``recall`` is (METHODS 3.1): finds from the sample of rejections stand for more
        than themselves and enter the weighted measures only.
        """
        frame = self.delivered(system)[(self.gold_table.column("weight").to_numpy() == 1.0)]
        table = frame.assign(hit=frame["strict"] <= k, differs=(frame["strict"] <= k) != (frame["lenient"] <= k))
        grouped = table.groupby("question_id")
        return pd.DataFrame({"delivered": grouped["hit"].sum(), "count": grouped["hit"].size(),
                             "known": ~grouped["differs"].any()})

    def unjudged(self, system: str, k: int) -> tuple[int, int, Estimate] | None:
        """(results nobody judged, results, their ratio over questions) in a system's top k; None without a result.

        Only questions with gold take part. A result is judged if any of its spans, or a twin of one, is.
        """
        run = self.runs[system].select(["question_id", "chunk_id", "rank"]).to_pandas()
        run = run[(run["rank"] <= k) & run["question_id"].isin(self.gold_count.index)]
        if run.empty:
            return None
        table = self.labelled.judgments
        judged = table.filter(table.column("relevant").is_valid()).select(["question_id", "span_id"]).to_pandas()
        if self.corpus is None:
            run, judged = run.assign(group=run["chunk_id"]), judged.rename(columns={"span_id": "group"})
        else:
            links = self.corpus.links.select(["chunk_id", "span_id"])
            links = links.filter(pc.is_in(links.column("chunk_id"), pa.array(run["chunk_id"].unique()))).to_pandas()
            spans = self.corpus.spans
            group = pd.DataFrame({"span_id": spans.column("span_id").to_pylist(),
                                  "group": spans.column("twin_group").to_pylist()})
            run = run.merge(links.merge(group, on="span_id")[["chunk_id", "group"]], on="chunk_id", how="left")
            judged = judged.merge(group, on="span_id")[["question_id", "group"]]
        seen = run.merge(judged.drop_duplicates().assign(seen=1), on=["question_id", "group"], how="left")
        known = seen.assign(seen=seen["seen"].notna()).groupby(["question_id", "rank"])["seen"].any()
        holes, results = ((~known).groupby(level="question_id").sum(), known.groupby(level="question_id").size())
        return int(holes.sum()), int(results.sum()), self.ratio(holes, results)

    @cached_property
    def _places(self) -> tuple[dict[str, str], dict[str, str]]:
        """Chunk -> the span it mostly lies in, span -> the twin that stands for it."""
        assert self.corpus is not None, "the caller has one"
        spans = self.corpus.spans
        return main_span(self.corpus.links), dict(zip(spans.column("span_id").to_pylist(),
                                                      spans.column("twin_group").to_pylist(), strict=True))

    def head(self, system: str, k: int) -> set[tuple[str, str]]:
        """(question, span or the twin that stands for it) of a system's first k results."""

        def make() -> set[tuple[str, str]]:
            run = self.runs[system]
            top = run.filter(pc.less_equal(run.column("rank"), k))
            pairs = zip(top.column("question_id").to_pylist(), top.column("chunk_id").to_pylist(), strict=True)
            if parts is None:
                return set(pairs)
            main, group = self._places
            return {(question, group[main[chunk]]) for question, chunk in pairs if chunk in main}

        parts = self.corpus
        return self.once(f"head {k}", system, make)

    def spans_of(self, chunks: list[str]) -> dict[str, list[str]]:
        """chunk_id -> the twin groups of the spans it lies in, for some chunks; empty without a corpus."""
        if self.corpus is None:
            return {}
        links = self.corpus.links.select(["chunk_id", "span_id"])
        links = links.filter(pc.is_in(links.column("chunk_id"), pa.array(chunks, pa.string())))
        group = self._places[1]
        found: dict[str, list[str]] = {}
        for row in links.to_pylist():
            found.setdefault(row["chunk_id"], []).append(group[row["span_id"]])
        return found


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun: 1 question, 2 questions."""
    return f"{count} {one if count == 1 else many or one + 's'}"
