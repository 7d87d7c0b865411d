"""The HTML file: what stands in it is the report, and it needs nothing and lets nothing in."""

import hashlib
import json
import re
import shlex
from dataclasses import replace
from math import fsum

import pytest

from hwmodel import evaluate
from hwmodel.graph.network import Network
from hwmodel.model.compare import compare
from hwmodel.model.ledger import Ledger
from hwmodel.specs.provenance import Provenance, input_of
from hwmodel.views.explain.explanation import explanation
from hwmodel.views.html import derivation as derivations
from hwmodel.views.html import page as module
from hwmodel.views.html.page import page
from tests.page import number, parsed, rows
from tests.specs import CHIP, COMPARE, METHOD, REPORT, unsaid
from tests.specs import written as file

PASSES = ("forward", "backward_input", "backward_weight", "update")
HOSTILE = "\"onmouseover=pwned=1 x='</title></script><script>pwned = 1</script>{{ 7 * 7 }}&amp;"


def origin(lines):
    """Provenance of lines, and the specs that its inputs are of."""
    specs = {}
    for report in (line.report for line in lines if line.report):
        for spec in (report.network, report.hardware, report.method, report.accounting):
            specs[spec.KIND, spec.name] = spec
    inputs = tuple(map(input_of, specs.values()))
    return Provenance(f"hwmodel compare {lines[0].network}", inputs), specs.values()


def compared(network="vgg-small", chips=("ascend",), methods=("fp", "bold"), **options):
    """Under `full`, which takes less time than what is usual."""
    return list(compare(network, chips, methods, **{"accounting": "full"} | options))


def report_page(network="vgg-small", method="bold", **options):
    """The page of one method on one chip, and its report."""
    lines = compared(network, methods=("fp", method), **options)
    return page(lines, lines[1:], *origin(lines)), lines[1].report


# The numbers


def test_steps_over_time_are_the_report_s():
    """Bars follow one another in time; times and what is waited for are the report's."""
    text, report = report_page("deep-mlp", "fp16", chips=("v100-pcie-board",), accounting="full")
    time = report.time
    begun, bars = 0.0, {}
    for step in time.steps:
        name = str(report.memory.steps[step.step])
        bars[name] = (100 * begun / time.overlapped, 100 * step.overlapped / time.overlapped, step)
        begun += step.overlapped
    found = list(rows(parsed(text).one("table", id="d1-times")))
    assert 20 < len(found) <= 40
    for name, cells in found:
        start, width, step = bars[name]
        rect = cells[0].one("rect")
        assert float(rect["x"]) == pytest.approx(start, abs=0.02)
        assert float(rect["width"]) == pytest.approx(width, rel=1e-3)
        assert cells[1].text == step.bound
        assert float(cells[2]["data-v"]) == pytest.approx(1e3 * step.overlapped)
        assert float(cells[3]["data-v"]) == pytest.approx(1e3 * step.serial)


def test_a_roofline_in_seconds_has_each_product_under_the_roof():
    """By hand: V100 PCIe at 16 bit 40,960 x 1380 MHz, at 32 bit 5,120 x 1380 MHz, 900 GB/s."""
    text, report = report_page("deep-mlp", "fp16", chips=("v100-pcie-board",), accounting="full")
    figure = parsed(text).one("figure")
    dots = [dot.text for dot in figure.all("circle")]
    with_macs = {str(report.memory.steps[task.at.step]) for task, _ in report.tilings}
    assert {dot.partition(":")[0] for dot in dots} == with_macs
    for dot in dots:
        intensity, rate = re.search(r": (\S+) MAC/B, (\S+) MAC/s", dot).groups()
        roof = min(900e9 * float(intensity), 40_960 * 1380e6)
        assert float(rate) == pytest.approx(roof, rel=0.01)
    caption = figure.one("figcaption").text
    assert "900 GB/s" in caption and "5.652e+13 MAC/s" in caption


def test_steps_without_traffic_are_circles_at_the_edge_and_the_choice_has_its_bound():
    """Of a small network all stays on the chip but what comes in and goes out."""
    text, report = report_page(
        "mlp-784-512-512-10",
        "fp16",
        chips=("v100-pcie-board",),
        accounting="chip",
        mode="inference",
    )
    figure = parsed(text).one("figure")
    dots = list(figure.all("circle"))
    edge = [dot for dot in dots if float(dot["cx"]) == 100]
    assert len(dots) == 3 and len(edge) == 1
    assert edge[0].text.startswith("forward of fc2: nothing through HBM2, ")
    assert all("MAC/B" in dot.text for dot in dots if dot not in edge)
    assert "1 of 3 move nothing through" in figure.one("figcaption").text
    assert report.staying and f"<p>{report.staying}. </p>" in text


