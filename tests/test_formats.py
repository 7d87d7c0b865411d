"""Results in the formats that others read."""

import csv
import io
import json
import re
import shutil
import subprocess
import zipfile
from datetime import datetime

import openpyxl
import pytest
from pyarrow import parquet

from hwmodel import evaluate
from hwmodel.rerun.tables import Table
from hwmodel.specs.provenance import Input, Provenance
from hwmodel.views.formats import ENDINGS, WRITERS, Result
from hwmodel.views.latex import environment
from hwmodel.views.paper import Column, Heading, Paper
from tests.specs import CHIP, REPORT, written

COMPARE = (
    "compare",
    "vgg-small",
    "--accounting",
    "paper",
    "--hardware",
    "ascend,v100",
    "--methods",
    "fp,bold,int8",
)
TEXTS = ("markdown", "latex", "csv", "json")
BINARY = ("parquet", "excel")


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_every_writer_has_an_ending_of_its_own():
    assert ENDINGS.keys() == WRITERS.keys()
    endings = [ending for those in ENDINGS.values() for ending in those]
    assert len(set(endings)) == len(endings)


# Where results go


@pytest.mark.parametrize("format", TEXTS)
def test_a_text_is_all_that_goes_to_standard_output(hwmodel, tmp_path, format):
    code, out, err = hwmodel(*REPORT, "--format", format)
    assert code == 0
    starts = {"markdown": "Energy of one", "latex": "% hwmodel", "csv": "network,", "json": "{"}
    assert out.startswith(starts[format])
    assert "analytical, not measured" in err
    assert (out + err).lower().count("biases, data loading") == 1  # on a terminal they are one
    assert files(tmp_path) == []
    code, shown, err = hwmodel(*REPORT, "--format", format, "-o", "x/file")
    assert (code, err, files(tmp_path)) == (0, "wrote x/file\n", ["x/file"])
    assert (tmp_path / "x/file").read_text() == out
    assert "conv1" in shown


@pytest.mark.parametrize("format", WRITERS)
def test_the_ending_says_the_format_and_reruns_are_equal(hwmodel, tmp_path, format):
    ending = ENDINGS[format][0]
    assert hwmodel(*REPORT, "-o", f"one{ending}")[0] == 0
    assert hwmodel(*REPORT, "-o", f"deep/two{ending}", "--format", format)[0] == 0
    one, two = ((tmp_path / name).read_bytes() for name in (f"one{ending}", f"deep/two{ending}"))
    assert one == two
    assert files(tmp_path) == [f"deep/two{ending}", f"one{ending}"]


