"""What `reproduce` prints and writes: batch and input, what comes out, what is left out; refusals."""

import json

import pytest

from hwmodel import HwmodelError
from hwmodel.importers.load import load_network
from hwmodel.model.compare import Comparison, reproduce
from hwmodel.specs.published import published_table
from hwmodel.views.reproduction import sentences

QUICK = ("--optimal-tiles", "no")
VGG = ("reproduce", "cifar10_vgg_small", "--accounting", "paper", *QUICK)
LUQ = ("reproduce", "imagenet_luq", "--accounting", "paper,paper-stated", *QUICK)


# What does not come out follows from the numbers


def made(percents, preset="mine"):
    """Lines of the first table on the Ascend, ours in percent, in the order of its rows."""
    table = published_table("cifar10_vgg_small")
    published = [100.0, 38.59, 34.21, 32.60, 3.64, 4.87]  # as the source has them
    found = []
    for (network, method), ours, theirs in zip(table.modelled, percents, published, strict=True):
        line = Comparison(network, method, "ascend", preset, "training", 1, 1.0, "pJ")
        residual = None if ours is None else 100 * (ours / theirs - 1)
        found.append(line._replace(percent_of_baseline=ours, residual_percent=residual))
    return table, found


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        # By hand: 2 / 3.64 is 45.1 % below, 9.74 is twice 4.87.
        (
            [100, 38.59, 34.21, 32.60, 2.0, 9.74],
            "mine: 3 of 5 rows within 10 % of the published figure; not bold -45.1, bold-bn "
            "+100.0 %.\n",
        ),
        (
            [100, 38.59, 34.21, 32.60, 3.64, 4.87],
            "mine: 5 of 5 rows within 10 % of the published figure.\n",
        ),
        # A row that cannot be computed is none that comes out.
        (
            [100, 38.59, None, 32.60, 3.64, 4.87],
            "mine: 4 of 4 rows within 10 % of the published figure.\n",
        ),
    ],
)
def test_which_rows_come_out_is_said_of_the_numbers(ours, said):
    table, lines = made(ours)
    assert [*sentences(table, "ascend", lines)] == [said]


def test_each_accounting_has_a_sentence_of_its_own():
    table, first = made([100, 38.59, 34.21, 32.60, 3.64, 4.87], "one")
    _, second = made([100, 1, 1, 1, 1, 1], "two")
    found = [*sentences(table, "ascend", first + second)]
    assert [text.partition(" of 5")[0] for text in found] == ["one: 5", "two: 0"]


def test_a_table_without_energies_says_so_and_has_no_column_of_them(hwmodel):
    out = hwmodel(*LUQ)[1]
    assert "The source has no energies of this table on ascend or elsewhere." in out
    assert "published " not in out.partition("on ascend")[2] and "residual" not in out


# Batch, input, source, and what is left out


def test_batch_and_input_of_each_accounting_stand_above_its_numbers(hwmodel):
    """Bundled ResNet-18 is on 224 x 224; the source trains on 192 x 192."""
    out = " ".join(hwmodel(*LUQ)[1].split())
    ours = "batch 1, input 3 x 224 x 224 (paper); batch 1, input 3 x 192 x 192 (paper-stated)"
    assert out.count(ours) == 2  # a chip each
    assert "(the source: run imagenet-100, images of 192 x 192, batch not stated)" in out
    out = " ".join(hwmodel(*VGG)[1].split())
    assert "one training iteration of batch 1, input 3 x 32 x 32" in out


def test_what_the_source_does_not_state_of_a_table_is_said(hwmodel):
    out = " ".join(
        hwmodel("reproduce", "voc2012_fcn32s", "--accounting", "paper", *QUICK)[1].split()
    )
    assert "(the source: run voc2012-60, batch 8, image size not stated)" in out
    assert "chosen: 512 x 512 images" in out
    assert "input 3 x 512 x 512" in out


def test_what_is_left_out_is_listed(hwmodel):
    out = hwmodel(*VGG)[1]
    assert "Not counted under accounting paper:" in out
    assert "the weight update, latent weights, optimizer state, the loss" in out
    found = json.loads(hwmodel(*VGG, "--format", "json")[1])["not_counted"]["paper"]
    assert "the weight update, latent weights, optimizer state, the loss" in found


def test_prices_that_were_chosen_are_named_with_their_accounting(hwmodel):
    words = ("reproduce", "imagenet_luq", *QUICK)
    said = "Chosen, knowing the source's column for VGG-small: the price of an addition and of a "
    out = hwmodel(*words, "--accounting", "paper,full")[1]
    assert f"{said}Boolean operation under paper (docs/model.md" in out
    assert "Chosen" not in hwmodel(*words, "--accounting", "full")[1]


TAUGHT = "the forward pass of a teacher, resnet34 under fp (bold-kd)"


def test_a_teacher_that_is_not_counted_is_listed(hwmodel):
    words = ("resnet18-base256", "--hardware", "ascend", "--accounting", "paper")
    out = hwmodel("compare", *words, "--methods", "bold,bold-kd", *QUICK)[1]
    assert out.count(TAUGHT) == 1
    assert TAUGHT in hwmodel("report", *words, "--method", "bold-kd")[1]
    assert TAUGHT not in hwmodel("report", *words, "--method", "bold")[1]
    assert (
        TAUGHT not in hwmodel("compare", *words, "--methods", "bold-kd", "--mode", "inference")[1]
    )


