"""Figures for a venue: every kind in every style, with nothing on anything and a unit on each axis."""

import os
import re
from itertools import combinations, pairwise
from types import SimpleNamespace

import matplotlib
import pytest

from hwmodel.errors import HwmodelError
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.views.colours import called, looks_of, named, specs_named
from hwmodel.views.figures.canvas import (
    STYLES,
    panels,
    plain_ticks,
    rounded,
    settings,
    settle,
    styled,
    title_of,
    width_of,
)
from hwmodel.views.figures.grouping import layer_groups
from hwmodel.views.figures.records import Page, whole
from hwmodel.views.figures.words import part_words
from hwmodel.views.latex import _stacked, _text
from hwmodel.views.plot import PLOTS, draw, read_records
from hwmodel.views.sweep_figures import SWEEP_PLOTS, View
from hwmodel.views.tornado import read_effects, tornado_figure
from tests.specs import CHIP, NETWORK, written
from tests.test_figures import EXAMPLE, compared, drawn_texts, reported, shown
from tests.test_sweep_figures import L1, table

RESNET = [
    "conv1",
    *(
        f"layer{stage}.{block}.{layer}"
        for stage, blocks in ((1, 3), (2, 4), (3, 6), (4, 3))
        for block in range(blocks)
        for layer in ("conv1", "conv2", "conv3")
    ),
    "fc",
]
COMPARED = read_records(EXAMPLE)
BESIDE = reported("conv1", "conv2", "fc1") + reported("conv1", "conv2", "fc1", method="fp")
TENSORS = [
    record | {"tensor": tensor}
    for record, tensor in zip(
        reported("conv1", "conv2") * 2,
        ("I", "F", "O", "dI", "dF", "dO", "m(F)", "v(F)", "P", "dP", "index", "I2") * 20,
        strict=False,
    )
]


@pytest.fixture(scope="module")
def effects(tmp_path_factory):
    """A study of a small network on a small chip, as its CSV is read."""
    from hwmodel.rerun.tables import effects_table
    from hwmodel.specs.provenance import Provenance
    from hwmodel.vary.sensitivity import sensitivity

    folder = tmp_path_factory.mktemp("study")
    network, chip = (
        written(folder, text, name=name) for text, name in ((NETWORK, "n.yaml"), (CHIP, "c.yaml"))
    )
    from hwmodel.importers.load import load_network
    from hwmodel.specs.files import load
    from hwmodel.specs.hardware import Hardware

    found = sensitivity(
        load_network(str(network)), [load(Hardware, chip)], ["fp", "bold"],
        accounting="paper", samples=0,
    )  # fmt: skip
    path = folder / "effects.csv"
    path.write_text(effects_table(found.effects).csv(Provenance("hwmodel sensitivity", ())))
    return found.effects, path


LABELS = {
    "vgg-small": "VGG-small, ours, with a wider last layer",
    "ascend": "Ascend as in the source's table, 2 cores",
    "v100": "Tesla_V100_of_the_rebuttal_with_half_HBM",
    "fp": "Full precision, Adam, as we train it now",
    "bold": "Boolean_logic_with_normalisation_as_ours",
    "bold-bn": "Boolean logic, batch norm., 16 bit sign.",
    "binarynet": "A binary neural network of 2016 (Courb.)",
    "xnor-net": "XNOR-Net with scaling factors and latent",
    "binaryconnect": "BinaryConnect, real activations, latents",
}
assert all(len(label) <= 40 for label in LABELS.values())


def labelled(kind, style, effects):
    """A figure of a kind whose methods, network and chips have labels as long as any may be."""
    specs = [
        SimpleNamespace(KIND=word, name=name, label=label)
        for name, label in LABELS.items()
        for word in ("method", "hardware", "network")
    ]
    with looks_of(specs):
        return made(kind, style, effects)


