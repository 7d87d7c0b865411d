"""The source's tables: every digit of ours against a copy of them, and the rows by hand."""

import csv
import os
from functools import cache
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hwmodel import HwmodelError, evaluate
from hwmodel.importers.load import load_network
from hwmodel.model.compare import reproduce
from hwmodel.specs.files import load
from hwmodel.specs.method import Method
from hwmodel.specs.published import published_table, published_tables
from hwmodel.specs.training import Training
from hwmodel.views.figures.reproduced import series_of
from tests.test_figures import EXAMPLE

SOURCE = YAML(typ="safe").load(Path(__file__).parent / "data" / "paper_tables.yaml")
GLUE = ("mnli", "qqp", "qnli", "sst-2", "cola", "sst-b", "mrpc", "rte", "average")


def figures(name):
    return published_table(name).figures


def one_score(name):
    return [next(iter(f.scores.values())) for f in figures(name)]


# Every digit


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("cifar10_vgg_small", "cifar10_vgg_small"), ("imagenet_resnet18", "imagenet_resnet18")],
)
def test_accuracies_and_energies_are_the_source_s(ours, theirs):
    found = [
        (f.method.removesuffix("-kd"), s, f.energy_percent.get("ascend"), f.energy_percent.get("v100"))
        for f, s in zip(figures(ours), one_score(ours), strict=True)
    ]  # fmt: skip
    rows = SOURCE[theirs]["rows"]
    assert found == [(r["method"], r["accuracy"], r["ascend"], r["v100"]) for r in rows]
    assert [f.network for f in figures(ours)] == [r.get("network", "vgg-small") for r in rows]


def test_the_imagenet_rows_have_the_source_s_groups_and_teachers():
    for figure, row in zip(
        figures("imagenet_resnet18"), SOURCE["imagenet_resnet18"]["rows"], strict=True
    ):
        assert figure.modality == row["group"]
        teacher = load(Method, figure.method).teacher
        taught = row["group"].startswith("kd-")
        assert (teacher is not None) == taught, row
        assert not taught or teacher.network == row["group"].removeprefix("kd-")


def test_the_bits_of_rows_are_the_source_s():
    for figure, row in zip(
        figures("cifar10_vgg_small"), SOURCE["cifar10_vgg_small"]["rows"], strict=True
    ):
        assert figure.bits.split("/")[:2] == [str(row["weight_bits"]), str(row["activation_bits"])]
    for figure, row in zip(
        figures("cifar10_vgg_small_1fc"), SOURCE["cifar10_vgg_small_1fc"]["rows"], strict=True
    ):
        assert figure.bits == f"{row['forward']}/{row['training'].partition('/')[2]}"
        assert (figure.method, [*figure.scores.values()]) == (row["method"], [row["accuracy"]])


def test_the_blocks_are_the_source_s():
    rows = SOURCE["imagenet_blocks"]["rows"]
    for figure, row in zip(figures("imagenet_blocks"), rows, strict=True):
        name = f"resnet18-base{row['base']}" + ("-block2" if row["block"] == "II" else "")
        if row["base"] == 256 and row["shortcut"] == "1x1":
            name += "-1x1"
        assert figure.network == name
        assert [*figure.scores.values()] == [row["accuracy"]]
        assert ("augmented" in figure.modality) == row.get("augmented", False)
        assert (figure.method is None) == (row["first_conv_bits"] == 1)


@pytest.mark.parametrize("scale", ["x2", "x3", "x4"])
def test_super_resolution_is_the_source_s(scale):
    found = {f.network: f.scores for f in figures(f"super_resolution_{scale}")}
    of = SOURCE["super_resolution_psnr_db"][scale]
    assert found == {
        f"edsr-{scale}": of["full-edsr"], f"edsr-small-{scale}": of["small-edsr"],
        f"edsr-boolean-{scale}": of["bold"],
    }  # fmt: skip


def test_segmentation_is_the_source_s():
    of = SOURCE["segmentation_miou_percent"]
    assert one_score("cityscapes") == [*of["cityscapes"].values()]
    assert one_score("voc2012_deeplabv3") == [*of["pascal_voc_2012"]["deeplabv3"].values()]
    assert one_score("voc2012_fcn32s") == [*of["pascal_voc_2012"]["fcn-32s"].values()]
    titles = [
        f.title for name in ("cityscapes", "voc2012_fcn32s") for f in figures(name) if f.title
    ]
    assert titles == ["Binary DAD-Net", "Group-Net"]