def test_a_chip_without_rates_has_no_time_on_its_page():
    text, _ = report_page("deep-mlp", "fp16", accounting="full")
    assert "d1-times" not in text and "Over time" not in text


@pytest.mark.parametrize("accounting", ["paper", "full"])
def test_every_layer_and_pass_has_the_reports_energy(accounting):
    text, report = report_page(accounting=accounting)
    table = parsed(text).one("table", id="d1-layers")
    passes = [p for p in PASSES if p in set(report.table["pass"])]
    wanted = report.by("layer", "pass")
    found = {}
    for layer, cells in rows(table):
        *energies, total, _, _ = (number(c) if c["data-v"] else c.text for c in cells[1:])
        found |= {(layer, p): e for p, e in zip(passes, energies, strict=True) if e}
        assert total == pytest.approx(fsum(energies), rel=1e-8)
    assert found == {key: pytest.approx(e, rel=1e-8) for key, e in wanted.items() if e}
    foot = [number(cell) for cell in table.one("tfoot").all("td") if cell["data-v"]]
    assert foot[-2] == pytest.approx(report.energy, rel=1e-8)
    assert fsum(foot[:-2]) == pytest.approx(report.energy, rel=1e-7)


@pytest.mark.parametrize("accounting", ["paper", "full"])
def test_the_heat_map_sums_to_the_report_and_shows_its_cells(accounting):
    text, report = report_page(accounting=accounting)
    table = next(parsed(text).all("table", **{"class": "heat"}))
    *tensors, last = [th.text for th in table.one("thead").all("th")][1:]
    assert last == "sum"
    everything = report.table
    everything["memory"] = everything["memory"].replace("", "(operations)")
    memories = [b.name for level in report.hardware.levels for b in level.buffers]
    assert [memory for memory, _ in rows(table)] == [*memories, "(operations)"]
    for memory, cells in rows(table):
        here = everything[everything.memory == memory]
        assert cells[-1].text == f"{fsum(here.energy) / 1e6:,.2f}"
        for tensor, cell in zip(tensors, cells[:-1], strict=True):
            mine = here[here.tensor == tensor]
            assert cell.text == (f"{fsum(mine.energy) / 1e6:,.2f}" if len(mine) else "")


def test_bars_are_as_long_as_what_they_stand_for():
    text, report = report_page(accounting="full")
    sums = report.by("layer")
    for layer, cells in rows(parsed(text).one("table", id="d1-layers")):
        rects = list(cells[0].all("rect"))
        end = 0.0
        for rect in rects:
            assert float(rect["x"]) == pytest.approx(end, abs=0.02)
            end = float(rect["x"]) + float(rect["width"])
        assert end == pytest.approx(100 * sums[layer] / sums.max(), abs=0.05)
        energies = report.by("layer", "pass")[layer]
        assert [r["class"] for r in rects] == [p for p in PASSES if energies.get(p)]


def test_every_bar_and_every_entry_of_a_legend_has_its_colour():
    lines = compared(accounting="full")
    tree = parsed(page(lines, lines, *origin(lines)))
    stated = set(re.findall(r"^\.(\w+) \{ fill", tree.one("style").text, re.MULTILINE))
    painted = {r["class"] for r in tree.all("rect")} - {"method"}
    assert {*PASSES, "forward_product", "backward_input_elementwise"} <= painted <= stated