def made(kind, style, effects):
    """A figure of a kind, as it is written."""
    if kind == "tornado":
        return tornado_figure(effects[0], style)
    if kind.startswith("sweep"):
        usual, drawn = SWEEP_PLOTS[kind.partition(" ")[2]]
        view = View(**{**usual, "x": L1, "y": "batch" if "heatmap" in kind else "energy"})
        results = table()
        return drawn(results.rows, results.columns, view, style)
    of, name = kind.split()
    records = {"compare": COMPARED, "report": BESIDE, "tensors": TENSORS}.get(of) or reported(
        *RESNET
    )
    return PLOTS[name]["compare" if of == "compare" else "report"](Page(records, style))


KINDS = (
    "compare methods", "compare passes", "compare pareto", "report layers", "resnet layers",
    "report levels", "tensors levels", "report passes", "tensors level-tensor", "sweep pareto",
    "sweep lines", "sweep heatmap", "tornado",
)  # fmt: skip
EVERY = ("paper", "neurips", "icml", "ieee", "slides")
MIXED = {"compare methods", "compare pareto", "resnet layers", "tornado"}  # drawn in two styles
if os.environ.get("HWMODEL_TESTS") == "thorough":
    DRAWN = [(kind, venue) for kind in KINDS for venue in EVERY]
else:
    DRAWN = [(kind, "icml") for kind in KINDS] + [(kind, "neurips") for kind in sorted(MIXED)]


@pytest.fixture(scope="module")
def drawn(effects):
    """A function that gives a figure of a kind for a venue, drawn once."""
    kept = {}

    def figure(kind, venue):
        if (kind, venue) not in kept:
            style = styled(
                venue,
                title=venue != "icml",
                font="serif" if venue in ("neurips", "ieee") else "",
                ours=() if venue in ("slides", "paper", "icml") else ("bold",),
            )
            with settings(style):
                found = made(kind, style, effects)
                settle(found)
                matplotlib.backends.backend_agg.FigureCanvasAgg(found).draw()
                kept[kind, venue] = style, found, list(seen(found))
        return kept[kind, venue]

    return figure


def seen(figure):
    """(text, box) of every text that is drawn [pixel]; a name's own box, without its leader."""
    for text, _ in drawn_texts(figure):
        box = matplotlib.text.Text.get_window_extent(text)
        yield text.get_text(), box.padded(-0.06 * box.height)


@pytest.mark.parametrize(("kind", "venue"), DRAWN)
def test_no_text_lies_on_another_or_beyond_the_page(kind, venue, drawn):
    style, figure, boxes = drawn(kind, venue)
    assert len(boxes) > 5
    assert figure.get_figwidth() == style.width
    see_apart(figure, boxes)


def see_apart(figure, boxes):
    """See that no text lies on another, nor beyond the figure."""
    for (one, box), (other, its) in combinations(boxes, 2):
        assert not box.overlaps(its), (one, other)
    for one, box in boxes:
        inside = box.x0 > -1 and box.y0 > -1
        inside &= box.x1 < figure.bbox.x1 + 1 and box.y1 < figure.bbox.y1 + 1
        assert inside, (one, box, figure.bbox)


LONG = [
    ("compare methods", "icml"), ("compare passes", "ieee"), ("compare pareto", "neurips"),
    ("report levels", "slides"), ("tornado", "icml"),
]  # fmt: skip
if os.environ.get("HWMODEL_TESTS") == "thorough":
    LONG = [(kind, venue) for kind in KINDS for venue in EVERY]


@pytest.mark.parametrize(("kind", "venue"), LONG)
def test_labels_of_forty_letters_lie_on_nothing_and_are_whole(kind, venue, effects):
    """None is changed, none is cut, whether it has blanks to be broken at or underscores."""
    style = styled(venue, font="serif" if venue == "ieee" else "")
    with settings(style):
        figure = labelled(kind, style, effects)
        settle(figure)
        matplotlib.backends.backend_agg.FigureCanvasAgg(figure).draw()
        see_apart(figure, list(seen(figure)))
    texts = {re.sub(r"\s", "", text.get_text()) for text, _ in drawn_texts(figure)}
    if kind in ("compare methods", "compare passes", "compare pareto"):
        shown = [name for name in LABELS if name in {r["method"] for r in COMPARED}]
        assert {re.sub(r"\s", "", LABELS[name]) for name in shown} <= texts
    if kind.startswith("compare"):
        assert {re.sub(r"\s", "", LABELS["v100"])} <= texts or any(
            text.startswith(re.sub(r"\s", "", LABELS["v100"])) for text in texts
        )


