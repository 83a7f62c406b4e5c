"""Pipelines that the tests run on ranks, and what one process computes for the same batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from fixtures.models import fill, rows, weighted
from fixtures.world.context import RankContext
from impls.reference.pipeline.actions import Action, Kind, Schedule
from impls.reference.pipeline.execute import train_step
from impls.reference.pipeline.names import named
from impls.reference.pipeline.placement import one_stage_each

WIDTH = 4


class Plain(nn.Module):
    """A layer, its values kept small."""

    def __init__(self, stage: int) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WIDTH]."""
        out: Tensor = nn.functional.hardtanh(self.layer(x), -3, 3)
        return out


class Several(nn.Module):
    """Passes on what it computes, a figure of another dtype, a mask, and numbers that want no gradient."""

    def __init__(self, stage: int) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.narrow = nn.Linear(WIDTH, 1, bias=False)

    def forward(self, x: Tensor, *others: Tensor) -> Any:
        """[rows, WIDTH], [rows, 1] of 32 bits, [rows] bools, [2, rows] floats; at the end only the first."""
        figure, mask, numbers = others or (x[:, :1].float(), x[:, 0] > 0, x.detach()[:, :2].t())
        out = nn.functional.hardtanh(self.layer(x), -3, 3) * (numbers[:1].t() + 1)
        figure = nn.functional.hardtanh(figure + self.narrow(x).float(), -3, 3) * mask[:, None]
        return out, figure, ~mask, numbers.flip(0)


class Last(nn.Module):
    """`Several`, of whose outputs the first two matter."""

    def __init__(self, stage: int) -> None:
        super().__init__()
        self.inner = Several(stage)

    def forward(self, *inputs: Tensor) -> Tensor:
        """To [rows, WIDTH]."""
        out, figure, _, _ = self.inner(*inputs)
        total: Tensor = out + figure
        return total


class Sometimes(nn.Module):
    """Uses its input for rows that begin with a positive number, if there are any; a bias otherwise."""

    def __init__(self, stage: int) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.bias = nn.Parameter(torch.zeros(WIDTH))
        self.stage = stage

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WIDTH]; the first feature goes through unchanged."""
        first = x.detach()[:, :1]
        used = self.stage != 1 or bool((first > 0).any())
        found = nn.functional.hardtanh(self.layer(x) * (first > 0), -3, 3) if used else torch.zeros_like(x)
        out = found + self.bias
        return torch.cat([first, out[:, 1:]], 1)


class Never(Plain):
    """Stage 1 uses no input at all: the stage before it gets no gradient."""

    def __init__(self, stage: int) -> None:
        super().__init__(stage)
        self.stage = stage

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WIDTH]."""
        return super().forward(x.detach() if self.stage == 1 else x)


class Frozen(Plain):
    """The first stage and half of the others do not learn."""

    def __init__(self, stage: int) -> None:
        super().__init__(stage)
        self.layer.weight.requires_grad_(stage > 0)
        self.layer.bias.requires_grad_(stage % 2 == 1)


class Linear(nn.Linear):
    """Nothing but a layer: for dtypes that are not ordered."""

    def __init__(self, stage: int) -> None:
        super().__init__(WIDTH, WIDTH)


MODELS: dict[str, Callable[[int, int], nn.Module]] = {  # of stage and number of stages
    "plain": lambda stage, count: Plain(stage),
    "linear": lambda stage, count: Linear(stage),
    "several": lambda stage, count: Last(stage) if stage == count - 1 else Several(stage),
    "sometimes": lambda stage, count: Sometimes(stage),
    "never": lambda stage, count: Never(stage),
    "frozen": lambda stage, count: Frozen(stage),
    "identity": lambda stage, count: Plain(stage) if stage % 2 else nn.Identity(),
}


