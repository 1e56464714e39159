"""The judge of a configuration reads a probe before people do."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from goldset.audit import Context, Drawn
from goldset.config import Config
from goldset.errors import UsageError
from goldset.pipeline.probe import Judges
from goldset.pipeline.runner import Say, silent
from goldset.store import Workspace


def judge_of(config: Config, *, say: Say = silent, quiet: bool = False) -> Judges:
    """A configuration -> its judge for probes, with the workspace's verdicts, caches and budget.

    What the judge has said before of a pair of the same texts is not asked again.
    """

    def judged(context: Context, pairs: Sequence[Drawn]) -> tuple[str, dict[tuple[str, str], bool | None]]:
        from goldset.judges import VerdictStore, build_judge, independence, judge_candidates
        from goldset.stats.votes import settle

        questions, corpus = context.labelled.questions, context.corpus
        if questions is None or corpus is None:
            raise UsageError("--probe shows people questions and passages: give --questions FILE and --corpus FILE")
        workspace = Workspace(config.workspace).open()
        store = VerdictStore(workspace.root / "verdicts.sqlite")
        judge = build_judge(config=config, cache=workspace.cache("embeddings").parent, store=store)
        table = pa.table({"question_id": pa.array([row.question_id for row in pairs], pa.string()),
                          "span_id": pa.array([row.span_id for row in pairs], pa.string())})
        verdicts = judge_candidates(candidates=table, questions=questions, spans=corpus.spans, judge=judge,
                                    store=store, budget=config.judge.budget, quiet=quiet)
        said = {pair: settled.relevant for pair, settled in settle(verdicts).items()}
        shared = independence(config.judge.family, {system: "+".join(sorted(context.family(system)))
                                                    for system in context.runs})
        for line in shared:
            say(f"probe: {line}")
        name = f"The judge '{config.judge.kind}' ({'; '.join([f'family {config.judge.family}', *shared])})"
        return name, {row.pair: said.get(row.pair) for row in pairs}

    return judged