def test_an_accuracy_that_is_stated_goes_before_what_is_published(tmp_path):
    records = compared("fp", "bold", "new", chips=("ascend",))
    style = styled("paper")
    path = tmp_path / "p.svg"
    said = draw(records, path, kind="pareto", style=style, accuracies={"new": 91.5, "fp": 40.0})
    assert said.endswith("accuracy of fp, new as stated, else as published")
    with settings(style):
        figure = PLOTS["pareto"]["compare"](
            Page(records, style, accuracies={"new": 91.5, "fp": 40.0})
        )
    points = [tuple(map(float, line.get_ydata())) for line in shown(figure)[0].lines[:3]]
    assert points[0] == (40.0,) and points[2] == (91.5,) and points[1] not in ((40.0,), (91.5,))
    for given, message in (
        ({"nwe": 91.5}, "--accuracy nwe: is no method of the table; did you mean 'new'?"),
    ):
        with pytest.raises(HwmodelError, match=re.escape(message)):
            draw(records, path, kind="pareto", style=style, accuracies=given)
    with pytest.raises(HwmodelError, match="is of a figure of kind pareto, not of methods"):
        draw(records, path, style=style, accuracies={"new": 91.5})
    with pytest.raises(HwmodelError, match=r"state those you know, --accuracy new=91\.2"):
        draw(compared("new", chips=("ascend",)), path, kind="pareto", style=style)


@pytest.mark.parametrize("kind", KINDS)
def test_every_axis_says_its_unit_and_every_figure_its_caption(kind, drawn):
    _, figure, _ = drawn(kind, "icml")  # without a title
    assert "analytical, not measured" in title_of(figure)
    assert figure.get_suptitle() == ""
    numeric = []
    for axes in shown(figure):
        words = " ".join(axes.get_xlabel().split())
        names = [text.get_text() for text in axes.get_yticklabels()]
        numeric += [words] if words else []
        if not any(re.match("[A-Za-z(]", name) for name in names):
            numeric.append(axes.get_ylabel())
    assert numeric
    ends = r".*(, (%|% of the whole|% of the baseline|% of full precision \(fp\)|images|[KMG]iB|[nµm]?J|pJ|MAC.*)|number of the layer.*)"
    assert all(re.fullmatch(ends, words) for words in numeric if words), numeric


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("hwmodel compare n --hardware v100 --methods fp,bold --accounting paper", "full precision (fp)"),
        ("hwmodel compare n --hardware v100 --methods fp,bold --baseline int8", "8-bit integers (int8)"),
        ("hwmodel compare n --hardware v100 --methods fp --baseline fp16 --baseline-network vgg-small",
         "fp16 on vgg-small"),
        ("hwmodel reproduce cifar10_vgg_small", "full precision (fp) on vgg-small"),
        ("hwmodel report n --hardware v100 --method fp", "the baseline"),
        ("", "the baseline"),
    ],
)  # fmt: skip
def test_what_is_100_percent_is_named(command, name):
    with looks_of(specs_named(command)):
        assert whole(command) == name


def test_a_width_is_the_page_s_and_panels_follow_it():
    assert styled("paper", width="5.5in").width == 5.5
    assert styled("paper", width="139.7mm").width == pytest.approx(5.5)
    assert styled("paper", width="397.485pt").width == pytest.approx(5.5)  # 72.27 pt an inch
    assert styled("paper", width="14 cm").width == pytest.approx(14 / 2.54)
    assert styled("paper", width="7in").columns == 2 * STYLES["paper"].columns
    for wrong in ("5.5", "2.9in", "41in", "-5in", "5.5 inch", "5e9in"):
        with pytest.raises(HwmodelError, match="a number with its unit"):
            styled("paper", width=wrong)
    with pytest.raises(HwmodelError, match="no font of plots is called 'serfi'"):
        styled("paper", font="serfi")


