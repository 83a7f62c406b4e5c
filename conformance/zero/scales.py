"""Weighs one implementation under one ZeRO stage on real ranks, and turns what is wrong into a verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from hypothesis import strategies as st

from conformance.checks import Judge, Subject, failure_text, verdict_of
from conformance.judge import Broken
from conformance.verdict import Verdict, Witness
from conformance.zero import memory_programs as programs
from conformance.zero.expected_memory import ANY_RULE, SHARDED, Model, Widths, optimizer_width
from conformance.zero.held_memory import Finding, Held
from fixtures.world.outcome import Ending
from impls.layered import LINEAR_ONLY
from impls.words import number_of

Shape = tuple[int, ...]
Layers = tuple[tuple[Shape, ...], ...]

MOMENT = {  # stage -> when its formula holds
    "ddp": programs.AFTER_STEP,
    "1": programs.AFTER_STEP,
    "2": programs.AFTER_BACKWARD,
    "3": programs.AFTER_STEP,
}
PROVIDES = {"ddp": "DataParallel", "1": "ShardedOptimizer", "2": "Zero2Optimizer", "3": "fully_shard"}
ALONE: Layers = (((23, 17), (17,)), ((5,), (31, 9)))  # weighed on one rank, where nothing can be sharded
LARGE: Shape = (37, 19)  # in every drawn model, so that padding is no excuse
ITS_OWN = "its own rule"
KEPT_GRADIENT = "the gradient that its inner optimizer steps from stays until the next step, 4 bytes per parameter more"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model under an update rule on so many ranks."""

    world_size: int
    layers: Layers
    rule: str

    def __repr__(self) -> str:
        layers = [[list(shape) for shape in layer] for layer in self.layers]
        return f"<{number_of(self.world_size, 'rank')}, layers with parameters {layers}, {self.rule}>"


@st.composite
def cases(draw: st.DrawFn, *sizes: int, rules: Sequence[str], odd: bool = False) -> Case:
    """One to four layers with few or many elements; `odd` ones have some without dimensions, or without elements."""
    world_size = draw(st.sampled_from(sizes))
    few = st.integers(1, world_size + 1).map(lambda numel: (numel,))
    dims = st.lists(st.integers(1, 12), min_size=1, max_size=3).map(tuple)
    shapes = st.one_of(few, dims, *([st.just(()), st.just((0, 3))] if odd else []))
    layers = draw(st.lists(st.lists(shapes, min_size=1, max_size=3), max_size=3))
    layers.insert(draw(st.integers(0, len(layers))), [LARGE])
    return Case(world_size=world_size, layers=tuple(map(tuple, layers)), rule=draw(st.sampled_from(rules)))