def test_the_comparison_has_percentages_published_figures_and_parts():
    lines = compared(
        chips=("ascend", "v100"), methods=("fp", "bold", "binarynet"), accounting="paper"
    )
    tree = parsed(page(lines, lines, *origin(lines)))
    for n, chip_name in enumerate(("ascend", "v100"), start=1):
        here = [line for line in lines if line.hardware == chip_name]
        table = tree.one("table", id=f"c{n}")
        for line, (method, cells) in zip(here, rows(table), strict=True):
            assert method == line.method
            percent, optimal, published, residual, energy, with_optimal = map(number, cells[1:])
            assert percent == pytest.approx(line.percent_of_baseline, rel=1e-8)
            assert published == line.source_percent
            assert energy == pytest.approx(line.energy, rel=1e-8)
            assert optimal == pytest.approx(line.percent_of_baseline_optimal_tiles, rel=1e-8)
            assert with_optimal == pytest.approx(line.energy_optimal_tiles, rel=1e-8)
            if line.method != "fp":
                assert residual == pytest.approx(100 * (percent / published - 1), rel=1e-6)
        for line, (_, cells) in zip(here, rows(tree.one("table", id=f"c{n}-parts")), strict=True):
            *parts, compute, memory = map(number, cells[1:])
            assert fsum(parts) == pytest.approx(line.energy, rel=1e-7)
            assert compute + memory == pytest.approx(line.energy, rel=1e-7)
            by = line.report.by("pass", "component")
            wanted = [by.get((p, c), 0.0) for p in PASSES[:3] for c in ("product", "elementwise")]
            assert parts == pytest.approx([*wanted, line.update], rel=1e-8)


def test_the_sentence_names_share_of_the_baseline_and_the_largest_parts(tmp_path):
    """A chip without memory energies: all goes to operations, and one pass has them all."""
    free = file(tmp_path, CHIP, *((f"{e} pJ/B", "0 pJ/B") for e in ("50", "5", "0.5")))
    network = load_one_layer()
    lines = list(compare(network, [free], ["fp"], mode="inference", accounting="paper"))
    lead = next(parsed(page(lines, lines, *origin(lines))).all("p", **{"class": "lead"}))
    # 4 outputs of 8 inputs: 32 MACs of 4.6 pJ
    assert lead.text == (
        "Under fp, one inference of 1 image of one costs 100.00 % of the baseline fp on chip: "
        "147.20 pJ, of which (operations) takes 100.0 %, DRAM 0.0 % and SRAM 0.0 %. "
        "By pass, forward takes 100.0 %; by layer, fc takes 100.0 %."
    )


def test_a_comparison_begins_with_the_cheapest_method_of_each_chip():
    lines = compared(chips=("ascend", "v100"), methods=("fp", "bold", "xnor-net"))
    leads = [p.text for p in parsed(page(lines, lines, *origin(lines))).all("p") if p["class"]]
    leads = [text for text in leads if text.startswith("Under ")]
    assert len(leads) == 2
    for text, chip_name in zip(leads, ("ascend", "v100"), strict=True):
        least = min((x for x in lines if x.hardware == chip_name), key=lambda x: x.energy)
        whole = next(x.energy for x in lines if (x.hardware, x.method) == (chip_name, "fp"))
        percent = f"{100 * least.energy / whole:.2f}"
        assert f"Under {least.method}, " in text
        assert f"costs {percent} % of the baseline fp on {chip_name}: " in text


def load_one_layer():
    layers = [{"name": "fc", "kind": "linear", "features": 4}]
    return Network(version=1, name="one", title="One layer", input=(8, 1, 1), layers=layers)


def test_tilings_are_those_of_the_report_with_what_is_proved():
    text, report = report_page(accounting="full")
    table = parsed(text).one("table", id="d1-tilings")
    found = list(rows(table))
    assert len(found) == len(report.tilings)
    for (task, tiling), (layer, cells) in zip(report.tilings, found, strict=True):
        pass_, loops, *tiles, held, certificate = (cell.text for cell in cells)
        assert (layer, pass_.replace(" ", "_")) == (task.layer, task.work.pass_)
        assert loops.split(" x ")[-1] == " ".join(map(str, task.work.problem.extent))
        assert certificate == ("proved" if tiling.certificate.proved else certificate)
        assert held.split() == list(tiling.mapping.held)
        above = task.work.problem.extent
        for shown, tile in zip(tiles, tiling.mapping.tiles, strict=True):
            assert shown == ("whole" if tile == above else " ".join(map(str, tile)))
            above = tile


def test_a_tiling_that_is_not_proved_says_its_gap():
    lines = compared(accounting="full")
    report = lines[1].report
    (work, tiling), *rest = report.tilings
    loose = tiling.certificate.__class__(100.0, 75.0, 0.25, False, 10, 3)
    report = replace(report, tilings=((work, tiling._replace(certificate=loose)), *rest))
    line = lines[1]._replace(report=report)
    tree = parsed(page([lines[0], line], [line], *origin(lines)))
    _, cells = next(rows(tree.one("table", id="d1-tilings")))
    assert (cells[-1].text, number(cells[-1])) == ("gap 25.00 %", 25.0)
    assert report.unproved in tree.text