def test_a_teacher_that_is_counted_is_not_listed(hwmodel, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "version: 1\nname: mine\ntitle: t\nbased_on: paper\nextras: {teacher: true}\n"
    )
    out = hwmodel("report", "resnet18-base256", "--hardware", "ascend", "--method", "bold-kd",
                  "--accounting", "mine.yaml")[1]  # fmt: skip
    assert "resnet34:" in out and TAUGHT not in out


def test_of_two_networks_each_item_left_out_says_of_which(hwmodel):
    out = hwmodel("compare", "vgg-small", "--hardware", "ascend", "--methods", "bold",
                  "--baseline-network", "vgg-small-1fc", "--accounting", "paper", *QUICK)[1]  # fmt: skip
    kinds = [line for line in out.splitlines() if line.startswith("  - batch-norm:")]
    assert [line.rpartition("(")[2] for line in kinds] == ["vgg-small)", "vgg-small-1fc)"]
    assert "  - biases, data loading\n" in out  # of both


def test_a_table_for_print_has_a_row_for_each_batch(hwmodel):
    """Super-resolution: one image under `paper`, a batch of 20 as the source states it."""
    out = hwmodel("reproduce", "super_resolution_x4", "--accounting", "paper,paper-stated", *QUICK,
                  "--format", "markdown")[1]  # fmt: skip
    assert out.startswith("Energy of one training iteration of ")
    assert ", at the batch listed, on " in out.splitlines()[0]
    rows = [line.split("|")[1:4] for line in out.splitlines() if line.startswith("| edsr")]
    assert [(network.strip(), batch.strip()) for network, _, batch in rows] == [
        (name, batch) for batch in ("1", "20") for name in
        ("edsr-x4", "edsr-small-x4", "edsr-boolean-x4")
    ]  # fmt: skip
    alike = hwmodel(*VGG, "--format", "markdown")[1]
    assert alike.startswith("Energy of one training iteration of 1 image of vgg-small on ")
    assert "| method |" in alike


# Refusals, and files


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*VGG, "--batch", "0"), "batch 0: must be a whole number from 1 to 2147483648"),
        (("reproduce", ""), "table '': is empty; leave it out for its default"),
        (("reproduce", "--figure", "1", "--csv", "a.csv"),
         "--csv is of tables, and --figure draws; leave it out"),
        (("reproduce", "--figure", "1", "--format", "csv"),
         "--format is of tables, and --figure draws; leave it out"),
        (("reproduce", "--figure", "1", "--date"),
         "--date is of tables, and --figure draws; leave it out"),
        (("reproduce", "--figure", "1", "-o", "a.csv"), "a.csv: a figure ends in .png, .svg, .pdf"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_one_sentence_and_writes_nothing(refused, tmp_path, words, said):
    assert refused(*words) == said
    assert not [*tmp_path.iterdir()]


def test_figures_of_other_batches_are_other_files(hwmodel, undrawn, tmp_path):
    words = ("reproduce", "--figure", "1", "--accounting", "paper", *QUICK, "--out", "there")
    hwmodel(*words)
    hwmodel(*words, "--batch", "2")
    assert sorted(p.name for p in (tmp_path / "there").glob("*.svg")) == [
        "reproduce_figure1_paper.svg", "reproduce_figure1_paper_batch2.svg"
    ]  # fmt: skip


def test_a_folder_that_is_a_file_is_told_before_anything_is_computed(refused, tmp_path):
    (tmp_path / "there").write_text("a file")
    said = refused("reproduce", "--figure", "1", "--out", "there")
    assert said == "--out there: is a file; --out names a folder"
    assert (tmp_path / "there").read_text() == "a file"


def test_a_figure_goes_to_a_file_and_to_a_folder_where_both_are_named(hwmodel, tmp_path):
    hwmodel("reproduce", "--figure", "1", "--accounting", "paper", "-o", "a.svg", "--out", "there")
    made = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.*")}
    stem = "there/reproduce_figure1_paper"
    assert made == {"a.svg", f"{stem}.png", f"{stem}.svg"}


def test_the_library_refuses_a_batch_of_none_too():
    with pytest.raises(HwmodelError, match="batch 0: must be a whole number from 1"):
        reproduce("cifar10_vgg_small", batch=0)


# Image sizes


def test_super_resolution_is_taken_at_another_size_of_its_output():
    """48 rows of output are 24 of input at x2."""
    assert load_network("edsr-x2@48").input == (3, 24, 24)
    assert load_network("edsr-x2@96x96").layers == load_network("edsr-x2").layers
    with pytest.raises(HwmodelError, match="an output of 97 rows is no multiple of 3, its scale"):
        load_network("edsr-x3@97")


def test_the_stated_patches_of_super_resolution_are_the_bundled_ones():
    found = reproduce("super_resolution_x2", accounting=["paper-stated"], optimal_tiles=False)
    assert {x.network for x in found} == {"edsr-x2", "edsr-small-x2", "edsr-boolean-x2"}


@pytest.mark.parametrize("name", ["deeplabv3-resnet18", "deeplabv3-boolean"])
def test_segmentation_takes_sizes_that_eight_does_not_divide(name):
    """513 -> 257 -> 129 -> 65 rows, as the steps of two round; 1025 -> 129 columns."""
    nodes = {n.layer.name: n for n in load_network(f"{name}@513x1025").nodes()}
    assert nodes["aspp.joined"].output_shape == (5 * 256, 65, 129)
    assert nodes["classifier.resize"].output_shape == (19, 513, 1025)
