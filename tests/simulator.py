"""The judge of `counting: paper`: walks the blocks of a loop nest down to each MAC and counts.

Slow and plain, and nothing shared with the product but the types of a problem. From the outside
one visit to a block runs: reduction blocks (C, HF, WF), blocks of the held operand, blocks of the
streamed one. What a block loads is counted element by element: of I every position from the first
to the last that it touches, padding and skipped rows included.
"""

from collections import Counter
from itertools import product

REDUCTION = ("C", "HF", "WF")
OF_F = ("M",)
OF_I = ("N", "HO", "WO")
OF_O = ("N", "M", "HO", "WO")


def simulate(problem, tiles, held=None):
    """Counts of every level, the outermost first: I, F, O (sums at rest), and MACs at the last.

    Keys: "I", "F" reads; "O back" sums fetched to be continued, "O part" sums that leave
    unfinished, "O" finished sums; "mac".
    """
    counts = [Counter() for _ in range(len(tiles) + 1)]
    whole = {loop: (0, length) for loop, length in problem.extent._asdict().items()}
    for _ in range(problem.groups):
        _visit(problem, tiles, held or ["F"] * len(tiles), counts, whole)
        counts[0]["O"] += _elements(whole, OF_O)
    return counts


def _visit(problem, tiles, held, counts, box):
    """One block of the level above `tiles[0]`, whose own counts are `counts[0]`."""
    if not tiles:
        _compute(counts[0], box)
        return
    parts = list(_blocks(box, tiles[0], REDUCTION))
    streamed, outer, inner = ("I", OF_F, OF_I) if held[0] == "F" else ("F", OF_I, OF_F)
    for part in parts:
        if part != parts[0]:
            counts[0]["O back"] += _elements(box, OF_O)
        for kept in _blocks(part, tiles[0], outer):
            counts[0][held[0]] += _loaded(problem, kept, held[0])
            for block in _blocks(kept, tiles[0], inner):
                counts[0][streamed] += _loaded(problem, block, streamed)
                _visit(problem, tiles[1:], held[1:], counts[1:], block)
        if part != parts[-1]:
            counts[0]["O part"] += _elements(box, OF_O)


def _compute(count, box):
    """One block at the compute unit: filters are read once, each position of I once a tap."""
    for _ in _points(box, ("M", "C", "HF", "WF")):
        count["F"] += 1
    for _ in _points(box, ("N", "C", "HO", "WO", "HF", "WF")):
        count["I"] += 1
    for _ in _points(box, tuple(box)):
        count["mac"] += 1


def _blocks(box, tile, loops):
    cuts = [_cut(*box[loop], getattr(tile, loop)) for loop in loops]
    for spans in product(*cuts):
        yield box | dict(zip(loops, spans, strict=True))


def _cut(start, stop, step):
    return [(a, min(a + step, stop)) for a in range(start, stop, step)]


def _points(box, loops):
    return product(*(range(*box[loop]) for loop in loops))


def _elements(box, loops):
    return sum(1 for _ in _points(box, loops))


def _loaded(problem, box, operand):
    if operand == "F":
        return _elements(box, ("M", "C", "HF", "WF"))
    images = _elements(box, ("N", "C"))
    rows = _span(problem.height, box["HO"], box["HF"])
    columns = _span(problem.width, box["WO"], box["WF"])
    return images * rows * columns


def _span(window, outs, taps):
    """Positions from the first to the last that some output and some tap of a block meet at."""
    assert window.spread == 1, "inserted zeros are not walked here"
    touched = [
        out * window.step + tap * window.dilation - window.pad
        for out in range(*outs)
        for tap in range(*taps)
    ]
    return max(touched) - min(touched) + 1


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