@pytest.mark.parametrize(
    ("venue", "inches"), [("neurips", 5.5), ("icml", 3.25), ("ieee", 252 / 72.27)]
)
def test_a_venue_is_as_wide_as_its_text(venue, inches):
    """\\textwidth of neurips_2024.sty, \\columnwidth of icml2024.sty and of IEEEtran.cls."""
    assert STYLES[venue].width == pytest.approx(inches, abs=1e-3)


@pytest.mark.parametrize("font", ["sans", "serif"])
def test_fonts_of_a_venue_are_embedded_as_truetype(tmp_path, font):
    draw(compared("fp", "bold"), tmp_path / "f.pdf", style=styled("ieee", font=font, ours=["bold"]))
    pdf = (tmp_path / "f.pdf").read_bytes()
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf  # IEEE refuses Type 3
    names = set(re.findall(rb"/FontName /(?:[A-Z]{6}\+)?([A-Za-z-]+)", pdf))
    regular, bold = {"sans": (b"DejaVuSans", b"DejaVuSans-Bold"),
                     "serif": (b"STIXGeneral", b"STIXGeneral-Bold")}[font]  # fmt: skip
    assert any(name.startswith(regular) for name in names), names
    assert any(b"Bold" in name for name in names), (bold, names)


def test_ours_is_heavy_and_framed_and_nothing_else_is():
    style = styled("paper", ours=["bold"])
    for kind in ("methods", "passes"):
        with settings(style):
            figure = PLOTS[kind]["compare"](Page(compared("fp", "bold", "binarynet"), style))
            settle(figure)
        for axes in shown(figure):
            names = [t for t in axes.get_yticklabels() if t.get_weight() == 700]
            assert [t.get_text() for t in names] == (["bold"] if axes is shown(figure)[0] else [])
            frames = [p for p in axes.patches if not p.get_fill()]
            assert [round(p.get_y() + p.get_height() / 2) for p in frames] == [1]
            assert [p.get_width() for p in frames] == pytest.approx([90])
            assert [t.get_text() for t in axes.texts if t.get_weight() == 700] == ["90.0"]


def test_what_is_ours_must_be_in_the_table(tmp_path):
    with pytest.raises(HwmodelError, match="--ours blod: is no method of the table; did you mean"):
        draw(compared("fp", "bold"), tmp_path / "f.svg", style=styled("paper", ours=["blod"]))
    assert not list(tmp_path.iterdir())


def test_numbers_of_a_figure_have_as_many_digits():
    figure_texts = {"100", "38.9", "2.53", "0.0312"}
    assert {rounded(n) for n in (100, 38.94, 2.531, 0.03124)} == figure_texts
    assert rounded(99.96) == "100" and rounded(9.996) == "10.0"
    assert rounded(1e20) == "1.00e+20" and rounded(1e-9) == "1.00e-09"


@pytest.mark.parametrize(("times", "alike"), [(3, True), (1000, False)])
def test_panels_of_reports_have_one_unit_and_one_scale_if_bars_can_be_told_apart(times, alike):
    first = reported("conv1", "conv2")
    second = [
        row | {"energy": str(times * float(row["energy"]))}
        for row in reported("conv1", "conv2", method="fp")
    ]
    style = styled("neurips")
    with settings(style):
        figure = PLOTS["layers"]["report"](Page([*first, *second], style))
    left, right = shown(figure)
    assert left.get_xlabel() == right.get_xlabel()
    assert (left.get_xlim() == right.get_xlim()) == alike
    longest = [max(p.get_x() + p.get_width() for p in axes.patches) for axes in (left, right)]
    assert longest[1] / longest[0] == pytest.approx(times)


# Groups of layers