def test_what_is_not_counted_stands_there():
    lines = compared(accounting=["paper", "full"])
    tree = parsed(page(lines, lines, *origin(lines)))
    listed = [li.text for li in tree.one("section", **{"aria-labelledby": "missing"}).all("li")]
    wanted = {line.accounting: line.report.not_counted for line in lines}
    assert listed == [*wanted["paper"], *wanted["full"]]


def test_a_line_that_could_not_be_computed_says_why(tmp_path):
    small = file(tmp_path, CHIP, ("64 KiB", "1 B"), ("1 KiB", "1 B"))
    lines = list(compare("vgg-small", ["ascend", small], ["fp"], accounting="paper"))
    assert lines[1].energy is None
    tree = parsed(page(lines, lines, *origin(lines)))
    ((_, cells),) = rows(tree.one("table", id="c2"))
    assert [cell.text for cell in cells[1:]] == ["\u2013"] * 2  # nothing is published of it
    assert lines[1].reason in tree.text


def test_inputs_are_shown_with_the_hash_of_their_content():
    lines = compared()
    stated, _ = origin(lines)
    section = parsed(page(lines, lines, *origin(lines))).one(
        "section", **{"aria-labelledby": "inputs"}
    )
    hashes = {(kind, cells[0].text): cells[2].text for kind, cells in rows(section.one("table"))}
    assert hashes == {(x.kind, x.name): x.sha256 for x in stated.inputs}
    assert {kind for kind, _ in hashes} == {"network", "hardware", "method", "accounting"}
    contents = [json.loads(d.one("pre").text) for d in section.all("details")]
    for content, digest in zip(contents, hashes.values(), strict=True):
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(canonical.encode()).hexdigest() == digest
    assert stated.command in section.text


# The file


def test_the_same_question_gives_the_same_bytes():
    assert report_page()[0] == report_page()[0]


def test_the_page_is_whole_and_asks_for_nothing():
    lines = compared(chips=("ascend", "v100"), accounting="full")
    text = page(lines, lines, *origin(lines))
    tree = parsed(text)
    for element in tree.all():
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert (element[name] or "#").startswith(("#", "data:,"))
        assert not any(name.startswith("on") for name in element.attributes)
    assert not any(word in tree.one("style").text for word in ("url(", "@import"))
    targets = {e["id"] for e in tree.all() if e["id"]}
    assert all(a["href"][1:] in targets for a in tree.all("a"))
    assert len(targets) == len([e for e in tree.all() if e["id"]])


def test_the_page_can_be_read_without_seeing_it():
    lines = compared(accounting="full")
    tree = parsed(page(lines, lines, *origin(lines)))
    assert tree.one("html")["lang"] == "en"
    assert "width=device-width" in tree.one("meta", name="viewport")["content"]
    for landmark in ("header", "nav", "main", "footer", "h1"):
        assert tree.one(landmark).text.strip()
    depth = 0
    for heading in tree.all("h1", "h2", "h3", "h4", "h5"):
        assert int(heading.tag[1]) <= depth + 1, heading.text
        depth = int(heading.tag[1])
    for table in tree.all("table"):
        assert table.one("caption").text.strip()
        for head in table.all("th"):
            assert head["scope"] in ("col", "row")
    for field in tree.all("input"):
        assert tree.one("label", **{"for": field["id"]}).text


def hostile(line):
    """A line whose layers, titles and sources are called what no file may call them."""
    report = line.report
    entries = tuple(replace(e, layer=HOSTILE, tensor=HOSTILE) for e in report.ledger.entries)
    tilings = tuple((task._replace(layer=HOSTILE), tiling) for task, tiling in report.tilings)
    network = report.network.model_copy(update={"title": HOSTILE, "sources": {"x": HOSTILE}})
    changes = {
        "ledger": Ledger(entries),
        "tilings": tilings,
        "network": network,
        "not_counted": (HOSTILE,),
    }
    return line._replace(method=HOSTILE, reason=HOSTILE, report=replace(report, **changes))