def test_fine_tuning_is_the_source_s():
    rows = SOURCE["cifar_vgg_small_fine_tuning"]["rows"]
    for figure, row in zip(figures("cifar_fine_tuning"), rows, strict=True):
        assert (figure.ref, figure.method, figure.bits) == (row["ref"], row["method"], row["bits"])
        assert (figure.starts_from or "random") == row["init"]
        assert [*figure.scores.values()] == [row["accuracy"]]
        classes = load_network(figure.network).nodes()[-1].output_shape[0]
        assert classes == row.get("last_layer_classes", 10)


def test_glue_is_the_source_s():
    methods = ["fp", "binarybert", "bibert", "bit", "bit", "bold-bert"]
    assert [f.method for f in figures("glue")] == methods
    for figure, row in zip(figures("glue"), SOURCE["glue_percent"].values(), strict=True):
        assert figure.scores == dict(zip(GLUE, row, strict=True))
    averages = [f.scores["average"] for f in figures("glue")]
    assert averages == [*SOURCE["glue_average_percent"].values()]


def test_luq_is_the_source_s():
    of = SOURCE["luq_imagenet_resnet18"]
    assert one_score("imagenet_luq") == [of["accuracy"]]
    assert figures("imagenet_luq")[0].bits == "/".join(
        [str(of["weights_activations_gradients_bits"])] * 3
    )
    assert load(Training, "imagenet-100").epochs == of["epochs"]


def test_runs_are_as_the_source_states_them():
    of, runs = SOURCE["training"], {name: t.run for name, t in published_tables().items()}
    image, batch = of["imagenet"]["train_image"], of["imagenet"]["batch"]
    for name in ("imagenet_resnet18", "imagenet_blocks"):
        assert (runs[name].image, runs[name].batch) == ((image, image), batch)
    assert runs["super_resolution_x2"].batch == of["edsr"]["batch"]
    assert runs["cityscapes"].batch == of["cityscapes"]["batch"]
    assert runs["voc2012_deeplabv3"].batch == runs["voc2012_fcn32s"].batch == of["voc2012"]["batch"]
    assert runs["cifar10_vgg_small"].image == (of["cifar10"]["image"],) * 2
    for name, key in (
        ("cifar10-300", "cifar10"), ("imagenet-300", "imagenet"), ("cityscapes-400", "cityscapes"),
        ("voc2012-60", "voc2012"),
    ):  # fmt: skip
        training = load(Training, name)
        assert training.epochs == of[key]["epochs"]
        assert training.batch == of[key].get("batch", training.batch)
        images = of[key].get("dataset_size") or of[key].get("train_images") or training.images
        assert training.images == images
    # CIFAR-10's batch is not stated, and ours is called chosen.
    assert "batch" not in of["cifar10"] and runs["cifar10_vgg_small"].batch is None
    assert "our choice" in load(Training, "cifar10-300").sources["chosen"]


def test_every_number_of_the_source_is_in_some_table():
    """Whatever scores and percentages the source's file has, ours have."""
    theirs = set()

    def walk(value, key=""):
        if isinstance(value, dict):
            for name, part in value.items():
                walk(part, name)
        elif isinstance(value, list):
            for part in value:
                walk(part, key)
        elif isinstance(value, float):
            theirs.add(value)

    tables = {k: v for k, v in SOURCE.items() if k not in ("training", "colors", "method_traits")}
    walk(tables)
    ours = {
        x
        for t in published_tables().values()
        for f in t.figures
        for x in (*f.scores.values(), *f.energy_percent.values())
    }
    assert theirs == ours


# Every table computed


@cache
def lines(table, accounting, batch=None):
    found = reproduce(table, accounting=[accounting], batch=batch, optimal_tiles=False)
    return {(x.network.partition("@")[0], x.method, x.hardware): x for x in found}


@pytest.mark.parametrize("table", list(published_tables()))
def test_every_row_that_has_a_model_has_an_energy_on_both_chips(table):
    found = lines(table, "paper")
    assert len(found) == 2 * len(published_table(table).modelled)
    assert all(x.energy > 0 and x.batch == 1 for x in found.values())
    base = published_table(table).baseline
    whole = found.get((base.network, base.method, "ascend"))
    assert whole is None or whole.percent_of_baseline == 100


