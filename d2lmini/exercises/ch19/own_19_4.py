r"""Four bits, in groups of 32

Four bits are 16 codes, from 0 to 15. For that to be enough, a row is cut into **groups of 32 neighbours**, and each
group has two numbers of its own: its least weight m and its step d. A weight is nearly **m + d times its code**. It is
the format Q4_1, in which most weights of chapter 19's model come.
"""

import torch

from d2lmini.exercises.engine import Code, Exercise, Mutant


def quantised(row):
    """A row of weights in codes of four bits, in groups of 32.

    Args:
        row: (n,), floating-point; n is a multiple of 32.

    Returns:
        (codes, d, m): codes of type uint8, (n / 32, 32); steps and least weights, (n / 32,), of the type of the row.
        A group whose weights are all equal has the step 0 and codes 0.
    """
    ### BEGIN SOLUTION
    groups = row.reshape(-1, 32)  # (n / 32, 32)
    m, most = groups.amin(dim=1), groups.amax(dim=1)  # (n / 32,)
    d = (most - m) / 15
    divisor = torch.where(d > 0, d, torch.ones_like(d))
    codes = torch.round((groups - m[:, None]) / divisor[:, None]).to(torch.uint8)
    return codes, d, m
    ### END SOLUTION


def group_by_group(row):
    codes, steps, least = [], [], []
    for group in row.split(32):
        low, high = group.min(), group.max()
        steps.append((high - low) / 15)
        least.append(low)
        shares = (group - low) / (high - low) if high > low else torch.zeros_like(group)
        codes.append((15 * shares + 0.5).floor().byte())
    return torch.stack(codes), torch.stack(steps), torch.stack(least)