def test_csv_is_short_for_a_format_and_a_file(hwmodel):
    assert hwmodel(*REPORT, "--csv", "-")[1] == hwmodel(*REPORT, "--format", "csv")[1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--format", "latx"), "--format 'latx': did you mean 'latex'?"),
        (("--format", "parquet"), "--format parquet: is no text; name a file, -o FILE.parquet"),
        (("--format", "excel", "-o", "-"), "--format excel: is no text; name a file, -o FILE.xlsx"),
        (("--format", "latex", "-o", "x.csv"), "-o x.csv: ends as csv does, but --format is latex"),
        (("--csv", "x.json"), "--csv x.json: ends as json does, which -o alone writes"),
        (("--csv", "x.csv", "-o", "x.csv"), "-o x.csv: --csv goes to this file, too; give one of them another name"),
        (("-o", "x.tex", "-o", "./x.tex"), "-o x.tex: -o goes to this file, too; give one of them another name"),
        (("--csv", "-", "--format", "latex"),
         "standard output takes one table; write the other to a file, -o FILE"),
        (("--format", "csv", "-o", "x.csv", "-o", "y.tex"),
         "--format csv: is of one -o; of several each ending says its own"),
        (("-o", "x", "--csv", "x"), "-o x: the ending says what is written: .md, .markdown, .tex, "
         ".csv, .json, .parquet, .xlsx (tables), .png, .svg, .pdf (figures), as in -o x.tex; "
         "or state a --format"),
        (("--csv", "x.pdf"), "--csv x.pdf: ends as a figure does, which is asked for by -o x.pdf"),
        (("-o", "..", "--format", "csv"),
         "-o ..: is a folder, which --out names; -o names a file"),
        (("-o", "-"), "-o -: needs a --format, markdown, latex, csv, json, parquet, excel"),
        (("-o", "chip.yaml", "--format", "csv"),
         "-o chip.yaml: would be written over what looks like an input"),
        (("--csv", "net.onnx"), "--csv net.onnx: would be written over what looks like an input"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", [COMPARE, REPORT, ("reproduce", "cifar10_vgg_small")])
def test_what_contradicts_itself_is_refused_and_nothing_is_written(
    hwmodel, tmp_path, command, options, sentence
):
    assert hwmodel(*command, *options) == (2, "", f"hwmodel: {sentence}\n")
    assert files(tmp_path) == []


@pytest.mark.parametrize("command", [COMPARE, REPORT])
def test_one_command_writes_all_that_is_asked_for(hwmodel, tmp_path, command):
    """Each file is that of a command of its own."""
    for option in (("--csv", "1.csv"), ("-o", "1.tex"), ("-o", "1.svg", "--style", "neurips")):
        assert hwmodel(*command, *option)[0] == 0
    code, out, err = hwmodel(*command, "--csv", "2.csv", "-o", "2.tex", "-o", "2.svg", "--style",
                             "neurips", "--html", "2.html")  # fmt: skip
    assert code == 0 and out.startswith("vgg-small")
    assert err == "wrote 2.csv\nwrote 2.tex\nwrote 2.html\nwrote 2.svg\n"
    assert files(tmp_path) == [
        "1.csv", "1.svg", "1.tex", "2.csv", "2.html", "2.svg", "2.tex",
    ]  # fmt: skip
    for ending in ("csv", "tex", "svg"):
        one, two = ((tmp_path / f"{n}.{ending}").read_bytes() for n in (1, 2))
        assert one == two


def test_a_table_goes_to_a_pipe_and_the_rows_to_a_file(hwmodel, tmp_path):
    code, out, err = hwmodel(*REPORT, "--csv", "rows.csv", "--format", "latex")
    assert code == 0 and out == hwmodel(*REPORT, "--format", "latex")[1]
    assert "wrote rows.csv" in err and files(tmp_path) == ["rows.csv"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*COMPARE, "-o", "x.pdf", "--style", "nerips"), "no style of plots is called 'nerips'"),
        ((*COMPARE, "--csv", "x.csv", "--style", "ieee"),
         "--style ieee: no figure is drawn here; add -o FILE.pdf"),
        ((*COMPARE, "--baseline-network", "vgg-small", "-o", "x.pdf"),
         "-o x.pdf: a figure is of one network; this table has two"),
        (("reproduce", "cifar10_vgg_small", "-o", "x.pdf"),
         "-o x.pdf: no figure is drawn of this table here"),
    ],
)  # fmt: skip
def test_a_figure_that_cannot_be_is_told_and_nothing_is_written(hwmodel, tmp_path, words, sentence):
    code, out, err = hwmodel(*words)
    assert (code, out) == (2, "") and err.startswith(f"hwmodel: {sentence}")
    assert files(tmp_path) == []


def test_of_several_outputs_none_is_written_where_one_would_replace_an_input(hwmodel, tmp_path):
    hwmodel("network", "save", "vgg-small-1fc", "-o", "net.yml")
    (tmp_path / "net.yml").rename(tmp_path / "net.yaml")
    (tmp_path / "out.tex").symlink_to("net.yaml")
    code, _, err = hwmodel("report", "net.yaml", *REPORT[2:], "--csv", "a.csv", "-o", "out.tex")
    assert code == 2 and "is read by the same command" in err
    assert files(tmp_path) == ["net.yaml", "out.tex"]


