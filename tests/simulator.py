"""The judge of all counting: walks every block and looks at what it loads. Slow and plain.

It imports nothing of `hwmodel`: a problem, its tiles and its row rule are read by attribute.
"""

from itertools import product

REDUCTION = ("C", "HF", "WF")
ORDERS = {  # loops over the blocks of one visit, from the outside
    "F": (*REDUCTION, "M", "N", "HO", "WO"),
    "I": (*REDUCTION, "N", "HO", "WO", "M"),
    "O": ("M", "N", "HO", "WO", *REDUCTION),
}
DIMENSIONS = {
    "I": ("N", "C", "HO", "WO", "HF", "WF"),
    "F": ("M", "C", "HF", "WF"),
    "O": ("N", "M", "HO", "WO"),
}


LOWER = ("I_brought", "F_brought", "O_returned", "O_sent", "O_partial_sent")


def simulate(problem, tiles, held, rule):
    """What every level is asked for, outermost first; the last is asked by the MACs."""
    return [
        {key: number for key, number in level.items() if key not in LOWER}
        for level in walk(problem, tiles, held, rule)
    ]


def walk(problem, tiles, held, rule):
    """The same, and what each level does for the one above: `LOWER`.

    Words brought to it, sums that come back to be continued, sums sent up.
    """
    levels = [
        dict(I_reads=0, F_reads=0, O_partial_reads=0, I_brought=0, F_brought=0, O_returned=0,
             written=[], sent=[]) for _ in (*tiles, 0)
    ]  # fmt: skip
    resting = [set() for _ in levels]  # outputs of which a sum rests in this level's memory

    def visit(level, box):
        asked = levels[level]
        loaded = None
        for block in blocks(box, tiles[level], ORDERS[held[level]]):
            load(problem, block, rule, held[level], loaded, asked, levels[level + 1])
            loaded = part(block, held[level])
            for output in outputs(block):
                # One that rests above, and not here, is brought to be continued.
                here = output in resting[level + 1]
                levels[level + 1]["O_returned"] += output in resting[level] and not here
            (visit if level + 1 < len(tiles) else compute)(level + 1, block)
            if held[level] != "O" or all(block[d][1] == box[d][1] for d in REDUCTION):
                arrive(level, block)
                levels[level + 1]["sent"] += outputs(block)
                resting[level + 1].clear()

    def compute(level, box):
        levels[level]["I_reads"] += products(problem, box, rule)
        levels[level]["F_reads"] += elements(problem, box, rule, "F")
        arrive(level, box)

    def arrive(level, block):
        """Sums of a block come to a memory; where one rests, it is read to be added."""
        for output in outputs(block):
            levels[level]["O_partial_reads"] += output in resting[level]
            levels[level]["written"].append(output)
            resting[level].add(output)

    visit(0, {d: (0, n) for d, n in problem.extent._asdict().items()})
    return [counted(asked, problem.groups) for asked in levels]


def load(problem, block, rule, held, loaded, asked, below):
    """I and F of a block are loaded; what is held only when another block of it begins."""
    for operand in "IF":
        if operand != held or part(block, operand) != loaded:
            words = elements(problem, block, rule, operand)
            asked[operand + "_reads"] += words
            below[operand + "_brought"] += words


def counted(asked, groups):
    """Of all sums written or sent for an output, the last one is the finished one."""
    written, sent = asked.pop("written"), asked.pop("sent")
    asked["O_sent"] = len(set(sent))
    asked["O_partial_sent"] = len(sent) - asked["O_sent"]
    asked["O_writes"] = len(set(written))
    asked["O_partial_writes"] = len(written) - asked["O_writes"]
    return {key: groups * number for key, number in asked.items()}


def blocks(box, tile, order):
    cuts = []
    for d in order:
        start, stop = box[d]
        step = getattr(tile, d)
        cuts.append([(a, min(a + step, stop)) for a in range(start, stop, step)])
    for spans in product(*cuts):
        yield dict(zip(order, spans, strict=True))


def part(block, operand):
    return tuple(block[d] for d in DIMENSIONS[operand])


def outputs(block):
    return list(product(*(range(*block[d]) for d in DIMENSIONS["O"])))


def elements(problem, block, rule, operand):
    if operand == "F":
        return volume(block, DIMENSIONS["F"])
    rows = needed(problem.height, rule, block["HO"], block["HF"])
    columns = needed(problem.width, rule, block["WO"], block["WF"])
    return volume(block, ("N", "C")) * len(rows) * len(columns)


def volume(block, dimensions):
    result = 1
    for d in dimensions:
        result *= block[d][1] - block[d][0]
    return result


def met(window, rule, outs, taps):
    """The row that each pair of an output and a tap meets, inserted zeros left out."""
    rows = []
    for out, tap in product(range(*outs), range(*taps)):
        position = out * window.step + tap * window.dilation - window.pad
        if position % window.spread == 0:
            row = position // window.spread
            if rule.padding == "counted" or 0 <= row < window.size:
                rows.append(row)
    return rows


def needed(window, rule, outs, taps):
    rows = set(met(window, rule, outs, taps))
    if rule.rows == "bounding" and rows:
        rows = set(range(min(rows), max(rows) + 1))
    return rows


def products(problem, box, rule):
    """Elements of I that the MACs of a block take; its filters share them."""
    count = 0
    for _ in product(range(*box["N"]), range(*box["C"])):
        rows = met(problem.height, rule, box["HO"], box["HF"])
        count += len(rows) * len(met(problem.width, rule, box["WO"], box["WF"]))
    return count


def execute(problem, i, f):
    """The nest on nested lists I[n][c][row][column], F[m][c][tap][tap] of one group -> O."""
    n = problem.extent
    rows = _meetings(problem.height, n.HO, n.HF)
    columns = _meetings(problem.width, n.WO, n.WF)
    o = [[[[0] * n.WO for _ in range(n.HO)] for _ in range(n.M)] for _ in range(n.N)]
    for image, m, c in product(range(n.N), range(n.M), range(n.C)):
        for (ho, hf, hi), (wo, wf, wi) in product(rows, columns):
            o[image][m][ho][wo] += i[image][c][hi][wi] * f[m][c][hf][wf]
    return o


def _meetings(window, outs, taps):
    """Every (output, tap, row) that exists: neither padding nor an inserted zero."""
    found = []
    for out, tap in product(range(outs), range(taps)):
        position = out * window.step + tap * window.dilation - window.pad
        if position % window.spread == 0 and 0 <= position // window.spread < window.size:
            found.append((out, tap, position // window.spread))
    return found