def test_layers_go_with_the_product_before_them_their_block_and_their_stage():
    names = {
        "conv1": "product", "conv1.bn": "elementwise", "pool": "elementwise",
        "layer1.0.conv1": "product", "layer1.0.act": "elementwise", "layer1.1.conv1": "product",
        "layer1.1.sum": "elementwise", "layer2.0.conv1": "product", "fc": "product",
    }  # fmt: skip
    records = [
        row | {"component": component}
        for name, component in names.items()
        for row in reported(name)[:1]
    ]
    found = layer_groups(records)
    assert list(dict.fromkeys(found["layer"].values())) == list(names)
    assert list(dict.fromkeys(found["product"].values())) == [
        name for name, component in names.items() if component == "product"
    ]
    assert found["product"]["layer1.1.sum"] == "layer1.1.conv1"
    blocks = ["conv1", "layer1.0", "layer1.1", "layer2.0", "fc"]
    assert list(dict.fromkeys(found["block"].values())) == blocks
    assert list(dict.fromkeys(found["stage"].values())) == ["conv1", "layer1", "layer2", "fc"]


def test_resnet50_stands_by_block_with_every_name_and_nothing_lost(effects):
    style = STYLES["paper"]
    records = reported(*RESNET)
    with settings(style):
        figure = made("resnet layers", style, effects)
    (axes,) = shown(figure)
    blocks = [f"layer{s}.{b}" for s, n in ((1, 3), (2, 4), (3, 6), (4, 3)) for b in range(n)]
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["conv1", *blocks, "fc"]
    assert title_of(figure).endswith("; by block")
    whole = sum(float(record["energy"]) for record in records)
    third = sum(float(r["energy"]) for r in records if r["layer"].startswith("layer3.2."))
    drawn = sum(p.get_width() for p in axes.patches if round(p.get_y() + 0.39) == 10)
    assert names[10] == "layer3.2"
    assert drawn / sum(p.get_width() for p in axes.patches) == pytest.approx(third / whole)


def test_a_grouping_is_one_of_four_and_of_layers_alone(hwmodel, tmp_path):
    for kind, group, message in (
        ("layers", "blocks", "no grouping is called 'blocks': did you mean 'block'?"),
        ("levels", "block", "--group block: is of a figure of layers, not of levels"),
    ):
        with pytest.raises(HwmodelError, match=re.escape(message)):
            draw(reported("a.0.b"), tmp_path / "f.svg", kind=kind, layers_by=group)


def test_a_legend_says_what_a_tensor_is():
    words = {
        "I": "I: ifmap", "F": "F: filter", "O": "O: ofmap", "I2": "I2: ifmap",
        "dI": "dI: loss signal of I", "dO": "dO: loss signal of O", "dF": "dF: gradient of F",
        "m(F)": "m(F): moment of F", "momentum(F)": "momentum(F): moment of F",
        "index": "index", "4 other": "4 other", "backward_input": "backward input",
    }  # fmt: skip
    assert {name: part_words(name) for name in words} == words
    style = STYLES["paper"]
    with settings(style):
        figure = PLOTS["levels"]["report"](Page(TENSORS, style))
    texts = [text.get_text().replace("\n", " ") for text in figure.legends[0].get_texts()]
    assert "dI: loss signal of I" in texts and "dF: gradient of F" in texts


# Labels


LABELLED = """version: 1
name: mine
title: Mine
label: "Ours & Co. 100%"
layers: [{precision: bold, source: own}]
tensors: [{bits: 8, signal: 16, source: own}]
sources: {own: "own choice"}
"""