@pytest.mark.parametrize(("format", "package"), [("parquet", "pyarrow"), ("excel", "xlsxwriter")])
def test_a_missing_package_is_named_with_its_extra(hwmodel, tmp_path, monkeypatch, format, package):
    monkeypatch.setattr("hwmodel.views.formats.find_spec", lambda name: None)
    ending = ENDINGS[format][0]
    assert hwmodel(*REPORT, "-o", f"x{ending}") == (
        2, "", f"hwmodel: --format {format}: needs the package {package}: "
        f"pip install 'hwmodel[{format}]'\n",
    )  # fmt: skip
    assert files(tmp_path) == []


# Every row, with every digit


@pytest.fixture
def made(hwmodel, tmp_path):
    """The rows of a comparison as CSV, and the same comparison in the file of a format."""

    def make(format):
        path = tmp_path / f"made{ENDINGS[format][0]}"
        assert hwmodel(*COMPARE, "-o", path)[0] == 0
        return rows(hwmodel(*COMPARE, "--format", "csv")[1]), path

    return make


def same(cell, value):
    """A cell of a CSV, and the value it stands for."""
    return cell == "" if value is None else type(value)(cell) == value


def test_json_has_the_rows_of_the_csv_and_what_made_them(made):
    expected, path = made("json")
    document = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert list(document) == ["provenance", "not_counted", "remarks", "rows"]
    assert len(document["rows"]) == len(expected) == 6
    for row, wanted in zip(document["rows"], expected, strict=True):
        assert list(row) == list(wanted)
        assert all(same(wanted[name], row[name]) for name in row)
    assert type(document["rows"][0]["energy"]) is float
    assert document["rows"][2]["source_percent"] is None  # int8 is published nowhere
    assert document["provenance"]["command"] == expected[0]["command"]
    hashes = [given["sha256"] for given in document["provenance"]["inputs"]]
    assert "-".join(h[:8] for h in hashes) == expected[0]["inputs_sha256"]
    assert "biases, data loading" in document["not_counted"]["paper"]


def test_parquet_has_the_rows_of_the_csv_in_columns_of_their_type(made):
    expected, path = made("parquet")
    table = parquet.read_table(path)
    types = {name: str(table.schema.field(name).type) for name in table.column_names}
    assert list(types) == list(expected[0])
    assert (types["batch"], types["energy"], types["method"]) == ("int64", "double", "string")
    for row, wanted in zip(table.to_pylist(), expected, strict=True):
        assert all(same(wanted[name], row[name]) for name in row)
    assert json.loads(table.schema.metadata[b"provenance"])["command"] == expected[0]["command"]