@pytest.mark.parametrize(
    ("network", "method", "chip", "batch", "residual"),
    [
        # An audit against the source: block I with its convolution everywhere; and at batch 256.
        ("resnet18-base64", "bold-bn", "ascend", 1, -0.8),
        ("resnet18-base192", "bold-bn-kd", "ascend", 1, 23.0),
        ("bi-realnet-18", "bi-realnet", "v100", 256, 4.9),
        ("bi-realnet-34", "bi-realnet", "v100", 256, 0.7),
        ("bnext-18", "bnext", "v100", 256, -7.6),
    ],
)
def test_residuals_are_those_of_an_audit(network, method, chip, batch, residual):
    found = lines("imagenet_resnet18", "paper", batch)[network, method, chip]
    assert found.residual_percent == pytest.approx(residual, abs=0.05)


def test_with_what_the_source_states_vgg_small_on_the_ascend_comes_within_7_percent():
    for method in ("binaryconnect", "xnor-net", "binarynet", "bold", "bold-bn"):
        found = lines("cifar10_vgg_small", "paper-stated")["vgg-small", method, "ascend"]
        assert abs(found.residual_percent) < 7


def test_the_stated_accounting_takes_batch_and_image_of_the_table():
    found = list(reproduce("cityscapes", accounting=["paper-stated"], optimal_tiles=False))
    assert {x.batch for x in found} == {8}
    found = list(reproduce("imagenet_luq", accounting=["paper-stated"], optimal_tiles=False))
    assert [(x.network, x.batch) for x in found] == [("resnet18@192x192", 1)] * 2
    found = list(
        reproduce("imagenet_luq", accounting=["paper-stated"], batch=3, optimal_tiles=False)
    )
    assert {x.batch for x in found} == {3}


def test_the_distilled_row_costs_what_its_method_does_until_a_teacher_is_counted():
    """The teacher of base 256 is a forward pass of ResNet-34 in full precision."""
    found = lines("imagenet_resnet18", "paper")
    alone = found["resnet18-base256", "bold", "ascend"].energy
    assert found["resnet18-base256", "bold-kd", "ascend"].energy == alone


# Image sizes


def test_a_bundled_network_is_taken_at_another_image_size():
    """192 / 224 of the rows: the convolutions of ResNet-18 have (192/224)^2 of the products."""
    usual, small = load_network("resnet18"), load_network("resnet18@192")
    assert small.input == (3, 192, 192)
    assert small.name == "resnet18@192"

    def macs(network):
        return sum(n.layer.macs(n.input_shapes) for n in network.nodes() if n.layer.kind == "conv")

    assert macs(small) * 224**2 == macs(usual) * 192**2
    assert load_network("deeplabv3-resnet18@256x512").input == (3, 256, 512)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("resnet18@big", "'big' is no image size; write resnet18@192 or resnet18@192x256"),
        ("resnet18@0", "'0' is no image size"),
        ("resnet18@192x256", "images of resnet18 have as many rows as columns"),
        ("bert-base@192", "bert-base has no image size that could be changed"),
        ("resnet19@192", "no network is called 'resnet19'"),
    ],
)
def test_an_image_size_that_cannot_be_is_one_sentence(name, sentence):
    with pytest.raises(HwmodelError, match=sentence.replace("?", r"\?")):
        load_network(name)


def test_published_figures_do_not_stand_beside_another_image_size(hwmodel):
    out = hwmodel("compare", "vgg-small@64", "--hardware", "ascend", "--methods", "bold",
                  "--accounting", "paper", "--csv", "-")[1]  # fmt: skip
    assert "vgg-small@64,bold" in out and ",3.64," not in out
    assert evaluate("vgg-small@32", "ascend", "fp", accounting="paper").energy == (
        evaluate("vgg-small", "ascend", "fp", accounting="paper").energy
    )


# Runs in stages, and a baseline of another network


def test_a_run_after_another_pays_for_both():
    """300 epochs of 500 batches of 100, twice."""
    run = load(Training, "cifar100-after-cifar10")
    assert [one.name for one in run.stages()] == ["cifar10-300", "cifar100-after-cifar10"]
    assert run.iterations(100) == 2 * 300 * 500
    assert load(Training, "cifar10-after-cifar100").iterations(100) == 2 * 300 * 500
    assert load(Training, "imagenet-two-stage").iterations(300) == 2 * 300 * 4271


def test_runs_of_rows_start_from_the_rows_they_name():
    rows = {f.ref: f for f in figures("cifar_fine_tuning")}
    usual = published_table("cifar_fine_tuning").run.training
    for figure in rows.values():
        stages = load(Training, figure.training or usual).stages()
        if figure.starts_from:
            start = rows[figure.starts_from]
            assert stages[-2].name == (start.training or usual)
        else:
            assert len(stages) == 1