@pytest.mark.parametrize("single", [True, False])
def test_names_are_text_and_nothing_else(single):
    lines = [hostile(line) for line in compared(accounting="full")]
    text = page(lines, lines[1:] if single else lines, *origin(lines))
    tree = parsed(text)
    assert len(list(tree.all("script"))) == 1
    assert not any(name.startswith("on") for e in tree.all() for name in e.attributes)
    ((layer, cells),) = rows(tree.one("table", id="d1-layers"))
    assert layer == HOSTILE
    assert next(cells[0].all("title")).text.startswith(HOSTILE)
    (missing,) = tree.one("section", **{"aria-labelledby": "missing"}).all("li")
    assert missing.text == HOSTILE
    assert tree.one("main").text.count(HOSTILE) > 10


def test_a_page_that_would_be_too_large_derives_the_dearest_layers(monkeypatch):
    lines = compared()
    totals = lines[1].report.by("layer").sort_values(ascending=False)

    def made(limit):
        """Layers derived, whether the command for others stands there, whether details do."""
        monkeypatch.setattr(module, "MAX_BYTES", limit)
        text = page(lines, lines[1:], *origin(lines), explained=lambda _, layer: 10_000 * "x")
        assert len(text.encode()) <= limit
        main = parsed(text).one("main")
        folded = [d.parent.one("summary").text for d in main.all("div", **{"class": "explained"})]
        detailed = bool([*main.all("table", id="d1-layers")])
        assert ("left out" in main.text) != detailed
        return folded, "hwmodel explain vgg-small --layer NAME" in main.text, detailed

    plain = len(page(lines, lines[1:], *origin(lines)).encode())
    every = [*lines[1].report.by("layer").index]
    assert made(3_000_000) == (every, False, True)
    assert made(plain + 41_000) == ([x for x in every if x in totals.index[:4]], True, True)
    assert made(plain) == ([], True, True)
    assert made(plain - 1) == ([], False, False)


# From the command line