def test_excel_has_the_rows_of_the_csv_and_a_sheet_about_them(made):
    expected, path = made("excel")
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["rows", "about"]
    assert {book.properties.created, book.properties.modified} == {datetime(1980, 1, 1)}
    sheet = book["rows"]
    header, *lines = sheet.iter_rows()
    assert [cell.value for cell in header] == list(expected[0])
    assert all(cell.font.bold for cell in header)
    assert sheet.freeze_panes == "A2"
    assert len(lines) == len(expected)
    for line, wanted in zip(lines, expected, strict=True):
        for cell, text in zip(line, wanted.values(), strict=True):
            if isinstance(cell.value, (int, float)):  # a workbook holds 16 digits
                assert cell.value == pytest.approx(float(text), rel=1e-15)
            else:
                assert (cell.value or "") == text
    percent = header[list(expected[0]).index("percent_of_baseline")].column
    assert sheet.cell(2, percent).number_format == "0.00"
    about = [[cell.value for cell in line] for line in book["about"].iter_rows()]
    assert ["command", expected[0]["command"]] in about
    assert "analytical, not measured" in about[0][1]
    assert ["not counted under paper", "biases, data loading"] in about
    with zipfile.ZipFile(path) as inside:
        assert {entry.date_time for entry in inside.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def result(*cells, header=("layer", "accesses", "energy")):
    """A made-up result of one row."""
    paper = Paper("A caption.", "tab:x", ("layer",), (), [])
    provenance = Provenance("hwmodel report net", (Input("network", "net", "0" * 64),))
    return Result(Table(header, [cells]), paper, {}, provenance)


def test_no_cell_of_a_spreadsheet_is_a_formula(tmp_path):
    for text in ("=1+1", "+1", "-1", "@x", "\t=1"):
        found = result(text, -2, -0.5)
        (row,) = csv.reader(WRITERS["csv"](found).splitlines()[1:])
        assert row[:3] == [f"'{text}", "-2", "-0.5"]
        (tmp_path / "x.xlsx").write_bytes(WRITERS["excel"](found))
        cell = openpyxl.load_workbook(tmp_path / "x.xlsx")["rows"]["A2"]
        assert (cell.value.strip(), cell.data_type) == (text.strip(), "s")


@pytest.mark.parametrize("whole", [2**63 - 1, 2**63, 10**40, 2**53 + 1])
def test_whole_numbers_keep_every_digit_however_long(tmp_path, whole):
    found = result("conv", whole, 1.5)
    assert json.loads(WRITERS["json"](found))["rows"][0]["accesses"] == whole
    assert csv.reader(WRITERS["csv"](found).splitlines()[1:]).__next__()[1] == str(whole)
    (tmp_path / "x.parquet").write_bytes(WRITERS["parquet"](found))
    assert int(parquet.read_table(tmp_path / "x.parquet").to_pylist()[0]["accesses"]) == whole


def test_what_is_no_number_never_gets_into_json():
    with pytest.raises(ValueError, match="not JSON compliant"):
        WRITERS["json"](result("conv", 1, float("nan")))


# Tables for print


def cells(line):
    return [cell.strip() for cell in line.strip("| \n").split(" | ")]


def test_markdown_has_a_row_a_method_and_says_what_it_is(hwmodel):
    out = hwmodel(*COMPARE, "--format", "markdown")[1]
    caption, _, head, rule, *body = out.splitlines()
    assert caption.startswith(
        "Energy of one training iteration of 1 image of vgg-small on ascend and v100, and its "
        "percentage of fp on the same chip, under accounting paper. Figures of one column may be "
        "compared; across chips only percentages may; energies in pJ and in MAC (fp32) are not to "
        "be compared. Tiles under accounting paper are "
    )
    assert "; analytical, not" in caption
    assert cells(head) == [
        "method", "ascend, energy, µJ", "ascend, of fp, %", "ascend, optimal tiles, %",
        "ascend, published, %",
        "v100, energy, 10⁶ MAC (fp32)", "v100, of fp, %", "v100, optimal tiles, %",
        "v100, published, %",
    ]  # fmt: skip
    assert cells(rule) == [":--", *["--:"] * 8]
    found = {name: rest for name, *rest in map(cells, body[:3])}
    assert list(found) == ["fp", "bold", "int8"]
    for chip, at in (("ascend", 0), ("v100", 4)):
        energy = evaluate("vgg-small", chip, "bold", accounting="paper").energy / 1e6
        whole = evaluate("vgg-small", chip, "fp", accounting="paper").energy / 1e6
        best = [f"**{energy:.1f}**", f"**{100 * energy / whole:.2f}**"]  # the lowest are heavy
        assert found["bold"][at : at + 2] == best
        assert found["int8"][at + 3] == "-"  # not published
    assert (found["bold"][3], found["bold"][7]) == (
        "**3.64**",
        "**2.78**",
    )  # as the source has them
    assert "- biases, data loading" in body
    made = r"Made by `hwmodel compare vgg-small --hardware ascend,v100 .*` \(inputs [0-9a-f-]+\)\."
    assert re.fullmatch(made, body[-1])


def test_a_report_for_print_adds_up(hwmodel):
    out = hwmodel(*REPORT, "--format", "markdown")[1]
    _, _, head, _, *lines = out.split("\n\nNot counted")[0].splitlines()
    assert cells(head)[0] == "layer"
    assert cells(head)[-2:] == ["energy, µJ, sum", "share, %"]
    body = [(name, [float(x) for x in rest]) for name, *rest in map(cells, lines)]
    *layers, (last, totals) = body
    assert last == "all layers"
    for column, total in enumerate(totals):
        rounding = 0.051 * len(layers)
        assert sum(row[column] for _, row in layers) == pytest.approx(total, abs=rounding)
    for _, (*parts, total, _share) in body:
        assert sum(parts) == pytest.approx(total, abs=0.02)
    energy = evaluate("vgg-small-1fc", "ascend", "bold", accounting="paper").energy
    assert (totals[-2], totals[-1]) == (pytest.approx(energy / 1e6, abs=0.005), 100.0)


def test_several_accountings_and_a_whole_run_are_columns_of_their_own(hwmodel):
    command = ("compare", "vgg-small-1fc", "--hardware", "ascend", "--methods", "fp,bold")
    options = ("--accounting", "paper,full", "--training", "cifar10-300", "--batch", "1")
    out = hwmodel(*command, *options, "--format", "markdown")[1]
    head = cells(out.splitlines()[2])
    assert "ascend, paper, of fp, %" in head and "ascend, full, of fp, %" in head
    assert sum("cifar10-300" in cell for cell in head) == 2
    assert "under accounting paper and full" in out.splitlines()[0]


def test_a_published_table_has_a_row_for_each_network_and_method(hwmodel):
    out = hwmodel("reproduce", "cifar10_vgg_small", "--accounting", "paper", "--format", "latex")[1]
    assert r"vgg-small under fp on the same chip" in out
    assert out.count(r"\multicolumn{4}{c}") == 2
    assert "2.78" in out


HOSTILE = Paper(
    r"100 % of $x_1$ & {y} #1 ~ ^ \end{table}.",
    "tab:x",
    ("layer",),
    (
        Column(Heading("a_b", "µJ"), Heading("50% & more", "10⁶ MAC (fp32)"), 2),
        Column(Heading("c"), Heading("known_not", "%"), 1),
    ),
    [((r"conv_1\x",), (12345.678, None)), (("b|*c*`d`<e>",), (0.5, 3.0))],
    ends_in_sum=True,
)


def test_latex_and_markdown_escape_every_name():
    tex = environment(HOSTILE, ["a note\nof two lines"])
    assert tex.startswith("% a note of two lines\n")
    assert r"conv\_1\textbackslash{}x & 12\,345.68 & -- \\" in tex
    assert r"100 \% of \$x\_1\$ \& \{y\} \#1 \textasciitilde{} \textasciicircum{}" in tex
    assert r"\textbackslash{}end\{table\}" in tex
    assert r"\begin{tabular}{@{}lrr@{}}" in tex
    found = result("conv", 1, 1.0)
    text = WRITERS["markdown"](Result(found.table, HOSTILE, {"p_q": ["a_b"]}, found.provenance))
    assert r"| b\|\*c\*\`d\`\<e\> | 0.50 | 3.0 |" in text
    assert "- a\\_b" in text


def document(*tables):
    return "\n".join(
        [r"\documentclass{article}\usepackage{booktabs,longtable}\begin{document}", *tables,
         r"\ref{tab:x}\end{document}"]
    )  # fmt: skip


def test_latex_is_a_whole_table_and_compiles(hwmodel, tmp_path):
    tables = [
        hwmodel(*COMPARE, "--format", "latex")[1],
        hwmodel(*REPORT, "--format", "latex")[1],
        environment(HOSTILE, []),
    ]
    for tex in tables:
        for part in ("caption{", "label{tab:", "toprule", "bottomrule", "begin{tabular}"):
            assert tex.count(f"\\{part}") == 1
        assert re.search(r"\\begin\{(table\*?)\}\n.*\\end\{\1\}\n$", tex, re.S)
        for row in re.findall(r"^    (?!\\)(.*) \\\\$", tex, re.M):
            columns = tex.split(r"\begin{tabular}")[1].splitlines()[0].count("r") + 1
            wide = re.findall(r"\\multicolumn{(\d+)}", row)
            cells = row.replace(r"\&", "").count("&") + 1
            assert cells + sum(map(int, wide)) - len(wide) == columns
    if shutil.which("pdflatex"):
        (tmp_path / "x.tex").write_text(document(*tables), encoding="utf-8")
        run = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"],
            cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=120,
        )  # fmt: skip
        if "booktabs.sty' not found" not in run.stdout:
            assert run.returncode == 0, run.stdout[-2000:]
            assert (tmp_path / "x.pdf").stat().st_size > 0