def stages(model: str, count: int, dtype: torch.dtype = torch.float64, *, real: bool = False) -> list[nn.Module]:
    """All stages, with the same weights wherever they are built."""
    built = [fill(MODELS[model](stage, count), stage, real=real) for stage in range(count)]
    for parameter in itertools.chain.from_iterable(module.parameters() for module in built):
        parameter.data = parameter.data.to(dtype)
    return built


def data(sizes: Sequence[int], dtype: torch.dtype = torch.float64, *, real: bool = False) -> tuple[Any, Any]:
    """Microbatches of these numbers of rows, and their targets."""
    inputs, targets = (rows(sum(sizes), seed, real=real, width=WIDTH).to(dtype) for seed in (11, 12))
    return inputs.split(list(sizes)), targets.split(list(sizes))


def loss(output: Tensor, target: Tensor) -> Tensor:
    """A mean over rows whose gradients are exact when all rows are a power of two."""
    return weighted(output, target, 1.0).real


def num_chunks(schedule: str) -> int:
    return {"interleaved_1f1b": 2, "zbv": 2, "dualpipev": 2, "dualpipe": 2}.get(schedule, 1)


def num_stages(schedule: str, world_size: int) -> int:
    """S: DualPipe's two chunks are copies."""
    return world_size * (1 if schedule == "dualpipe" else num_chunks(schedule))


def run(
    ctx: RankContext,
    schedule: str,
    model: str,
    sizes: Sequence[int],
    steps: int = 1,
    dtype: torch.dtype = torch.float64,
    real: bool = False,
) -> tuple[dict[int, list[Tensor | None]], list[Tensor]]:
    """Gradients by stage after `steps` steps without clearing, and the losses of the last."""
    table = named(schedule, ctx.world_size, len(sizes), num_chunks(schedule))
    held = {stage: stages(model, table.num_stages, dtype, real=real)[stage] for stage in table.stages_of(ctx.rank)}
    inputs, targets = data(sizes, dtype, real=real)
    losses: list[Tensor] = []
    for _ in range(steps):
        losses = train_step(list(held.values()), inputs, targets, loss, schedule, ctx.rank, ctx.world_size)
    return {stage: [p.grad for p in module.parameters()] for stage, module in held.items()}, losses


def alone(
    model: str,
    count: int,
    sizes: Sequence[int],
    steps: int = 1,
    dtype: torch.dtype = torch.float64,
    real: bool = False,
) -> tuple[dict[int, list[Tensor | None]], list[Tensor]]:
    """The same from one process: each microbatch through all stages, the loss over all rows of the batch."""
    modules = stages(model, count, dtype, real=real)
    losses: list[Tensor] = []
    for _ in range(steps):
        losses = []
        for inputs, target in zip(*data(sizes, dtype, real=real), strict=True):
            passed: Any = (inputs,)
            for module in modules:
                out = module(*passed)
                passed = out if isinstance(out, tuple) else (out,)
            losses.append(loss(passed[0], target))
            if losses[-1].requires_grad:
                (losses[-1] * (len(inputs) / sum(sizes))).backward()  # type: ignore[no-untyped-call]
    gradients = {stage: [p.grad for p in module.parameters()] for stage, module in enumerate(modules)}
    return gradients, [each.detach() for each in losses]


# -- order -------------------------------------------------------------------------------------------------------------

Event = tuple[str, int, int]  # what was computed, stage, microbatch


