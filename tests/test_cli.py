"""The command line: what it prints, what it writes, how it refuses."""

import csv
import io
import os
import subprocess
import sys
from collections import Counter
from math import fsum
from pathlib import Path

import pytest

import hwmodel as hwmodel_package
from hwmodel import evaluate
from hwmodel.graph.zoo import zoo
from hwmodel.specs.files import _bundled, bundled, load
from hwmodel.specs.hardware import Hardware
from tests.specs import ACCOUNTING, CHIP, COMPARE, METHOD, NETWORK, REPORT, unsaid, written

COMPARE_COLUMNS = (
    "network,method,hardware,accounting,mode,batch,energy,unit,percent_of_baseline,forward,"
    "backward_input,backward_weight,update,forward_product,forward_elementwise,"
    "backward_input_product,backward_input_elementwise,backward_weight_product,"
    "backward_weight_elementwise,compute,memory,static,source_percent,residual_percent,energy_optimal_tiles,"
    "percent_of_baseline_optimal_tiles,peak_bytes,time_overlapped_s,time_serial_s,power_w,edp_js,accumulate,lacking_memory,"
    "lacking_bytes,version,inputs_sha256,command"
)
REPORT_COLUMNS = (
    "network,hardware,method,accounting,batch,layer,pass,component,tensor,role,memory,operation,"
    "direction,bits,elements,count,price,energy,unit,version,inputs_sha256,command"
)
NATURE = "All figures are analytical, not measured."


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def ending(said):
    """The last two lines: what kind of figures they are, and what made them."""
    nature, made = said.splitlines()[-2:]
    assert made.startswith(f"hwmodel {hwmodel_package.__version__}, inputs ")
    return nature, made


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


# What is asked of each command