class Scales:
    """`subject` under `stage`, in parameters of one dtype.

    Full sharding goes by units, and which modules are units is its author's choice. So that nobody's choice is put to
    the test, the model is one of plain modules with parameters of their own; of who leaves all of those whole, the
    model is one of linear layers (`choice` says so), and nothing in it may stay whole.
    """

    def __init__(
        self,
        subject: Subject,
        judge: Judge,
        stage: str,
        dtype: torch.dtype = torch.float32,
        *,
        may_keep_gradient: bool = False,
    ) -> None:
        """`may_keep_gradient`: a gradient of the inner optimizer's own, which stays, counts as its state."""
        self.stage = stage
        self._subject = subject
        self._judge = judge
        self.dtype = dtype
        self._widths: dict[str, Widths] = {}
        self._may_keep_gradient = may_keep_gradient
        self.choice = ""  # what was seen of the author's choice
        self._of_linears = False
        self._alone: dict[str, dict[str, Any]] = {}  # by rule, the report of a rank without others

    def rules(self, *wanted: str) -> Sequence[str]:
        """The update rules to ask for: what has a rule of its own is asked for no other, nor given its options."""
        return ("adam",) if self._has_own_rule() else wanted

    def model(self, layers: Layers) -> Model:
        """The parameters of a chain of layers, as they were weighed."""
        shapes = [shape for layer in layers for shape in layer]
        weights = [programs.weight_shape(shape) for shape in shapes] if self._of_linears else shapes
        return Model(shapes=weights, itemsize=self.dtype.itemsize)

    def weigh(self, case: Case, *moments: str) -> list[list[Held]]:
        """What every rank holds at each of the moments, in one run."""
        reports = self._run(case, self._of_linears)
        if self.stage == "3" and case.world_size > 1 and not self._of_linears and self._are_whole(case, reports):
            of_linears = self._run(case, linear=True)
            if not self._are_whole(case, of_linears):
                self._note_choice_of_units()
                reports = of_linears
        return [[_held(report, moment) for report in reports] for moment in moments]

    def _note_choice_of_units(self) -> None:
        self._of_linears = True
        self.choice = "its units are linear layers, as its author chose: what lies in other modules stays whole"

    def _are_whole(self, case: Case, reports: Sequence[dict[str, Any]]) -> bool:
        """Whether every rank has all parameters at rest."""
        whole = self.model(case.layers).numel * self.dtype.itemsize
        return all(_held(report, programs.AFTER_STEP).of("parameters") >= whole for report in reports)

    def widths(self, rule: str) -> Widths:
        """Bytes per parameter, found on one rank alone, which has all of everything whatever the stage."""
        if rule not in self._widths:
            held, model = _held(self._weighed_alone(rule), MOMENT[self.stage]), self.model(ALONE)
            optimizer_bytes = held.of("optimizer") if self.stage == "ddp" else self._left_for_optimizer(held, model)
            its_rule = ANY_RULE if self._has_own_rule() else rule
            found = optimizer_width(its_rule, optimizer_bytes, model)
            kept = optimizer_width(its_rule, optimizer_bytes, model, with_gradient=True) if found is None else None
            if kept is not None and self._may_keep_gradient:
                found = kept
                self.choice = KEPT_GRADIENT
            if found is None:
                per_parameter = optimizer_bytes / model.numel
                wrong = (
                    f"alone on one rank it has {per_parameter:.2f} bytes per parameter beside parameters and gradients"
                )
                beside = f": {KEPT_GRADIENT}" if kept is not None else ""
                finding = Finding(
                    wrong=f"{wrong}, which is no state of {rule}, with or without an FP32 master copy{beside}",
                    expected="parameters, gradients and optimizer state",
                    observed=f"{held.states:,}",
                )
                self.broken(finding, [held])
            size, (width, has_counters) = model.itemsize, found
            self._widths[rule] = Widths(parameters=size, gradients=size, optimizer=width, has_counters=has_counters)
        return self._widths[rule]

    def _has_own_rule(self) -> bool:
        return bool(self._weighed_alone("adam")["chooses_optimizer"])

    def _weighed_alone(self, rule: str) -> dict[str, Any]:
        if rule not in self._alone:
            (self._alone[rule],) = self._run(Case(world_size=1, layers=ALONE, rule=rule), self._of_linears)
        return self._alone[rule]

    def _left_for_optimizer(self, held: Held, model: Model) -> int:
        """What neither parameters nor gradients explain; gradients may be among the optimizer's tensors, or be gone."""
        gradients = model.itemsize * model.numel if "gradients" in SHARDED[self.stage] else held.of("gradients")
        return held.states - model.itemsize * model.numel - gradients

    def broken(self, finding: Finding, ranks: Sequence[Held], case: Case | None = None) -> NoReturn:
        """The claim is violated; the storages of the fullest rank are listed."""
        fullest = max(range(len(ranks)), key=lambda rank: ranks[rank].states)
        where = f"{case}: " if case is not None else ""
        self._judge.violated(
            f"{where}{finding.wrong}. Rank {fullest} holds {ranks[fullest].describe()}",
            expected=finding.expected,
            observed=finding.observed,
            witness=Witness.MEMORY,
        )

    def _run(self, case: Case, linear: bool) -> list[dict[str, Any]]:
        outcomes = self._subject.observe(
            programs.held, case.world_size, self.stage, case.layers, rule=case.rule, dtype=self.dtype, linear=linear
        )
        if verdict_of(outcomes) is Verdict.NOT_PROVIDED and not linear and LINEAR_ONLY in failure_text(outcomes):
            self._note_choice_of_units()
            return self._run(case, linear=True)
        raised = all(outcome.ending is Ending.RAISED for outcome in outcomes)
        if raised and self.dtype != torch.float32:
            dtype = str(self.dtype).removeprefix("torch.")
            self._judge.not_provided(f"it takes no parameters in {dtype}: {failure_text(outcomes)}")
        if (verdict := verdict_of(outcomes)) is not None:
            raise Broken(verdict, failure_text(outcomes), outcomes=outcomes)
        return list(outcomes.values)


def _held(report: dict[str, Any], moment: str) -> Held:
    return Held(by_category=report[moment]["bytes"], largest=report[moment]["largest"])