def nearest_level(row):
    groups = row.unflatten(0, (len(row) // 32, 32))
    m = groups.min(1).values
    d = (groups.max(1).values - m) / 15
    levels = m[:, None] + d[:, None] * torch.arange(16, device=row.device)  # (n / 32, 16)
    return (groups[:, :, None] - levels[:, None]).abs().argmin(-1).to(torch.uint8), d, m


def symmetric(row):
    groups = row.reshape(-1, 32)
    d = groups.abs().amax(1) / 7.5
    codes = torch.round(groups / d[:, None].clamp(min=1e-30) + 7.5).clamp(0, 15)
    return codes.to(torch.uint8), d, -7.5 * d


def one_group(row):
    d = (row.max() - row.min()) / 15
    codes = torch.round((row - row.min()) / d).to(torch.uint8).view(-1, 32)
    return codes, d.expand(len(codes)).clone(), row.min().expand(len(codes)).clone()


def _row(t, groups):
    """Weights that lie clearly nearer to one level than to the next: m, d, and a group of each sign."""
    codes = t.integers(0, 16, groups, 32).double()
    offsets = t.rand(groups, 32, low=-0.4, high=0.4, dtype=torch.float64)
    ends = t.rand(groups, 32).argsort(1)[:, :2]
    for end, (code, offset) in enumerate(((0.0, 0.0), (15.0, 0.0))):
        codes.scatter_(1, ends[:, end, None], code)
        offsets.scatter_(1, ends[:, end, None], offset)
    offsets = torch.where(codes == 0, offsets.abs(), torch.where(codes == 15, -offsets.abs(), offsets))
    d = t.rand(groups, 1, low=0.05, high=0.2, dtype=torch.float64)
    m = t.rand(groups, 1, low=-1.5, high=-0.5, dtype=torch.float64) * d.new_tensor(15.0) * d
    m[0], m[1] = 0.7, -20 * d[1]  # all positive, all negative
    return (m + d * (codes + offsets)).float().flatten()


def _reference(row):
    groups = row.cpu().double().view(-1, 32)
    codes = torch.empty(groups.shape, dtype=torch.uint8)
    d, m = torch.empty(2, len(groups), dtype=torch.float64)
    for g, group in enumerate(groups.tolist()):
        m[g], d[g] = min(group), (max(group) - min(group)) / 15
        codes[g] = torch.tensor([round((w - m[g].item()) / d[g].item()) if d[g] else 0 for w in group])
    return codes, d, m


def verify(t, answer):
    count = t.random.randrange(4, 8)
    equal = _row(t, count)
    equal[32:64] = 0.3
    equal[96:128] = 0.0
    cases = (
        (_row(t, count), f"{count} groups"),
        (1e-8 * _row(t, 3), "tiny weights"),
        (1e8 * _row(t, 3), "huge weights"),
        (_row(t, 2)[:32], "one group"),
        (equal, "groups of equal weights"),
    )
    for row, case in cases:
        want = _reference(row)
        got = t.unpack(t.call(answer, row), "codes", "d", "m")
        close = (1e-4, 1e-6 * row.abs().max().item())
        t.same(got[0], want[0], f"codes of {case}")
        t.same(got[1], want[1], f"d of {case}", tolerance=close)
        t.same(got[2], want[2], f"m of {case}", tolerance=close)


MUTANTS_A = [
    Mutant("16", ("/ 15", "/ 16"), "the range is divided by 16: 16 levels have 15 steps between them"),
    Mutant("255", ("/ 15", "/ 255"), "the range is divided by 255: four bits are 16 codes"),
    Mutant("7", ("/ 15", "/ 7"), "the range is divided by 7: there are 16 codes, 0 to 15"),
    Mutant("truncated", ("torch.round((groups - m[:, None]) / divisor[:, None])",
        "((groups - m[:, None]) / divisor[:, None])"), "the codes are cut off (`.to(torch.uint8)` alone does so): "
        "round first"),
    Mutant("rounded-up", ("torch.round((groups", "torch.ceil((groups"), "the codes are rounded up: take the nearest"),
    Mutant("strided", ("row.reshape(-1, 32)", "row.reshape(32, -1).mT"), "a group takes every n-th weight: it is 32 "
        "*neighbours*"),
    Mutant("one-group", one_group, "all groups have the same d and m: each has its own"),
    Mutant("symmetric", symmetric, "the levels are symmetric about 0: they start at the group's least weight m"),
    Mutant("from-zero", ("m, most = groups.amin(dim=1), groups.amax(dim=1)",
        "m, most = groups.amin(dim=1).clamp(max=0), groups.amax(dim=1)"), "m is at most 0: it is the group's least "
        "weight, also where all are positive"),
    Mutant("to-zero", ("m, most = groups.amin(dim=1), groups.amax(dim=1)",
        "m, most = groups.amin(dim=1), groups.amax(dim=1).clamp(min=0)"), "the range ends at 0 at the earliest: it "
        "ends at the group's largest weight, also where all are negative"),
    Mutant("absolute", ("groups.amax(dim=1)  # (n / 32,)", "groups.abs().amax(dim=1)"), "the range ends at the largest "
        "*absolute value*: it ends at the largest weight"),
    Mutant("not-moved", ("(groups - m[:, None])", "(groups)"), "m is not taken away: the least weight has the code 0"),
    Mutant("largest-first", ("torch.round((groups - m[:, None])", "torch.round((most[:, None] - groups)"),
        "the codes count down from the largest weight: they count up from the least"),
    Mutant("matrix-minimum", ("groups.amin(dim=1), groups.amax(dim=1)", "groups.amin().expand(len(groups)), "
        "groups.amax(dim=1)"), "m is the least weight of the whole row: each group has its own"),
    Mutant("small-number", ("torch.where(d > 0, d, torch.ones_like(d))", "(d + 1e-8)"), "a small number is added to "
        "the step: with tiny weights it is not small"),
    Mutant("clamped", ("torch.where(d > 0, d, torch.ones_like(d))", "d.clamp(min=1e-6)"), "the step does not fall "
        "below a small number: the codes of tiny weights become wrong"),
    Mutant("step-one", ("return codes, d, m", "return codes, divisor, m"), "a group of equal weights has the step 1 "
        "here: it is 0, whatever you divide by"),
    Mutant("range", ("return codes, d, m", "return codes, 15 * d, m"), "this is the range of a group: a step is a 15th "
        "of it"),
    Mutant("inverse", ("return codes, d, m", "return codes, torch.where(d > 0, 1 / d, d), m"), "this is one over the "
        "step: a weight is m + d times its code"),
    Mutant("middle", ("return codes, d, m", "return codes, d, (m + most) / 2"), "m is the middle of a group: it is its "
        "least weight"),
    Mutant("most", ("return codes, d, m", "return codes, d, most"), "this is the largest weight of a group: m is the "
        "least"),
    Mutant("minus-m", ("return codes, d, m", "return codes, d, -m"), "the sign of m is turned: a weight is m *plus* d "
        "times its code"),
    Mutant("dtype", (".to(torch.uint8)", "")),
    Mutant("shape", ("return codes, d, m", "return codes.flatten(), d, m")),
]  # fmt: skip


def unpacked(packed, d, m):
    """The weights of a row in the format Q4_1.

    Args:
        packed: uint8 (G, 16), for each group the 32 codes, two in a byte: byte j has the code of the group's weight j
            in its four low bits and that of weight j + 16 in its four high bits.
        d, m: float16 (G,), step and least weight of each group.

    Returns:
        float32 (32 G,): all weights in their order, m + d times code, computed in float32.
    """
    ### BEGIN SOLUTION
    low, high = packed & 15, packed >> 4  # (G, 16)
    codes = torch.cat([low, high], dim=1)  # (G, 32)
    weights = m.float()[:, None] + d.float()[:, None] * codes
    return weights.flatten()
    ### END SOLUTION


def with_remainders(packed, d, m):
    whole = packed.int()
    codes = torch.stack([whole % 16, whole // 16], dim=1).flatten(1)
    return torch.addcmul(m[:, None].float(), d[:, None].float(), codes.float()).reshape(-1)


def byte_by_byte(packed, d, m):
    weights = torch.zeros(len(packed), 32, device=packed.device)
    for g in range(len(packed)):
        for j in range(16):
            byte = int(packed[g, j])
            weights[g, j] = float(m[g]) + float(d[g]) * (byte & 0x0F)
            weights[g, j + 16] = float(m[g]) + float(d[g]) * (byte >> 4)
    return weights.view(-1)


def verify_unpacked(t, answer):
    for G in (*t.sizes(2, 3, 9), 1, 40):
        packed = t.integers(0, 256, G, 16).to(torch.uint8)
        d, m = t.rand(G, low=0.01, high=0.3).half(), -t.rand(G, low=0.5, high=4.0).half()
        want = torch.zeros(32 * G, dtype=torch.float64)
        for g, row in enumerate(packed.tolist()):
            bits = [f"{byte:08b}" for byte in row]
            codes = [int(b[4:], 2) for b in bits] + [int(b[:4], 2) for b in bits]
            for j, code in enumerate(codes):
                want[32 * g + j] = m[g].item() + d[g].item() * code
        t.same(t.call(answer, packed, d, m), want, f"the weights of {G} group{'s' * (G > 1)}", dtype=torch.float32)


MUTANTS_B = [
    Mutant("exchanged", ("torch.cat([low, high]", "torch.cat([high, low]"), "high and low bits are exchanged: the low "
        "four bits are weight j, the high ones weight j + 16"),
    Mutant("in-pairs", ("torch.cat([low, high], dim=1)", "torch.stack([low, high], dim=2).flatten(1)"), "the two codes "
        "of a byte are put side by side: they are weights j and j + 16"),
    Mutant("in-pairs-exchanged", ("torch.cat([low, high], dim=1)", "torch.stack([high, low], dim=2).flatten(1)"), "the "
        "two codes of a byte are put side by side, the high one first: the low bits are weight j, the high ones "
        "weight j + 16"),
    Mutant("whole-byte", ("packed & 15", "packed"), "the low code is the whole byte: cut off its high bits (`& 15`)"),
    Mutant("seven", ("packed & 15", "packed & 7"), "three bits are taken from the low half of a byte: 15 is four"),
    Mutant("not-moved", ("packed >> 4", "(packed & 240)"), "the high code is still 16 times too large: move it down by "
        "four bits"),
    Mutant("moved-by-three", ("packed >> 4", "(packed >> 3)"), "the high code is moved down by three bits: it is four"),
    Mutant("signed", ("packed >> 4  #", "packed.view(torch.int8) >> 4  #"), "the high code has a sign: codes go from "
        "0 to 15"),
    Mutant("not-whole", ("packed >> 4  #", "packed / 16  #"), "the high code is not a whole number: move it down by "
        "four bits, or divide with //"),
    Mutant("in-turns", lambda p, d, m: (m.float().repeat(32) + d.float().repeat(32) * unpacked(p, d * 0 + 1, m * 0)),
        "neighbours have d and m of different groups: each group has one d and one m, for its 32 weights"),
    Mutant("all-low-first", ("return weights.flatten()",
        "return torch.cat([weights[:, :16].flatten(), weights[:, 16:].flatten()])"), "all low codes of the row come "
        "before all high ones: go group by group"),
    Mutant("turned", ("return weights.flatten()", "return weights.T.flatten()"), "the weights are not group after "
        "group: flatten (G, 32) as it is"),
    Mutant("centred", (" * codes\n", " * (codes.float() - 8)\n"), "8 is taken from the codes (that is the format "
        "Q4_0): codes count from m"),
    Mutant("m-subtracted", ("m.float()[:, None] + d", "-m.float()[:, None] + d"), "m is subtracted: it is added"),
    Mutant("m-too", ("m.float()[:, None] + d.float()[:, None] * codes", "d.float()[:, None] * (m.float()[:, None] + "
        "codes)"), "m is multiplied by d: only the code is"),
    Mutant("without-m", ("m.float()[:, None] + d", "d"), "m is missing: a weight is m + d times its code"),
    Mutant("exchanged-numbers", ("m.float()[:, None] + d.float()[:, None] * codes",
        "d.float()[:, None] + m.float()[:, None] * codes"), "d and m are exchanged"),
    Mutant("in-float16", ("m.float()[:, None] + d.float()[:, None] * codes", "(m[:, None] + d[:, None] * "
        "codes).float()"), "it is computed in float16 and made float32 afterwards: make d and m float32 first"),
    Mutant("dtype", ("m.float()[:, None] + d.float()[:, None] * codes", "m[:, None] + d[:, None] * codes")),
    Mutant("shape", ("return weights.flatten()", "return weights")),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-19.4",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-19.4a",
            prompt="Write `quantised(row)`: the step d of a group is a 15th of the distance from its least to its "
            "largest weight, and codes are rounded to the nearest whole number, halves either way.",
            hints=[
                "`reshape(-1, 32)` makes a row of each group. What remains has no more to do with groups.",
                "The least weight must get the code 0 and the largest the code 15: (w - m) / d does so.",
                "Where all weights of a group are equal, d is 0: divide by something else there, and return the 0.",
            ],
            answer=quantised,
            verify=verify,
            alternatives=[group_by_group, nearest_level],
            mutants=MUTANTS_A,
            min_checks=20,
            advice={
                "values": "Print one group beside m + d * codes: no weight may be off by more than half a step.",
                "dtype": "Codes are uint8, also where one takes four bits of it; d and m have the type of the row.",
            },
            explanation=r"""
The minimum is worth its bytes where the weights of a group do not lie evenly about 0. No weight is off by more than
d / 2. A smaller group has a smaller range, so smaller errors, and more numbers d and m to keep: with float16 for both,
32 weights take 16 + 4 bytes, 5 bits a weight.

`llama.cpp` stores d and m in float16, and quantises with the numbers before they were rounded. Better choices of d
exist, as the two outermost weights need not be hit exactly: the newer formats of that program search for them.
""",
        ),
        Code(
            key="own-19.4b",
            prompt="Two codes share a byte. Write `unpacked(packed, d, m)`, which reads a row as it is in the file.",
            hints=[
                "Write the byte 0x5A in bits: 0101 1010. Its low four bits are 1010, ten; its high ones are five.",
                "`packed & 15` keeps the low four bits, `packed >> 4` moves the high ones down.",
                "The low codes are weights 0 to 15 of a group, the high ones 16 to 31: `torch.cat` along `dim=1`.",
            ],
            answer=unpacked,
            verify=verify_unpacked,
            alternatives=[with_remainders, byte_by_byte],
            mutants=MUTANTS_B,
            min_checks=8,
            advice={
                "values": "Try one group with d = 1 and m = 0, and bytes 0x10, 0x32, ...: which codes come where?",
                "dtype": "Make d and m float32 before you compute.",
                "shape": "One row: flatten the groups at the end.",
            },
            explanation=r"""
Whoever has read this far has read the file format: a block of Q4_1 is d and m in float16 and these 16 bytes, 20 bytes
for 32 weights. Codes j and j + 16 share a byte, not j and j + 1: one `&` and one `>>` on a vector of 16 bytes then give
two runs of 16 neighbours, and nothing has to be sorted into place.
""",
        ),
    ],
)