def test_a_closed_pipe_cuts_the_screen_short_and_no_file(tmp_path):
    words = (sys.executable, "-m", "hwmodel", "compare", "conv-mnist", "--hardware", "ascend",
             "--methods", "fp", "--accounting", "paper", "--optimal-tiles", "no")  # fmt: skip
    for more in (("--csv", "a.csv"), ("-o", "b.tex", "--html", "c.html")):
        with subprocess.Popen(
            [*words, *more], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            if len(more) > 2:
                assert run.stdout.readline()  # as head -1 does; else before anything is printed
            run.stdout.close()
            told = run.stderr.read()
        assert "wrote" in told and "Traceback" not in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.tex", "c.html"]
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            run = subprocess.run([*words, "--csv", "d.csv"], cwd=tmp_path, stdout=full,
                                 stderr=subprocess.PIPE, text=True)  # fmt: skip
        assert run.returncode == 2 and (tmp_path / "d.csv").exists()
        assert "No space left" in run.stderr and "Traceback" not in run.stderr


def test_csv_to_standard_output_is_only_csv(hwmodel, tmp_path):
    code, out, err = hwmodel(*COMPARE, "--csv", "-")
    assert code == 0
    header, *lines = out.splitlines()
    assert header == COMPARE_COLUMNS
    assert [line.split(",")[1:3] for line in lines] == [
        ["fp", "ascend"], ["bold", "ascend"], ["fp", "v100"], ["bold", "v100"]
    ]  # fmt: skip
    assert "Not counted under accounting paper:\n  - " in err
    assert ending(err)[0] == NATURE
    assert files(tmp_path) == []


def test_a_comparison_keeps_every_digit(hwmodel):
    rows = table(hwmodel(*COMPARE, "--csv", "-")[1])
    for row in rows:
        report = evaluate("vgg-small-1fc", row["hardware"], row["method"], accounting="paper")
        assert float(row["energy"]) == report.energy
        assert row["unit"] == report.unit
    whole, part = (float(row["energy"]) for row in rows[:2])
    assert float(rows[1]["percent_of_baseline"]) == pytest.approx(100 * part / whole, rel=1e-12)


def test_a_comparison_on_screen_has_percent_energy_unit_published_and_residual(hwmodel):
    code, out, _ = hwmodel(
        "compare",
        "vgg-small",
        "--hardware",
        "ascend,v100",
        "--methods",
        "fp,bold",
        "--accounting",
        "paper",
    )
    assert code == 0
    assert (
        "vgg-small on ascend: energy of one training iteration of 1 image, accounting paper" in out
    )
    for heading in (
        "energy, mJ",
        "energy, 10⁶ MAC",
        "% of fp",
        "published %",
        "residual %",
        "memory",
    ):
        assert heading in out or heading.replace("mJ", "µJ") in out
    bold = next(line.split() for line in out.splitlines() if line.split()[:1] == ["bold"])
    assert "3.64" in bold
    assert ending(out)[0] == NATURE


def test_files_go_to_the_folder_that_is_named_or_to_reports(hwmodel, drawn, tmp_path):
    stem = "compare_vgg-small-1fc_ascend+v100_fp+bold_paper_training_batch1"
    three = [f"{stem}.csv", f"{stem}_methods.png", f"{stem}_methods.svg"]
    kinds = ("pareto", "passes")  # accuracies of both methods are published
    more = [f"{stem}_{kind}.{ending}" for kind in kinds for ending in ("png", "svg")]
    _, _, err = hwmodel(*COMPARE)
    assert err == f"wrote reports/{stem}.csv, and methods as .png and .svg beside it\n"
    _, _, err = hwmodel(*COMPARE, "--out", "mine/deep")
    assert err.endswith("methods, passes, pareto as .png and .svg beside it\n")
    assert files(tmp_path) == [
        *(f"mine/deep/{x}" for x in (*three, *more)), *(f"reports/{x}" for x in three)
    ]  # fmt: skip


def test_a_csv_that_is_named_is_the_only_file(hwmodel, tmp_path):
    _, _, err = hwmodel(*COMPARE, "--csv", "x/mine.csv")
    assert err == "wrote x/mine.csv\n"
    assert files(tmp_path) == ["x/mine.csv"]
    assert (tmp_path / "x/mine.csv").read_text() == hwmodel(*COMPARE, "--csv", "-")[1]


def test_a_report_is_by_layer_pass_tensor_and_memory(hwmodel, tmp_path):
    code, out, _ = hwmodel(*REPORT, "--out", "o")
    assert code == 0
    assert ending(out)[0] == NATURE
    stem = "report_vgg-small-1fc_ascend_bold_paper_training_batch1"
    kinds = ("layers", "level-tensor", "levels", "passes", "roofline")
    endings = [".csv", *(f"_{kind}.{ending}" for kind in kinds for ending in ("png", "svg"))]
    assert files(tmp_path) == [f"o/{stem}{ending}" for ending in endings]
    text = (tmp_path / "o" / f"{stem}.csv").read_text()
    assert text.splitlines()[0] == REPORT_COLUMNS
    rows, report = table(text), evaluate("vgg-small-1fc", "ascend", "bold", accounting="paper")
    assert fsum(float(row["energy"]) for row in rows) == pytest.approx(report.energy, rel=1e-12)
    assert {row["memory"] for row in rows} == {"L3", "L2", "L1", "L0-A", "L0-B", ""}
    for row in rows:
        assert (row["memory"] == "") == (row["direction"] == "operate") == (row["operation"] != "")
        assert int(row["count"]) * float(row["price"]) == float(row["energy"])


def test_batch_mode_and_baseline_are_taken(hwmodel):
    options = ("--batch", "3", "--mode", "inference", "--baseline", "bold", "--csv", "-")
    rows = table(hwmodel(*COMPARE, *options)[1])
    assert {(row["batch"], row["mode"]) for row in rows} == {("3", "inference")}
    assert [row["percent_of_baseline"] for row in rows if row["method"] == "bold"] == ["100.0"] * 2
    assert all(float(row["backward_input"]) == 0 < float(row["forward"]) for row in rows)


def test_files_of_one_s_own_stand_where_names_do(hwmodel, tmp_path):
    written(tmp_path, NETWORK, name="net.yaml")
    written(tmp_path, CHIP, name="chip.yaml")
    written(tmp_path, METHOD, name="method.yaml")
    written(tmp_path, ACCOUNTING, name="counted.yaml")
    code, out, _ = hwmodel(
        "compare", "net.yaml", "--hardware", "chip.yaml,ascend", "--methods", "fp,method.yaml",
        "--accounting", "counted.yaml", "--csv", "-",
    )  # fmt: skip
    assert code == 0
    assert {(row["network"], row["accounting"]) for row in table(out)} == {("net", "mine")}
    assert [row["hardware"] for row in table(out)] == ["chip", "chip", "ascend", "ascend"]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_figure_is_drawn_again_from_its_csv(hwmodel, tmp_path, ending):
    hwmodel(*COMPARE, "--out", "o")
    (made,) = (tmp_path / "o").glob("*.csv")
    code, _, err = hwmodel("plot", made, "-o", f"new/again.{ending}")
    assert (code, err) == (0, f"wrote new/again.{ending}\n")
    first = made.with_name(f"{made.stem}_methods.{ending}")
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    again = (tmp_path / f"new/again.{ending}").read_bytes()
    assert again.startswith(starts[ending])
    if first.exists():
        assert again == first.read_bytes()


@pytest.mark.parametrize("kind", ["layers", "levels"])
def test_every_kind_of_plot_of_a_report(hwmodel, tmp_path, kind):
    hwmodel(*REPORT, "--csv", "r.csv")
    assert hwmodel("plot", "r.csv", "--kind", kind, "-o", "r.svg")[0] == 0
    text = (tmp_path / "r.svg").read_text()
    for word in {
        "layers": ("conv1", "fc1", "backward weight"),
        "levels": ("L0-A", "(operations)", "dO: loss signal of O"),
    }[kind]:
        assert f">{word}<" in text


def test_bars_are_as_high_as_the_csv_says(hwmodel, tmp_path):
    hwmodel(*COMPARE, "--csv", "c.csv")
    hwmodel("plot", "c.csv", "-o", "c.svg")
    text = (tmp_path / "c.svg").read_text()
    for row in table((tmp_path / "c.csv").read_text()):
        percent = f"{float(row['percent_of_baseline']):#.3g}".rstrip(".")  # three digits, zeros too
        assert f">{percent}<" in text


# Catalogues


KINDS = {
    "hardware": ("ascend", "v100"),
    "network": ("vgg-small", "vgg-small-1fc"),
    "method": ("binaryconnect", "binarynet", "bold", "bold-bn", "fp", "xnor-net"),
    "accounting": ("paper",),
    "training": ("cifar10-300",),
}


@pytest.mark.parametrize("word", KINDS)
def test_the_catalogue_lists_shows_and_checks_what_is_bundled(hwmodel, word):
    code, out, _ = hwmodel(word, "list")
    assert code == 0
    listed = [line.split()[0] for line in out.splitlines()]
    assert set(KINDS[word]) <= set(listed)
    for name in KINDS[word]:
        assert hwmodel(word, "check", name) == (0, f"{name}: {word} {name} is right\n", "")
        code, out, _ = hwmodel(word, "show", name)
        assert code == 0
        assert name in out


@pytest.mark.filterwarnings("ignore::hwmodel.errors.SpecWarning")
@pytest.mark.parametrize("name", bundled(Hardware))
def test_what_is_shown_of_a_chip_is_its_file_and_can_be_saved(hwmodel, tmp_path, name):
    """Below it the chip is drawn, in comments."""
    shown = hwmodel("hardware", "show", name)[1]
    file, _, drawn = shown.partition("\n\n# The chip")
    assert file + "\n" == bundled(Hardware)[name].read_text()
    assert all(line.startswith("#") for line in drawn.splitlines()[1:])
    (tmp_path / "mine.yaml").write_text(shown)
    assert load(Hardware, tmp_path / "mine.yaml") == load(Hardware, name)


def test_a_network_is_shown_layer_by_layer(hwmodel):
    out = hwmodel("network", "show", "vgg-small")[1]
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.split()}
    bops = f"{150_994_944 * 32 * 32:,}"
    conv2 = f"conv2 conv act1 128 x 32 x 32 147,456 150,994,944 {bops} 32 32 589,824 524,288"
    assert rows["conv2"] == conv2.split()
    assert rows["all"][:4] == ["all", "layers", "14,029,696", "616,966,144"]


