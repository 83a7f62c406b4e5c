"""The claims of the sample record: every truth, a few needs and mutants, one fact under two ids."""

from __future__ import annotations

from conformance.verdict import Claim, Text, Truth

NO_TEXT = Text(en="", fa="")


def claim(
    name: str,
    en: str,
    fa: str,
    truth: Truth = Truth.EXACT,
    *,
    statement: Text | None = None,
    formula: str = "",
    needs: tuple[str, ...] = (),
    same_as: str | None = None,
    killed_by: tuple[str, ...] = (),
    line: int | None = 62,
    hint: Text = NO_TEXT,
) -> Claim:
    return Claim(
        id=name,
        section=name.split(".")[0],
        text=Text(en=en, fa=fa),
        truth=truth,
        statement=statement or Text(en=en, fa=fa),
        source="Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms",
        line=line,
        formula=formula,
        needs=needs,
        same_as=same_as,
        hint=hint,
        killed_by=killed_by,
    )


RING_HINT = Text(
    en="Every rank sends more than its share. Usual causes: the whole tensor travels at each step instead of one "
    "chunk, or the tensor is padded to a multiple of N. Look at the size of the first message.",
    fa="هر رتبه بیش از سهم خود می‌فرستد. علت‌های رایج: در هر گام به‌جای یک تکه کل تنسور فرستاده می‌شود، "
    "یا تنسور تا مضربی از N پر می‌شود. اندازهٔ نخستین پیام را ببینید.",
)

CLAIMS = (
    claim(
        "collectives.values.allreduce",
        "All-reduce gives every rank the sum of all ranks' tensors.",
        "all-reduce مجموع تنسورهای همهٔ رتبه‌ها را به هر رتبه می‌دهد.",
        killed_by=("ring-wrong-on-odd-n", "ring-few-elements"),
    ),
    claim(
        "collectives.agreement",
        "All ranks hold the same bits afterwards.",
        "در پایان همهٔ رتبه‌ها بیت‌های یکسان دارند.",
        needs=("collectives.values.allreduce",),
        killed_by=("last-bit",),
    ),
    claim(
        "collectives.ring.bytes",
        "A ring all-reduce sends 2T(N-1)/N bytes per rank.",
        "all-reduce حلقه‌ای از هر رتبه 2T(N-1)/N بایت می‌فرستد.",
        formula="2T(N-1)/N",
        statement=Text(
            en="Each rank sends exactly 2T(N-1)/N bytes when N divides the number of elements; otherwise within "
            "2(N-1) of the largest chunks, and the sum over ranks is 2T(N-1).",
            fa="هر رتبه دقیقاً 2T(N-1)/N بایت می‌فرستد اگر تعداد عنصرها بر N بخش‌پذیر باشد؛ وگرنه "
            "در حد 2(N-1) تکهٔ بزرگ، و مجموع همهٔ رتبه‌ها 2T(N-1) است.",
        ),
        needs=("collectives.values.allreduce",),
        killed_by=("whole-tensor-ring", "padded-ring", "reduce-through-rank-0"),
        hint=RING_HINT,
    ),
    claim(
        "collectives.ring.steps",
        "A ring all-reduce takes 2(N-1) steps.",
        "all-reduce حلقه‌ای 2(N-1) گام دارد.",
        formula="2(N-1)",
        killed_by=("gather-everything",),
    ),
    claim(
        "collectives.tree.bytes",
        "A tree all-reduce sends T log2 N bytes per rank.",
        "all-reduce درختی از هر رتبه T log2 N بایت می‌فرستد.",
        Truth.CONDITIONAL,
        statement=Text(
            en="The busiest rank of a binomial reduce and broadcast sends T ceil(log2 N); the mean over "
            "ranks is 2T(N-1)/N.",
            fa="پرکارترین رتبه در کاهش و پخش دوجمله‌ای T ceil(log2 N) می‌فرستد؛ میانگین رتبه‌ها 2T(N-1)/N است.",
        ),
        formula="T ceil(log2 N)",
        killed_by=("flat-tree",),
    ),
    claim("collectives.ring.use", "Rings are for large tensors.", "حلقه برای تنسورهای بزرگ است.", Truth.CONDITIONAL),
    claim(
        "loop.same-init",
        "manual_seed(SEED) gives equal initial parameters.",
        "manual_seed(SEED) پارامترهای آغازین یکسان می‌دهد.",
        line=71,
        killed_by=("seed-by-rank",),
    ),
    claim(
        "loop.construct-broadcast",
        "Constructing the wrapper broadcasts rank 0's parameters.",
        "ساختن پوشش، پارامترهای رتبهٔ 0 را پخش می‌کند.",
        line=72,
        killed_by=("no-broadcast", "buffers-not-broadcast"),
    ),
    claim(
        "loop.mean",
        "Gradients are summed, then divided by the world size.",
        "گرادیان‌ها جمع و سپس بر اندازهٔ جهان تقسیم می‌شوند.",
        line=79,
        killed_by=("sum-without-divide", "divide-by-2", "divide-twice"),
    ),
    claim("loop.step", "Ranks stay together.", "رتبه‌ها کنار هم می‌مانند.", needs=("loop.mean",), line=81),
    claim(
        "strategies.ddp.link",
        "Communication overlaps with backward.",
        "ارتباط با گذر رو به عقب همپوشانی دارد.",
        Truth.CONDITIONAL,
        line=12,
    ),
    claim(
        "strategies.tensor.traffic",
        "Tensor parallelism all-reduces after each matmul.",
        "تنسور موازی پس از هر matmul یک all-reduce دارد.",
        Truth.CORRECTED,
        statement=Text(
            en="One all-reduce forward and one backward for each column and row pair; a lone row-parallel "
            "matmul needs one.",
            fa="یک all-reduce در گذر رو به جلو و یکی در گذر رو به عقب برای هر جفت ستون و سطر.",
        ),
        line=11,
    ),
    claim("trouble.missing-broadcast", "Ranks diverge from step one.", "رتبه‌ها از گام اول واگرا می‌شوند.", line=118),
    claim("trouble.pipeline-send-send", "The pipeline locks.", "پایپ‌لاین قفل می‌شود.", Truth.CONDITIONAL, line=141),
    claim("faq.mean-not-sum", "A tuned rate carries over.", "نرخ تنظیم‌شده منتقل می‌شود.", same_as="loop.mean", line=155),
    claim("faq.dualpipe-under-1000", "Excessive below 1000.", "زیر 1000 زیاده‌روی است.", Truth.OPINION, line=163),
    claim("pipeline.gpipe.bubble", "(N-1)/(M+N-1)", "(N-1)/(M+N-1)", line=54),
    claim("memory.adam-states", "70B x 4 x 2 = 560 GB", "70B x 4 x 2 = 560 GB", line=42),
)
