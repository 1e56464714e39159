"""One system, question by question: what recall, reciprocal rank and nDCG are means of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from goldset.errors import UsageError
from goldset.formats.sets import LabelledSet
from goldset.metrics.measures import Cut
from goldset.metrics.questions import Questions
from goldset.metrics.results import NEVER, Results


def per_question(labelled: LabelledSet, run: pa.Table, k: int, *, name: str = "run",
                 chunks: pa.Table | None = None) -> pa.Table:
    """Labelled set, run of one system, k -> one row a question, in the order of the set.

    Args:
        labelled: any set.
        run: table ``run`` of one system.
        k: cutoff.
        name: of the system, for messages.
        chunks: what the run's chunk ids mean, where it is another chunking than the set's own.

    Returns:
        question_id, gold (confirmed), delivered (of them, in the first k), recall, mrr and ndcg (each null where the
        question has no confirmed gold, or where its delivery is not known for want of evidence), first_rank (of any
        gold in the first k, null if none), returned (results in the run).

    Raises:
        UsageError: ``k`` below 1.
        DataError: none of the run's ids resolves.
    """
    if k < 1:
        raise UsageError(f"k = {k}: a cutoff is 1 or more")
    questions = Questions.of(labelled)
    whole = Results.of(name, questions, run, chunks=chunks)
    cut = Cut(whole.down_to(k), k)
    gold, first = questions.gold, cut.first_rank
    hidden = (gold == 0) | cut.unknown
    share = np.divide(cut.got, gold, out=np.zeros(len(gold)), where=gold > 0)
    inside = first <= k
    reciprocal = np.divide(1.0, first, out=np.zeros(len(gold)), where=inside & (first > 0))
    return pa.table({
        "question_id": questions.id_array,
        "gold": pa.array(gold.astype(np.int64)),
        "delivered": pa.array(cut.got.astype(np.int64)),
        "recall": pa.array(share, mask=hidden),
        "mrr": pa.array(reciprocal, mask=hidden),
        "ndcg": pa.array(cut.ndcg(), mask=hidden),
        "first_rank": pa.array(np.where(first == NEVER, 0, first), mask=~inside),
        "returned": pa.array(whole.length),
    })