def test_a_file_of_one_s_own_is_checked(hwmodel, tmp_path):
    written(tmp_path, CHIP, name="chip.yaml")
    assert hwmodel("hardware", "check", "chip.yaml") == (
        0,
        "chip.yaml: hardware chip is right\n",
        "",
    )
    written(tmp_path, CHIP, ("64 KiB", "0"), name="chip.yaml")
    code, out, err = hwmodel("hardware", "check", "chip.yaml")
    assert (code, out) == (2, "")
    assert err == (
        "hwmodel: chip.yaml:8: levels.SRAM.capacity: 0 has no unit; write a size as in '64 KiB', or "
        "'unlimited'\n"
    )


# Refusals


def replaced(arguments, old, new):
    return [new if argument == old else argument for argument in arguments]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (replaced(COMPARE, "vgg-small-1fc", "vgg-smal"),
         "no network is called 'vgg-smal': did you mean 'vgg-small'?"),
        (replaced(COMPARE, "ascend,v100", "ascend,v10"),
         "no hardware is called 'v10': did you mean 'v100'?"),
        (replaced(COMPARE, "fp,bold", "fp,bolt"), "no method is called 'bolt': did you mean 'bold'?"),
        (replaced(COMPARE, "fp,bold", "fp,,bold"),
         "--methods 'fp,,bold': names separated by commas, none of them empty"),
        (replaced(COMPARE, "fp,bold", "fp,bold,fp"), "--methods 'fp,bold,fp': fp stands there twice"),
        ((*COMPARE, "--baseline", "fpp"), "no method is called 'fpp': did you mean 'fp'?"),
        ((*unsaid(COMPARE), "--accounting", "papers"), "no accounting is called 'papers': did you mean 'paper'?"),
        ((*COMPARE, "--batch", "0"), "batch 0: must be a whole number from 1 to 2147483648"),
        ((*COMPARE, "--batch", "-3"), "batch -3: must be a whole number from 1 to 2147483648"),
        ((*COMPARE, "--mode", "train"), "mode 'train': must be one of training, inference"),
        ((*REPORT, "--mode", "Inference"), "mode 'Inference': must be one of training, inference"),
        (replaced(REPORT, "bold", "bol"), "no method is called 'bol': did you mean 'bold'?"),
        (("hardware", "show", "asc"), "no hardware is called 'asc': did you mean 'ascend'?"),
        (("network", "check", "none.yaml"), "none.yaml: cannot be read: No such file or directory"),
        (("plot", "none.csv", "-o", "x.png"), "none.csv: cannot be read: No such file or directory"),
        (("plot", ".", "-o", "x.png"), ".: cannot be read: Is a directory"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_message_and_exit_2_and_nothing_is_written(
    hwmodel, tmp_path, arguments, sentence
):
    assert hwmodel(*arguments) == (2, "", f"hwmodel: {sentence}\n")
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    "arguments",
    [("compar",), (*COMPARE, "--batch", "many"), ("report", "vgg-small"), ("plot", "x.csv")],
)
def test_a_call_that_is_no_call_exits_2(hwmodel, tmp_path, arguments):
    code, out, err = hwmodel(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert files(tmp_path) == []


def test_a_place_that_cannot_be_written_is_one_message(hwmodel, tmp_path):
    (tmp_path / "file").write_text("old")
    code, _, err = hwmodel(*COMPARE, "--csv", "file/x.csv")
    assert (code, err) == (2, "hwmodel: file/x.csv: cannot be written: File exists\n")
    assert files(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("change", "arguments", "sentence"),
    [
        (None, ("-o", "x.bmp"), "x.bmp: a figure ends in .png, .svg, .pdf"),
        (None, ("-o", "x"), "x: a figure ends in .png, .svg, .pdf"),
        (None, ("-o", "x.png", "--kind", "levels"), "a plot of levels needs a CSV of `hwmodel report`; of `compare` there are methods, passes, "
         "pareto"),
        (None, ("-o", "x.png", "--kind", "method"),
         "no plot is called 'method': did you mean 'methods'?"),
        (lambda text: text.replace("energy", "enrgy"), ("-o", "x.png"),
         "c.csv:1: has not the columns of a `compare` or a `report` CSV"),
        (lambda text: "", ("-o", "x.png"),
         "c.csv:1: has not the columns of a `compare` or a `report` CSV"),
        (lambda text: text.splitlines()[0], ("-o", "x.png"), "c.csv: has no rows"),
        (lambda text: text.rsplit(',"hwmodel', 1)[0], ("-o", "x.png"),
         "c.csv:5: has not as many cells as the header"),
        (lambda text: text.replace("\n", ",1\n").replace(",1\n", "\n", 1), ("-o", "x.png"),
         "c.csv:2: has not as many cells as the header"),
        (lambda text: text.replace("training,1,", "training,1,-"), ("-o", "x.png"), None),
        (lambda text: text.replace("training,1,", "training,1,x"), ("-o", "x.png"), None),
        (lambda text: text.replace("training,1,", "training,1,nan,"), ("-o", "x.png"),
         "c.csv:2: has not as many cells as the header"),
    ],
)  # fmt: skip
def test_a_table_that_is_not_ours_is_not_drawn(hwmodel, tmp_path, change, arguments, sentence):
    path = tmp_path / "c.csv"
    hwmodel(*COMPARE, "--csv", path)
    if change:
        path.write_text(change(path.read_text()))
    code, out, err = hwmodel("plot", "c.csv", *arguments)
    assert (code, out) == (2, "")
    if sentence:
        assert err == f"hwmodel: {sentence}\n"
    else:
        assert err.startswith("hwmodel: c.csv:2: energy '") and err.endswith("' is no energy\n")
    assert files(tmp_path) == ["c.csv"]


def test_a_comparison_cannot_be_drawn_from_a_report(hwmodel):
    hwmodel(*REPORT, "--csv", "r.csv")
    assert hwmodel("plot", "r.csv", "--kind", "methods", "-o", "x.png") == (
        2, "", "hwmodel: a plot of methods needs a CSV of `hwmodel compare`; of `report` there are layers, "
        "levels, passes, level-tensor, roofline\n"
    )  # fmt: skip


def test_a_mistake_in_one_s_own_file_is_told_with_its_place(hwmodel, tmp_path):
    written(tmp_path, CHIP, ("50 pJ/B", "-50 pJ/B"), name="chip.yaml")
    assert hwmodel(*replaced(COMPARE, "ascend,v100", "ascend,chip.yaml"), "--csv", "-") == (
        2, "", "hwmodel: chip.yaml:7: levels.DRAM.access_energy: '-50 pJ/B': an energy must be finite "
        "and at least 0\n"
    )  # fmt: skip


def test_a_layer_that_fits_nowhere_is_told_with_its_place(hwmodel, tmp_path):
    written(tmp_path, CHIP, ("1 KiB", "7 B"), name="chip.yaml")
    assert hwmodel(*replaced(REPORT, "ascend", "chip.yaml")) == (
        2, "", "hwmodel: conv1, forward on chip: no tile fits: one element of I and F needs 64 bit, RF "
        "holds 56 (1 B too few)\n"
    )  # fmt: skip


# Fresh processes


def started(*arguments, cwd, seed="0", code=None):
    command = [sys.executable, "-W", "error", *(["-c", code] if code else ["-m", "hwmodel"])]
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [*command, *arguments], cwd=cwd, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_a_rerun_gives_the_same_bytes_whatever_the_hash_seed(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    processes = [
        started(*REPORT, cwd=folder, seed=seed) for folder, seed in zip(folders, "17", strict=True)
    ]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert said[0] == said[1]
    made = [{name: (folder / name).read_bytes() for name in files(folder)} for folder in folders]
    assert made[0] == made[1]
    assert {name.rsplit(".")[-1] for name in made[0]} == {"csv", "png", "svg"}


@pytest.mark.parametrize("command", [(), ("compare",), ("network", "show")])
def test_help_imports_nothing_heavy(tmp_path, command):
    code = "import sys\nfrom hwmodel.cli import main\ntry:\n    main()\nfinally:\n    print(*sys.modules)\n"
    process = started(*command, "--help", cwd=tmp_path, code=code)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert "Usage: hwmodel" in out
    loaded = set(out.splitlines()[-1].split())
    heavy = {
        "numpy",
        "pandas",
        "matplotlib",
        "ruamel.yaml",
        "rich",
        "hwmodel.model",
        "hwmodel.graph",
    }
    assert "hwmodel.cli" in loaded and not loaded & heavy


@pytest.mark.parametrize("arguments", [COMPARE, REPORT])
def test_numbers_alone_import_nothing_that_draws_or_prints_tables(tmp_path, arguments):
    code = "import sys\nfrom hwmodel.cli import main\ntry:\n    main()\nfinally:\n    print(*sys.modules)\n"
    process = started(*arguments, "--csv", "-", cwd=tmp_path, code=code)
    out, _ = process.communicate()
    *table, loaded = out.splitlines()
    assert process.returncode == 0 and table[0].endswith("version,inputs_sha256,command")
    assert not set(loaded.split()) & {
        "pandas",
        "matplotlib",
        "rich",
        "pyarrow",
        "jinja2",
        "hwmodel.vary",
    }


def test_help_names_what_is_in_brackets(hwmodel):
    """Texts are printed as they are: nothing takes brackets for markup."""
    assert "'dotted.path: [low, high]'" in hwmodel("sensitivity", "--help")[1]


def test_the_version_is_said(hwmodel):
    assert hwmodel("--version")[:2] == (0, "hwmodel 0.1.0.dev0\n")


def test_a_reader_who_has_seen_enough_is_no_error(tmp_path):
    with started(*COMPARE, "--csv", "-", cwd=tmp_path) as process:
        process.stdout.close()
        assert process.stderr.read() == ""


def test_the_functions_stay_functions_whatever_is_imported(tmp_path):
    code = (
        "import hwmodel\n"
        "for _ in range(2):\n"
        "    assert hwmodel.evaluate('mlp-784-512-512-10', 'v100', 'fp').energy > 0\n"
        "    assert list(hwmodel.compare('mlp-784-512-512-10', ['v100'], ['fp']))\n"
        "import hwmodel.model.compare, hwmodel.model.evaluate\n"
        "from hwmodel import Report, compare, evaluate\n"
        "assert callable(compare) and callable(evaluate) and callable(hwmodel.evaluate)\n"
        "try:\n    hwmodel.evalute\n"
        "except AttributeError as error:\n    print(error)\n"
    )
    process = started(cwd=tmp_path, code=code)
    assert process.communicate() == ("module 'hwmodel' has no attribute 'evalute'\n", "")


@pytest.mark.parametrize(("option", "kind"), [("hardware", "hardware"), ("method", "method")])
def test_where_one_name_is_expected_several_are_told_apart_from_a_misspelt_one(
    hwmodel, option, kind
):
    given = {"hardware": "ascend", "method": "fp"} | {option: "ascend,fp"}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    code, _, err = hwmodel("report", "vgg-small", *words, "--accounting", "paper")
    assert (code, err) == (2, f"hwmodel: no {kind} is called 'ascend,fp': one is expected here\n")


# What is read, and how often

opened: list[str] = []  # names of specs and networks


def _seen(event, arguments):
    name = str(arguments[0]) if event == "open" else ""
    if name.endswith((".yaml", ".onnx")):
        opened.append(Path(name).name)


@pytest.fixture(scope="module")
def watched():
    """See what is opened: a hook stays until the process ends, so there is one."""
    sys.addaudithook(_seen)


MINE = ("--hardware", "chip.yaml", "--accounting", "counted.yaml")


LONG = pytest.mark.skipif(os.environ.get("HWMODEL_TESTS") != "thorough", reason="30 s in all")


@pytest.mark.parametrize("network", ["net.yaml", "net.onnx", pytest.param("vgg-small", marks=LONG)])
@pytest.mark.parametrize(
    "asked",
    [
        ("report", "--method", "method.yaml", "--csv", "-"),
        ("report", "--method", "method.yaml", "--html", "r.html"),
        ("report", "--method", "method.yaml", "--out", "made"),
        ("compare", "--methods", "method.yaml,fp", "--out", "made"),
        ("compare", "--methods", "method.yaml,fp", "--html", "c.html"),
        ("explain", "--method", "method.yaml", "--layer", "conv1"),
        ("sensitivity", "--methods", "method.yaml,fp", "--samples", "0", "--jobs", "1", "--csv", "-"),
    ],
    ids=lambda asked: f"{asked[0]} {asked[-2]}",
)  # fmt: skip
def test_every_file_is_read_once_a_command(hwmodel, watched, tmp_path, network, asked):
    for name, text in (
        ("chip", CHIP),
        ("method", METHOD),
        ("counted", ACCOUNTING),
        ("net", NETWORK),
    ):
        written(tmp_path, text, name=f"{name}.yaml")
    if network.endswith(".onnx"):
        onnx_file(tmp_path / network)
    opened.clear()
    _bundled.cache_clear()
    zoo.cache_clear()
    code, _, err = hwmodel(asked[0], network, *asked[1:], *MINE)
    assert code == 0, err
    read = Counter(opened)
    assert read["chip.yaml"] == read["method.yaml"] == read["counted.yaml"] == 1
    assert read[network if "." in network else "zoo.yaml"] == 1
    assert set(read.values()) == {1}, read


def onnx_file(path):
    """A convolution called conv1, as another tool would write it."""
    onnx = pytest.importorskip("onnx")
    make, real = onnx.helper, onnx.TensorProto.FLOAT
    node = make.make_node("Conv", ["x", "w"], ["y"], name="conv1", pads=[1, 1, 1, 1])
    weight = make.make_tensor("w", real, [5, 3, 3, 3], [1.0] * 135)
    shapes = (("x", [1, 3, 8, 8]), ("y", None))
    ends = [[make.make_tensor_value_info(name, real, shape)] for name, shape in shapes]
    onnx.save(make.make_model(make.make_graph([node], "net", *ends, [weight])), path)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("there.txt", "is a file; --out names a folder"),
        ("new.csv", "--out names a folder; one file is -o new.csv"),
        ("new.html", "--out names a folder; one file is --html new.html"),
    ],
)
def test_out_is_a_folder(hwmodel, tmp_path, name, said):
    (tmp_path / "there.txt").write_text("mine")
    code, out, err = hwmodel(*REPORT, "--out", name)
    assert (code, out, err) == (2, "", f"hwmodel: --out {name}: {said}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["there.txt"]
    assert (tmp_path / "there.txt").read_text() == "mine"