class Observed(nn.Module):
    """Notes each forward and each gradient, of input and of weight; a microbatch is filled with its number."""

    def __init__(self, stage: int, events: list[Event]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(WIDTH))
        self.stage, self.events = stage, events

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to the same values."""
        microbatch = int(x[0, 0])
        self.events.append(("F", self.stage, microbatch))
        weight = self.weight * 1  # a tensor of this forward alone
        weight.register_hook(lambda _: self.events.append(("W", self.stage, microbatch)))  # type: ignore[no-untyped-call]
        if x.requires_grad:
            x.register_hook(lambda _: self.events.append(("I", self.stage, microbatch)))  # type: ignore[no-untyped-call]
        return x @ weight


def events_of(action: Action) -> list[Event]:
    """What is seen of an action. The gradient of a product's first factor is handed out first, the input's then."""
    seen = []
    for part in action.parts:
        kinds = {"F": "F", "B": "IW", "I": "I", "W": "W"}[part.kind]
        seen += [(kind, part.stage, part.microbatch) for kind in kinds if kind != "I" or part.stage > 0]
    return seen


def observed(ctx: RankContext, schedule: str, num_microbatches: int) -> list[Event]:
    """What this rank computed, in order."""
    events: list[Event] = []
    table = named(schedule, ctx.world_size, num_microbatches, num_chunks(schedule))
    held = [Observed(stage, events) for stage in table.stages_of(ctx.rank)]
    inputs = [torch.full((1, WIDTH), float(number)) for number in range(num_microbatches)]
    train_step(held, inputs, inputs, loss, schedule, ctx.rank, ctx.world_size)
    return events


# -- memory ------------------------------------------------------------------------------------------------------------


class Tracked(nn.Linear):
    """Notes how many of its inputs, outputs and gradients of inputs are alive whenever it is called."""

    def __init__(self) -> None:
        super().__init__(WIDTH, WIDTH)
        self.living: dict[str, list[StorageWeakRef]] = {"inputs": [], "outputs": [], "gradients": []}
        self.most = {"inputs": 0, "under way": 0}

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WIDTH]."""
        self._note("inputs", x)
        if x.requires_grad:
            x.register_hook(lambda gradient: self._note("gradients", gradient))  # type: ignore[no-untyped-call]
        out = super().forward(x)
        self._note("outputs", out)
        return out

    def _note(self, what: str, tensor: Tensor) -> None:
        self.living[what].append(StorageWeakRef(tensor.untyped_storage()))
        alive = {name: sum(not each.expired() for each in each_of) for name, each_of in self.living.items()}
        self.most["inputs"] = max(self.most["inputs"], alive["inputs"])
        self.most["under way"] = max(self.most["under way"], alive["outputs"] + alive["gradients"])


def alive(ctx: RankContext, schedule: str, num_microbatches: int) -> tuple[int, int]:
    """The most inputs that were alive at once, and the most tensors on their way elsewhere."""
    module = Tracked()

    def inputs() -> list[Tensor]:
        return [torch.ones(1, WIDTH) for _ in range(num_microbatches)]

    entering = Entering(inputs()) if ctx.rank == 0 else inputs()
    train_step(module, entering, inputs(), loss, schedule, ctx.rank, ctx.world_size)
    return module.most["inputs"], module.most["under way"]


class Entering(list[Tensor]):
    """Microbatches of which each is forgotten when it is taken."""

    def __getitem__(self, index: Any) -> Any:
        taken = super().__getitem__(index)
        self[index] = None  # type: ignore[call-overload]
        return taken


# -- weights that several ranks hold -----------------------------------------------------------------------------------