def test_a_label_stands_for_the_name_in_figures_and_tables_and_not_in_the_csv(hwmodel, tmp_path):
    (tmp_path / "mine.yaml").write_text(LABELLED)
    net = NETWORK.replace("title:", 'label: "Small Net"\ntitle:', 1)
    written(tmp_path, net, name="net.yaml")
    chip = CHIP.replace("title:", 'label: "Chip_7 (22 nm)"\ntitle:', 1)
    written(tmp_path, chip, name="chip.yaml")
    words = ("--hardware", "chip.yaml", "--accounting", "paper", "--optimal-tiles", "no")
    code, out, err = hwmodel(
        "compare", "net.yaml", "--methods", "fp,mine.yaml", *words, "--csv", "c.csv"
    )
    assert code == 0, err
    assert "Ours & Co. 100%" in out and "Small Net on Chip_7 (22 nm)" in out
    whole = hwmodel("compare", "net.yaml", "--methods", "fp", *words, "--baseline", "mine.yaml",
                    "--csv", "b.csv")[1]  # fmt: skip
    assert "% of Ours & Co. 100%" in whole and "% of mine" not in whole
    assert err == "wrote c.csv\n"  # remarks on rows stand below the tables, once
    rows = (tmp_path / "c.csv").read_text()
    assert ",mine," in rows and "Co." not in rows and "22 nm" not in rows
    assert hwmodel("plot", "c.csv", "-o", "c.svg")[0] == 0
    svg = (tmp_path / "c.svg").read_text()
    assert ">Ours &amp; Co. 100%</text>" in svg and "Small Net, training" in svg
    assert ">Chip_7 (22 nm)</text>" in svg
    hwmodel("report", "net.yaml", "--method", "mine.yaml", *words[:4], "--csv", "r.csv")
    hwmodel("plot", "r.csv", "-o", "r.svg")
    assert "Ours &amp; Co. 100% on Chip_7 (22 nm)" in (tmp_path / "r.svg").read_text()
    (code, tex, _), (_, md, _) = (
        hwmodel("compare", "net.yaml", "--methods", "fp,mine.yaml", *words, "--format", form)
        for form in ("latex", "markdown")
    )
    assert r"Ours \& Co. 100\%" in tex and r"Small Net on Chip\_7 (22 nm)" in tex
    assert "Ours & Co. 100%" in md


def test_letters_that_no_font_has_are_told_and_others_are_drawn(hwmodel, tmp_path):
    method = LABELLED.replace("Ours & Co. 100%", "Ours \u65e5\u672c")
    (tmp_path / "mine.yaml").write_text(method)
    written(tmp_path, NETWORK, name="net.yaml")
    words = ("--methods", "fp,mine.yaml", "--accounting", "paper", "--optimal-tiles", "no")
    assert hwmodel("compare", "net.yaml", *words, "--csv", "c.csv")[0] == 0
    for font in ("sans", "serif"):
        code, _, err = hwmodel("plot", "c.csv", "-o", "c.pdf", "--font", font)
        assert code == 0 and err.count("warning") == 1
        assert "c.pdf: no font here has the letters \u65e5\u672c, and boxes stand in" in err
        assert hwmodel("plot", "c.csv", "-o", "c.svg", "--font", font) == (0, "", "wrote c.svg\n")
    assert "\u65e5\u672c" in (tmp_path / "c.svg").read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(method.replace("\u65e5\u672c", "\u0434\u1ec5\u03bc"))
    assert hwmodel("compare", "net.yaml", *words, "--csv", "c.csv")[0] == 0
    for font in ("sans", "serif"):
        assert hwmodel("plot", "c.csv", "-o", "c.pdf", "--font", font) == (0, "", "wrote c.pdf\n")


def test_what_is_ours_is_known_by_name_label_and_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(LABELLED)
    mine = load(Method, path)
    other = mine.model_copy(update={"name": "other"})
    with looks_of([mine]):
        for word in ("mine", "Ours & Co. 100%", str(path)):
            assert named([word], ["fp", "mine"], "--ours") == ("mine",)
        assert named(["Ours & Co. 100%", "fp"], ["fp", "mine"], "--ours") == ("mine", "fp")
        with pytest.raises(HwmodelError, match=r"did you mean 'Ours & Co\. 100%'"):
            named(["Ours & Co."], ["fp", "mine"], "--ours")
    with looks_of([mine.model_copy(update={"label": "Ours, 4 bit, fast"})]):
        split = ["fp", "Ours", "4 bit", "fast"]  # as an option is split at its commas
        assert named(split, ["fp", "mine"], "--ours") == ("fp", "mine")
    with looks_of([mine, other]):  # of one label: told apart by their names
        assert called("mine") == "Ours & Co. 100% (mine)" != called("other")
        with pytest.raises(HwmodelError, match="is the label of mine and other; give a name"):
            named(["Ours & Co. 100%"], ["fp", "mine", "other"], "--ours")


