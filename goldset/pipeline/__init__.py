"""The stages in order, walked by a runner; then people, then publication, audit and scores.

corpus → spans → questions → retrieve → pool → judge → queue (``stages``, ``runner``), people and publish
(``people``, ``manifest``), audit and recall of any set (``checks``, ``scores``), the demo's story (``demo``).
A name is imported when it is asked for: ``goldset recall`` needs none of them, and they take half a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goldset.pipeline.people import Published, open_review, publish, replay_review, review_progress, store_of
    from goldset.pipeline.runner import Artifacts, Runner, finished, plain, rebuild
    from goldset.pipeline.stages import STAGES, Context, Stage

__all__ = ["STAGES", "Artifacts", "Context", "Published", "Runner", "Stage", "finished", "open_review", "plain",
           "publish", "rebuild", "replay_review", "review_progress", "store_of"]

_MODULE = {
    **dict.fromkeys(("Published", "open_review", "publish", "replay_review", "review_progress", "store_of"), "people"),
    **dict.fromkeys(("Artifacts", "Runner", "finished", "plain", "rebuild"), "runner"),
    **dict.fromkeys(("STAGES", "Context", "Stage"), "stages"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'goldset.pipeline' has no attribute {name!r}")
    return getattr(import_module(f"goldset.pipeline.{_MODULE[name]}"), name)