class Head(nn.Module):
    """The output layer of an embedding; before it, nothing."""

    def __init__(self, table: nn.Parameter) -> None:
        super().__init__()
        self.table = table

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, 3 WIDTH]."""
        return x @ self.table.t()


def _table() -> nn.Parameter:
    return nn.Parameter(rows(3 * WIDTH, 5, width=WIDTH).double())


def _tied_stages(count: int, table: Callable[[], nn.Parameter]) -> list[nn.Module]:
    embedding = nn.Embedding(3 * WIDTH, WIDTH, _weight=table())
    embedding.weight = table()
    return [embedding, *stages("plain", count)[1:-1], Head(table())]


TIED_SIZES = [1, 3, 2, 2]


def _tied_data() -> tuple[list[Tensor], list[Tensor]]:
    numbers = torch.randint(3 * WIDTH, (sum(TIED_SIZES),), generator=torch.Generator().manual_seed(1))
    targets = rows(sum(TIED_SIZES), 2, width=3 * WIDTH).double()
    return list(numbers.split(TIED_SIZES)), list(targets.split(TIED_SIZES))


def tied(ctx: RankContext, schedule: str, steps: int) -> list[Tensor | None]:
    """The gradient of the table that this rank holds, if it does."""
    table = named(schedule, ctx.world_size, len(TIED_SIZES), num_chunks(schedule))
    own = table.stages_of(ctx.rank)
    weight = _table()
    held = [_tied_stages(table.num_stages, lambda: weight)[stage] for stage in own]
    ends = sorted({table.rank_of(stage, mb) for stage in (0, table.num_stages - 1) for mb in (0, len(TIED_SIZES) - 1)})
    copies = {weight: ends} if ctx.rank in ends and len(ends) > 1 and schedule != "dualpipe" else None
    for _ in range(steps):
        train_step(held, *_tied_data(), loss, schedule, ctx.rank, ctx.world_size, tied=copies)
    return [weight.grad] if ctx.rank in ends else []


def tied_alone(count: int, steps: int) -> Tensor | None:
    """The same from one process."""
    weight = _table()
    model = nn.Sequential(*_tied_stages(count, lambda: weight))
    for _ in range(steps):
        numbers, targets = _tied_data()
        loss(model(torch.cat(numbers)), torch.cat(targets)).backward()  # type: ignore[no-untyped-call]
    return weight.grad


# -- other schedules, groups, refusals ---------------------------------------------------------------------------------


def backwards_in_reverse(ctx: RankContext, sizes: Sequence[int]) -> Any:
    """GPipe as in the paper's figure: the last microbatch goes back first."""
    count = len(sizes)
    lists = [
        [Action(Kind.FORWARD, rank, mb) for mb in range(count)]
        + [Action(Kind.BACKWARD, rank, mb) for mb in reversed(range(count))]
        for rank in range(ctx.world_size)
    ]
    own = Schedule.from_actions("reversed", count, one_stage_each(ctx.world_size), lists)
    module = stages("plain", ctx.world_size)[ctx.rank]
    losses = train_step(module, *data(sizes), loss, own, ctx.rank, ctx.world_size)
    return {ctx.rank: [p.grad for p in module.parameters()]}, losses


def in_groups(ctx: RankContext, sizes: Sequence[int]) -> dict[int, list[Tensor | None]]:
    """Ranks 0 and 2 are one pipeline, 1 and 3 another."""
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    place = ctx.rank // 2
    module = stages("plain", 2)[place]
    train_step(module, *data(sizes), loss, "1f1b", group=groups[ctx.rank % 2])
    return {place: [p.grad for p in module.parameters()]}


def refused(ctx: RankContext, what: str) -> None:
    """A call that is refused on both ranks, or on the rank that notices."""
    module: Any = Plain(0)
    inputs, targets = data([1] * 6, torch.float32)
    options: dict[str, Any] = {}
    if what == "two modules":
        module = [Plain(0), Plain(1)]
    elif what == "unknown name":
        options = {"schedule": "1f1c"}
    elif what == "few microbatches":
        module, options = [Plain(0), Plain(1)], {"schedule": "zbv"}
        inputs, targets = inputs[:2], targets[:2]
    elif what == "another size":
        options = {"schedule": named("1f1b", 2, 4)}
    elif what == "different lengths":
        targets = targets[:-1]
    elif what == "list of numbers":
        module.forward = lambda x: (x, 3)
    elif what == "missing forward":
        lists = [[], [Action(Kind.FORWARD, 1, 0)]]
        options = {"schedule": Schedule.from_actions("half", 6, one_stage_each(2), lists)}
    elif what == "tied elsewhere":
        options = {"tied": {module.layer.weight: [2, 3]}}
    chosen = {"schedule": "1f1b", **options}
    loss_fn = (lambda out, _: out[0, :2]) if what == "vector loss" else loss
    train_step(module, inputs, targets, loss_fn, rank=ctx.rank, world_size=ctx.world_size, **chosen)
