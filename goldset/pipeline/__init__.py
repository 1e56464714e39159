"""The stages in order, walked by a runner; then people, then publication, audit and scores.

corpus → spans → questions → retrieve → pool → judge → queue (``stages``, ``runner``), people and publish
(``people``, ``manifest``), audit and recall of any set (``checks``, ``scores``), the demo's story (``demo``).
"""

from goldset.pipeline.people import Published, open_review, publish, replay_review, review_progress, store_of
from goldset.pipeline.runner import Artifacts, Runner, finished, plain, rebuild
from goldset.pipeline.stages import STAGES, Context, Stage

__all__ = ["STAGES", "Artifacts", "Context", "Published", "Runner", "Stage", "finished", "open_review", "plain",
           "publish", "rebuild", "replay_review", "review_progress", "store_of"]