def test_a_run_that_comes_after_no_run_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "version: 1\nname: mine\ntitle: Mine\nepochs: 1\nimages: 5\nbatch: 2\nafter: cifar10-30\n"
    )
    with pytest.raises(HwmodelError, match=r"no training is called 'cifar10-30'.*'cifar10-300'"):
        load(Training, path).stages()


def test_the_boolean_network_stands_beside_the_small_one_in_one_table(hwmodel):
    out = hwmodel("compare", "edsr-boolean-x2", "--hardware", "ascend", "--methods", "bold",
                  "--baseline-network", "edsr-small-x2", "--accounting", "paper",
                  "--format", "json")[1]  # fmt: skip
    first, second = [(r["network"], r["method"], r["energy"], r["percent_of_baseline"])
                     for r in records(out)]  # fmt: skip
    by = {"accounting": "paper"}
    whole = evaluate("edsr-small-x2", "ascend", "fp", **by).energy
    ours = evaluate("edsr-boolean-x2", "ascend", "bold", **by).energy
    assert first == ("edsr-small-x2", "fp", whole, 100)
    assert second == ("edsr-boolean-x2", "bold", ours, 100 * (ours / whole))


def test_a_baseline_that_is_the_same_network_changes_nothing(hwmodel):
    words = ("compare", "vgg-small-1fc", "--hardware", "ascend", "--methods", "fp,bold")
    plain, named = (
        hwmodel(*words, *more, "--accounting", "paper", "--format", "json")[1]
        for more in ((), ("--baseline-network", "vgg-small-1fc"))
    )
    rows = [[r["energy"] for r in records(text)] for text in (plain, named)]
    assert rows[0] == rows[1]


def test_tables_that_share_a_row_have_it_once_and_of_one_baseline():
    bases = {}
    for table in published_tables().values():
        for pair in table.modelled:
            bases.setdefault(pair, set()).add((table.baseline.network, table.baseline.method))
    assert all(len(of) == 1 for of in bases.values())


def records(text):
    """The rows of a JSON table."""
    import json

    return json.loads(text)["rows"]


# The source's figure


def test_the_source_s_figure_has_published_and_our_energies():
    rows = SOURCE["cifar10_vgg_small"]["rows"]
    found = [x for x in reproduce("cifar10_vgg_small", accounting=["paper"], optimal_tiles=False)]
    series = series_of(published_table("cifar10_vgg_small"), found)
    for chip in ("ascend", "v100"):
        published = [(p.method, p.x, p.y) for p in series[chip, "published"]]
        assert published == [(r["method"], r[chip], r["accuracy"]) for r in rows]
        ours = {p.method: (p.x, p.y) for p in series[chip, "paper"]}
        scores = {r["method"]: r["accuracy"] for r in rows}
        assert ours == {
            x.method: (x.percent_of_baseline, scores[x.method]) for x in found if x.hardware == chip
        }


def test_the_source_s_figure_is_drawn_where_it_is_asked_for(hwmodel, tmp_path):
    words = ("reproduce", "--figure", "1", "--accounting", "paper", "--optimal-tiles", "no")
    code, out, err = hwmodel(*words, "-o", "one.svg")
    assert (code, out, err) == (0, "", "wrote one.svg\n")
    drawn = (tmp_path / "one.svg").read_text(encoding="utf-8")
    for method in ("fp", "binaryconnect", "xnor-net", "binarynet"):
        assert drawn.count(f">{load(Method, method).title}<") == 4, method  # a panel each
    for panel in ("ascend, published", "v100, published", "ascend, paper", "v100, paper"):
        assert f">{panel}<" in drawn
    hwmodel(*words, "--out", "there")
    stem = "there/reproduce_figure1_paper"
    assert sorted(p.name for p in (tmp_path / "there").iterdir()) == [
        f"{stem.partition('/')[2]}.png", f"{stem.partition('/')[2]}.svg"
    ]  # fmt: skip


def test_a_figure_that_the_source_has_not_is_refused(refused):
    said = refused("reproduce", "--figure", "7")
    assert said == "--figure 7: the source's figures of energy are 1"
    said = refused("reproduce", "glue", "--figure", "1")
    assert said == "--figure 1 is of cifar10_vgg_small, not of glue"


# Headlines