@pytest.mark.parametrize(
    ("name", "kind", "size"),
    [
        ("a" * 20, "table}", ""),
        ("a" * 50, "table}", "\\small"),
        ("a" * 75, "table*}", "\\footnotesize"),
    ],
)
def test_a_long_line_has_smaller_type(name, kind, size):
    column = Column(Heading("ascend"), Heading("energy", "µJ"), 1)
    tex = environment(Paper("C.", "tab:x", ("layer",), (column,) * 2, [((name,), (1.0, 2.0))]), [])
    assert f"\\begin{{{kind}" in tex
    assert re.findall(r"\\(?:small|footnotesize)$", tex, re.M) == ([size] if size else [])


def test_several_chips_stand_side_by_side_ours_and_the_best_are_heavy(hwmodel):
    """Counted by hand from the table that the CSV has."""
    words = (*COMPARE, "--ours", "int8", "--optimal-tiles", "no")
    tex = hwmodel(*words, "--format", "latex")[1]
    assert tex.count("\\begin{tabular}") == 1
    assert "\\multicolumn{3}{c}{ascend} & \\multicolumn{3}{c}{v100}" in tex
    body = {line.split(" & ")[0].strip(): line for line in tex.splitlines() if " & " in line}
    assert "\\textbf{int8 (ours)}" in body and "fp" in body and "bold" in body
    assert body["bold"].count("\\textbf{") == 6  # the lowest of each column; none is ours
    assert "\\textbf{" not in body["fp"]
    assert body["\\textbf{int8 (ours)}"].count("\\textbf{") == 1
    caption = tex.split("\\caption{")[1].splitlines()[0]
    assert "Figures of one column may be compared; across chips only percentages may" in caption
    markdown = hwmodel(*words, "--format", "markdown")[1]
    assert "| **int8 (ours)** |" in markdown
    refused = hwmodel(*COMPARE, "--ours", "int9", "--format", "latex")
    message = "hwmodel: --ours int9: is no method of the table; did you mean 'int8'?\n"
    assert refused == (2, "", message)