def test_a_label_is_one_short_line(hwmodel, tmp_path):
    for label in ("x" * 41, "a\\nb"):
        (tmp_path / "mine.yaml").write_text(LABELLED.replace("Ours & Co. 100%", label))
        code, _, err = hwmodel("method", "check", "mine.yaml")
        assert code == 2 and "label" in err
        assert len(label) < 41 or "must have at most 40 characters" in err


def test_a_text_is_as_wide_in_every_format():
    """So that what has room in the layout has it in a PDF, an SVG and a PNG of any resolution."""
    text = "FourBit_Train (4-bit weights, fp sign.)"
    for font in ("", "serif"):
        with settings(styled("slides", font=font)):
            widths = []
            for dpi in (72, 100, 150, 300):
                figure = matplotlib.figure.Figure(dpi=dpi)
                canvas = matplotlib.backends.backend_agg.FigureCanvasAgg(figure)
                drawn = figure.text(0, 0, text, size=13)
                widths.append(drawn.get_window_extent(canvas.get_renderer()).width / dpi)
            assert widths == pytest.approx([width_of(text, 13)] * 4, rel=2e-3)


def test_a_long_heading_and_quotation_marks_in_latex():
    assert _text('a "b" <c> d|e 5"') == r"a ``b'' \textless{}c\textgreater{} d\textbar{}e 5''"
    assert _stacked("Edge NPU with 4 MiB of SRAM", 33) == "Edge NPU with 4 MiB of SRAM"
    stacked = r"\shortstack{Edge NPU with 4 \\ MiB of SRAM}"
    assert _stacked("Edge NPU with 4 MiB of SRAM", 15) == stacked


# Sensitivity


def test_a_table_of_sensitivity_is_drawn_anew_in_any_style(hwmodel, tmp_path, effects):
    found, path = effects
    read, stamp = read_effects(path)
    assert [e.percent_after for e in read] == [e.percent_after for e in found]
    assert [(e.field, e.method, e.batch) for e in read] == [
        (e.field, e.method, e.batch) for e in found
    ]
    assert stamp[2] == "hwmodel sensitivity"
    code, _, err = hwmodel("plot", path, "-o", "t.svg", "--style", "neurips", "--no-title")
    assert (code, err.splitlines()[0]) == (0, "wrote t.svg")
    assert err.splitlines()[1].startswith("its caption: ")
    assert 'width="396pt"' in (tmp_path / "t.svg").read_text()  # 5.5 inches
    assert hwmodel("plot", path, "-o", "t.svg", "--kind", "bars")[0] == 2
    assert "drawn as kind tornado" in hwmodel("plot", path, "-o", "t.svg", "--kind", "bars")[2]


@pytest.mark.parametrize(("inches", "ticks"), [(2.8, ["2", "5", "10", "20", "50", "100"]), (1.0, ["10", "100"])])  # fmt: skip
def test_numbers_below_a_logarithmic_axis_stand_apart(inches, ticks):
    style = styled("ieee")
    with settings(style):
        figure, (axes,) = panels(style, 1, 2.0)
        axes.set_position((0.1, 0.3, inches / style.width, 0.6))
        figure.set_layout_engine("none")
        axes.set_xscale("log")
        axes.set_xlim(1.7, 160)
        plain_ticks(axes.xaxis)
        matplotlib.backends.backend_agg.FigureCanvasAgg(figure).draw()
        low, high = axes.get_xlim()
        shown = [
            label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high
        ]
        assert [label.get_text() for label in shown] == ticks
        boxes = [label.get_window_extent() for label in shown]
        assert all(a.x1 + 2 < b.x0 for a, b in pairwise(boxes))