@pytest.mark.parametrize("batch", [1, 64])
def test_headlines_stand_beside_narrower_full_precision_at_their_batch(batch):
    """The table of docs/model.md, section 8, and what README says of batch 64."""
    docs = Path(__file__).parent.parent / "docs"
    text = (
        (docs / "model.md").read_text(encoding="utf-8").partition("## 8 ")[2].partition("## 9 ")[0]
    )
    methods = ("fp", "fp16", "int8", "bold", "bold-bn")
    paid = {
        m: evaluate("vgg-small", "ascend", m, accounting="full", batch=batch).energy
        for m in methods
    }
    shares = [
        f"{100 * paid[mine] / paid[whole]:.1f}"
        for mine in ("bold", "bold-bn")
        for whole in ("fp", "fp16", "int8")
    ]
    assert f"| {batch} | {' | '.join(shares)} |" in text
    readme = (docs.parent / "README.md").read_text(encoding="utf-8")
    wide, half, narrow = shares[:3]
    if batch == 64:
        said = f"At batch 64 it is {wide}, {half} and {narrow} % under `full`"
        assert said in " ".join(readme.split())
    else:
        said = f"{wide}, {half} and {narrow} % under `full`, all at batch 1"
        assert said in " ".join(readme.split())


@pytest.mark.parametrize("batch", [1, 64])
def test_headlines_of_the_source_s_count_stand_beside_narrower_full_precision(batch):
    docs = Path(__file__).parent.parent / "docs"
    by = {"accounting": "paper", "batch": batch}
    ours = evaluate("vgg-small", "ascend", "bold", **by).energy
    wholes = [evaluate("vgg-small", "ascend", m, **by).energy for m in ("fp", "fp16", "int8")]
    wide, half, narrow = (100 * ours / whole for whole in wholes)
    said = f"{wide:.2f}, {half:.2f} and {narrow:.2f} %"
    assert said in (docs / "model.md").read_text(encoding="utf-8")
    if batch == 1:
        readme = (docs.parent / "README.md").read_text(encoding="utf-8")
        readme = " ".join(readme.split())
        assert f"{wide:.1f} % of 32-bit full precision, {half:.1f} % of training with 16" in readme
        assert f"{narrow:.1f} % with 8-bit integers under `paper`" in readme
        with EXAMPLE.open(encoding="utf-8") as stream:  # which test_docs makes anew
            (then,) = (
                row
                for row in csv.DictReader(stream)
                if [row[x] for x in ("method", "hardware", "accounting")]
                == ["bold", "ascend", "chip"]
            )
        narrow_ = evaluate("vgg-small", "ascend", "int8", accounting="chip").energy
        shares = [
            f"{float(then['percent_of_baseline']):.1f}",
            f"{100 * float(then['energy']) / narrow_:.1f}",
        ]
        page = (docs / "index.md").read_text(encoding="utf-8")
        assert f"{wide:.1f} % or {shares[0]} % of 32-bit full precision, {narrow:.1f} or " in page
        assert f" or {shares[1]} % of training with 8-bit integers, all at batch 1" in page


@pytest.mark.skipif(os.environ.get("HWMODEL_TESTS") != "thorough", reason="20 s")
def test_residuals_at_batch_256_and_as_stated_are_those_of_the_pages():
    """docs/model.md, section 8, and docs/validation.md: signed percentages, row by row."""
    docs = Path(__file__).parent.parent / "docs"
    model, validation = (
        (docs / name).read_text(encoding="utf-8") for name in ("model.md", "validation.md")
    )
    large = lines("imagenet_resnet18", "paper", 256)
    for network in ("resnet18-base64", "bi-realnet-18", "bi-realnet-34", "bnext-18"):
        (found,) = [x for (n, _, chip), x in large.items() if (n, chip) == (network, "v100")]
        assert f"{found.residual_percent:+.1f}" in model
        assert f"{found.residual_percent:+.1f}" in validation
    of_ascend = [abs(x.residual_percent) for (n, m, chip), x in large.items()
                 if chip == "ascend" and x.residual_percent]  # fmt: skip
    assert 54 <= min(of_ascend) < 55 and "within 54 %" in validation
    stated = lines("imagenet_resnet18", "paper-stated")
    for chip, low, high in (("ascend", "-60.5", "+59.4"), ("v100", "-64.7", "+4,881.6")):
        mine = [x.residual_percent for (_, m, of), x in stated.items()
                if of == chip and x.residual_percent]  # fmt: skip
        assert (f"{min(mine):+,.1f}", f"{max(mine):+,.1f}") == (low, high)
        assert f"from {low} to {high} %" in model
    alone = lines("imagenet_resnet18", "paper-stated", 256)["resnet18-base64", "bold-bn", "v100"]
    assert f"At batch 256 that row is at {alone.residual_percent:+.1f} %" in model