def test_a_table_beyond_a_page_is_a_longtable():
    rows = [((f"layer{i}",), (1.0 * i, 2.0)) for i in range(60)]
    tex = environment(HOSTILE._replace(rows=rows), [])
    assert "\\usepackage{booktabs,longtable}" in tex and "begin{table" not in tex
    assert tex.count("\\begin{longtable}") == tex.count("\\end{longtable}") == 1
    for part in ("endfirsthead", "endhead", "endfoot", "endlastfoot", "label{tab:x}"):
        assert tex.count(f"\\{part}") == 1
    assert tex.count("\\caption{") == 1 and "layer59 & 59.00 & 2.0" in tex
    heads = tex.split("\\endfirsthead")
    assert all(half.count("known\\_not") == 1 for half in heads)  # on every page
    assert "\\begin{tabular}" not in tex


def test_a_chip_of_one_s_own_that_fits_nothing_leaves_a_dash(hwmodel, tmp_path):
    written(tmp_path, CHIP, ("1 KiB", "7 B"), name="chip.yaml")
    command = (
        "compare",
        "vgg-small-1fc",
        "--accounting",
        "paper",
        "--hardware",
        "ascend,chip.yaml",
        "--methods",
        "fp",
    )
    code, out, _ = hwmodel(*command, "--format", "markdown")
    assert code == 1
    assert cells(out.splitlines()[4])[-2:] == ["-", "-"]