def test_a_report_is_written_with_the_derivation_of_each_layer(hwmodel, tmp_path):
    code, _, err = hwmodel(*unsaid(REPORT), "--accounting", "full", "--html", "out/page.html")
    assert (code, err) == (0, "wrote out/page.html\n")
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["page.html"]
    tree = parsed((tmp_path / "out" / "page.html").read_text(encoding="utf-8"))
    report = evaluate("vgg-small-1fc", "ascend", "bold", accounting="full")
    folded = {d.one("summary").text: d.one("div", **{"class": "explained"})
              for d in tree.one("section", **{"aria-labelledby": "detail"}).all("details")}  # fmt: skip
    assert list(folded) == list(report.by("layer").index)
    for layer, shown in folded.items():
        markdown = explanation(report, layer)
        without_nest = re.sub(r"^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE)
        codes = [c.text for c in shown.all("code") if c.parent.tag != "pre"]
        assert codes == re.findall(r"`([^`\n]+)`", without_nest)
    assert [method for method, _ in rows(tree.one("table", id="c1"))] == ["fp", "bold"]
    inputs = tree.one("section", **{"aria-labelledby": "inputs"})
    assert inputs.one("pre", **{"class": "command"}).text == (
        "hwmodel report vgg-small-1fc --hardware ascend --method bold --accounting full "
        "--batch 1 --mode training --html report.html"
    )


def test_a_report_shows_the_published_figure_that_a_comparison_shows(hwmodel, tmp_path):
    found = {}
    for words in (["report", "--method", "bold"], ["compare", "--methods", "fp,bold"]):
        chip = ("--hardware", "ascend", "--accounting", "paper")
        command = [words[0], "vgg-small", *chip, *words[1:]]
        assert hwmodel(*command, "--html", "made.html")[0] == 0
        text = (tmp_path / "made.html").read_text(encoding="utf-8")
        table = dict(rows(parsed(text).one("table", id="c1")))
        found[words[0]] = [cell.text for cell in table["bold"][1:]]
    assert found["report"] == found["compare"]
    assert found["report"][2] == "3.64"


def test_the_baseline_is_among_the_inputs(hwmodel, tmp_path):
    """Of a method, too, that takes nothing over from it."""
    own = file(
        tmp_path,
        METHOD,
        ("  - {where: {position: [first, last]}, precision: fp, source: me}\n", ""),
    )
    assert hwmodel(*REPORT[:-1], own, "--html", "page.html")[0] == 0
    tree = parsed((tmp_path / "page.html").read_text(encoding="utf-8"))
    inputs = tree.one("section", **{"aria-labelledby": "inputs"})
    methods = [cells[0].text for kind, cells in rows(inputs.one("table")) if kind == "method"]
    assert methods == ["mine", "fp"]


def test_every_input_but_a_trace_has_its_title_and_its_content(hwmodel, tmp_path):
    """A baseline that is not compared, too, and what a method names: its teacher, here."""
    asked = ("--hardware", "ascend", "--methods", "bold,bnext", "--training", "cifar10-300")
    asked = (*asked, "--accounting", "paper", "--html", "page.html")
    assert hwmodel("compare", "vgg-small-1fc", *asked)[0] == 0
    tree = parsed((tmp_path / "page.html").read_text(encoding="utf-8"))
    inputs = tree.one("section", **{"aria-labelledby": "inputs"})
    table = {(kind, cells[0].text): cells[1].text for kind, cells in rows(inputs.one("table"))}
    assert {("method", "fp"), ("network", "resnet34"), ("training", "cifar10-300")} <= set(table)
    assert all(table.values()), table
    folded = [text.one("summary").text.strip() for text in inputs.all("details")]
    assert folded == [f"{kind} {name}: content and sources" for kind, name in table]


@pytest.mark.parametrize("command", [REPORT, COMPARE])
def test_the_command_on_a_page_makes_the_same_page(hwmodel, tmp_path, command):
    assert hwmodel(*command, "--html", "page.html")[0] == 0
    made = (tmp_path / "page.html").read_bytes()
    stated = parsed(made.decode()).one("pre", **{"class": "command"}).text
    before = {*tmp_path.iterdir()}
    assert hwmodel(*shlex.split(stated)[1:])[0] == 0
    (again,) = {*tmp_path.iterdir()} - before
    assert again.read_bytes() == made


def test_the_baseline_alone_is_set_beside_nothing(hwmodel, tmp_path):
    assert hwmodel(*REPORT[:-1], "fp", "--html", "page.html")[0] == 0
    tree = parsed((tmp_path / "page.html").read_text(encoding="utf-8"))
    ((method, cells),) = rows(tree.one("table", id="c1"))
    assert (method, number(cells[1])) == ("fp", 100.0)


def test_where_it_is_written_changes_no_byte(hwmodel, tmp_path):
    assert hwmodel(*COMPARE, "--html", "a.html")[0] == 0
    assert hwmodel(*COMPARE, "--html", "b/c.html", "--csv", "d.csv")[0] == 0
    made = (tmp_path / "a.html").read_bytes()
    assert (tmp_path / "b" / "c.html").read_bytes() == made
    assert (tmp_path / "d.csv").exists() and not (tmp_path / "reports").exists()


def test_a_training_run_is_said(hwmodel, tmp_path):
    asked = ("--training", "cifar10-300", "--html", "page.html")
    out = hwmodel(*REPORT, *asked)[1]
    said = next(line for line in out.splitlines() if line.startswith("Training cifar10-300: "))
    assert said in parsed((tmp_path / "page.html").read_text(encoding="utf-8")).one("main").text
    assert hwmodel(*COMPARE, *asked)[0] == 0
    text = parsed((tmp_path / "page.html").read_text(encoding="utf-8")).one("main").text
    assert f"bold on ascend, accounting paper. {said}" in text


@pytest.mark.parametrize("command", [REPORT, COMPARE])
def test_what_is_no_html_file_is_refused_and_nothing_is_written(hwmodel, tmp_path, command):
    code, out, err = hwmodel(*command, "--html", "page.csv")
    assert (code, out) == (2, "")
    assert err == "hwmodel: --html page.csv: an HTML file ends in .html or .htm\n"
    assert not list(tmp_path.iterdir())


def test_an_explanation_that_looks_like_html_stays_text(monkeypatch):
    text = "# title\n\n## <b>part</b>\n\n| <i>a</i> |\n| --- |\n| <script>x</script> |\n"
    monkeypatch.setattr(derivations, "explanation", lambda report, layer: text)
    tree = parsed(str(derivations.derivation(None, "layer")))
    assert [e.tag for e in tree.all()] == [
        "h4", "div", "table", "caption", "span", "thead", "tr", "th", "tbody", "tr", "td"
    ]  # fmt: skip
    assert tree.one("h4").text == tree.one("caption").text == "<b>part</b>"
    assert tree.one("td").text == "<script>x</script>"
