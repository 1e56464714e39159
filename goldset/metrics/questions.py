"""A labelled set -> arrays over its questions: who counts, with what weight, in which cluster, with which gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from goldset.errors import DataError, nearest
from goldset.formats.sets import LabelledSet
from goldset.stats.intervals import Floats

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
ALL = "all"
DERIVED = ("week", "head_tail")
"""Slices that are made from columns: the Monday of the week first asked in, and how often the question was asked."""
_CERTAIN = 1 + 1e-9


@dataclass(frozen=True)
class Questions:
    """All questions of a set, in one order; every array has one entry a question unless said otherwise."""

    labelled: LabelledSet
    ids: list[str]

    @classmethod
    def of(cls, labelled: LabelledSet) -> Questions:
        """Questions of the table, then those that only judgments name."""
        ids = [] if labelled.questions is None else labelled.questions.column("question_id").to_pylist()
        known = set(ids)
        judged = pc.unique(labelled.judgments.column("question_id")).to_pylist()
        return cls(labelled, ids + [identity for identity in judged if identity not in known])

    @cached_property
    def id_array(self) -> pa.Array:
        """Ids as an Arrow array."""
        return pa.array(self.ids, pa.string())

    def index(self, column: Any) -> Ints:
        """Question ids -> places in ``ids``; -1 where the set does not have the question."""
        return index_in(column, self.id_array)

    def _column(self, name: str, default: Any) -> list[Any]:
        table = self.labelled.questions
        found = [] if table is None else table.column(name).to_pylist()
        return found + [default] * (len(self.ids) - len(found))

    @cached_property
    def weighting(self) -> str:
        """``events`` where a question counts as often as it was drawn, else ``none``."""
        drawn = self.labelled.manifest.get("unit") == "events" or bool(np.any(self.draws != 1))
        return "events" if drawn else "none"

    @cached_property
    def draws(self) -> Floats:
        """How often each question counts."""
        if self.labelled.manifest.get("unit") == "distinct":
            return np.ones(len(self.ids))
        return np.array(self._column("draws", 1), np.float64)

    @cached_property
    def traffic(self) -> Floats | None:
        """How often each question was asked, where distinct questions were drawn and so count once each; else None."""
        if self.labelled.manifest.get("unit") != "distinct":
            return None
        return np.array(self._column("traffic_weight", 0.0), np.float64)

    @cached_property
    def cluster(self) -> Ints:
        """Number of the near-duplicate cluster, the unit of variance; a question without one is its own."""
        names = self._column("cluster_id", None)
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(f"c{name}" if name is not None else f"q{identity}", len(numbers))
                         for name, identity in zip(names, self.ids, strict=True)], np.int64)

    @cached_property
    def is_labelled(self) -> Mask:
        """Whether people labelled the question. In a closed published set all were; else a judgment must be there."""
        if self.labelled.kind == "published" and not self.labelled.manifest.get("partial"):
            return np.ones(len(self.ids), np.bool_)
        decided = self.labelled.judgments.filter(pc.is_valid(self.labelled.judgments.column("relevant")))
        mask = np.zeros(len(self.ids), np.bool_)
        mask[self.index(decided.column("question_id"))] = True
        return mask

    @cached_property
    def gold_owner(self) -> Ints:
        """Place of the question of each gold row."""
        return self.index(self.labelled.gold.column("question_id"))

    @cached_property
    def gold_weight(self) -> Floats:
        """Weight of each gold row: 1 / inclusion probability."""
        weight: Floats = self.labelled.gold.column("weight").to_numpy().astype(np.float64)
        return weight

    @cached_property
    def deep(self) -> Mask:
        """Gold rows that the deep probe found: outside the pool, whatever their weight."""
        found = self.labelled.from_deep_probe
        if found is None:
            return np.zeros(len(self.labelled.gold), np.bool_)
        mask: Mask = found.to_numpy(zero_copy_only=False)
        return mask

    @cached_property
    def confirmed(self) -> Mask:
        """Gold rows of the pool that were read with certainty."""
        mask: Mask = (self.gold_weight <= _CERTAIN) & ~self.deep
        return mask

    @cached_property
    def sampled(self) -> Mask:
        """Gold rows of the pool that are finds from the sample of rejections."""
        mask: Mask = ~self.confirmed & ~self.deep
        return mask

    @cached_property
    def unresolved(self) -> Mask:
        """Gold rows whose passage is not among the set's; none where the set says nothing of its passages."""
        ids = self.labelled.passage_ids
        if ids is None:
            return np.zeros(len(self.labelled.gold), np.bool_)
        mask: Mask = index_in(self.labelled.gold.column("span_id"), ids) < 0
        return mask

    @cached_property
    def gold(self) -> Floats:
        """Confirmed gold of each question."""
        return np.bincount(self.gold_owner[self.confirmed], minlength=len(self.ids)).astype(np.float64)

    @cached_property
    def found(self) -> Floats:
        """Weighted finds of each question."""
        rest = self.sampled
        return np.bincount(self.gold_owner[rest], self.gold_weight[rest], len(self.ids)).astype(np.float64)

    @cached_property
    def in_full(self) -> Mask:
        """Questions whose pool was read whole."""
        whole = set(self.labelled.manifest.get("read_in_full") or ())
        return np.array([identity in whole for identity in self.ids], np.bool_)

    @cached_property
    def sample(self) -> tuple[int, int]:
        """(rejections of the judge, those of them that people read); (0, 0) where nothing was sampled."""
        told = self.labelled.manifest.get("sampling") or {}
        return int(told.get("rejections") or 0), int(told.get("sampled") or 0)

    @cached_property
    def deep_probe(self) -> dict[str, Any] | None:
        """What the manifest says of the deep probe; None where none was made."""
        return self.labelled.manifest.get("deep") or None

    def slices(self, by: Sequence[str]) -> list[tuple[str, Mask]]:
        """(``all``, everything) and, for each column in ``by``, (``column=value``, its questions)."""
        parts: list[tuple[str, Mask]] = [(ALL, np.ones(len(self.ids), np.bool_))]
        for name in by:
            values = np.array([_shown(value) for value in self._values(name)], dtype=object)
            parts += [(f"{name}={value}", values == value) for value in sorted(set(values))]
        return parts


    def _values(self, name: str) -> list[Any]:
        """What a column, or one of DERIVED, says of each question."""
        if name == "week":
            return [None if at is None else _monday(at, self._zone) for at in self._column("asked_first", None)]
        if name == "head_tail":
            return _head_tail(self._column("times_asked", None))
        table = self.labelled.questions
        plain = [] if table is None else [field.name for field in table.schema
                                          if not (pa.types.is_list(field.type) or pa.types.is_floating(field.type))]
        if name not in plain:
            raise DataError(f"--by {name}: the questions of {self.labelled.label} have no such column; "
                            + (nearest(name, [*plain, *DERIVED]) if plain else "they have no table"))
        return self._column(name, None)

    @cached_property
    def _zone(self) -> ZoneInfo:
        """The project's time zone, UTC where the set names none."""
        project = (self.labelled.manifest.get("config") or {}).get("project") or {}
        return ZoneInfo(project.get("timezone") or "UTC")


def _monday(at: datetime, zone: ZoneInfo) -> str:
    day = at.astimezone(zone).date()
    return (day - timedelta(days=day.weekday())).isoformat()


def _head_tail(asked: list[int | None]) -> list[str | None]:
    """``head``: the most asked questions that together carry half of what was asked; ``tail``: the rest.

    Questions asked equally often stay together, in the head if the half is reached among them.
    """
    known = sorted((times for times in asked if times is not None), reverse=True)
    total, run, least = sum(known), 0, 0
    for times in known:
        if 2 * run >= total:
            break
        run, least = run + times, times
    return [None if times is None else "head" if times >= least else "tail" for times in asked]


def _shown(value: Any) -> str:
    return "(none)" if value is None else value.isoformat() if hasattr(value, "isoformat") else str(value)


def index_in(column: Any, values: pa.Array) -> Ints:
    """Place of each entry of a column in ``values``, -1 where it is not there."""
    found = pc.fill_null(pc.index_in(column, value_set=values), -1)
    places: Ints = found.to_numpy().astype(np.int64)
    return places
