"""The HTML file in Chromium: it opens at once, is used by keyboard, read in both themes."""

from itertools import pairwise

import pytest

from hwmodel.specs.accounting import Accounting
from hwmodel.specs.files import load
from tests.browser import CHROMIUM, CONTRASTS, DRIVER, Browser
from tests.specs import GREEDY, written
from tests.test_html import HOSTILE, compared, hostile, origin, page

pytest.importorskip("selenium", reason="selenium, which drives the browser, is not installed")
if not (CHROMIUM and DRIVER):
    pytest.skip("chromium or chromedriver is not installed", allow_module_level=True)

METHODS = ("fp", "binaryconnect", "xnor-net", "binarynet", "bold", "bold-bn")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.driver.quit()


def greedy(tmp_path_factory):
    """What `full` counts, without a search."""
    return load(Accounting, written(tmp_path_factory.mktemp("greedy"), GREEDY))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    lines = compared("resnet18", accounting=greedy(tmp_path_factory), optimal_tiles=False)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(lines, lines[1:], *origin(lines)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    lines = compared(
        "resnet18", ("ascend", "v100"), METHODS,
        accounting=greedy(tmp_path_factory), optimal_tiles=False,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("comparison") / "comparison.html"
    path.write_text(page(lines, lines, *origin(lines)), encoding="utf-8")
    return path


def test_a_large_comparison_opens_at_once_and_the_console_stays_empty(browser, comparison):
    assert comparison.stat().st_size < 3_000_000
    browser.messages()
    assert browser.open(comparison) < 2
    browser.script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert browser.messages() == []


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_page(browser, comparison, report, width):
    for path in (comparison, report):
        browser.open(path, width=width)
        browser.script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert browser.script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(browser, comparison, report, theme):
    for path in (comparison, report):
        browser.open(path, theme=theme)
        browser.script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        browser.focus("rect")  # its tooltip is text, too
        contrasts = browser.script(CONTRASTS)
        assert len(contrasts) > 500
        assert min(contrasts) >= [4.5, ""]


def test_the_theme_is_the_systems_until_the_button_is_pressed(browser, report):
    ground = "return getComputedStyle(document.body).backgroundColor"
    browser.open(report, theme="light")
    light = browser.script(ground)
    browser.media("dark")
    browser.wait("#theme", "Light theme")
    dark = browser.script(ground)
    assert dark != light
    browser.focus("#theme")
    browser.keys(" ")
    assert browser.script(ground) == light
    assert browser.texts("#theme") == ["Dark theme"]
    browser.keys(" ")
    assert browser.script(ground) == dark


def order(browser, column):
    cell = f"#d1-layers tbody tr > :nth-child({column})"
    return browser.script(
        "return [...document.querySelectorAll(arguments[0])].map((c) => c.dataset.v ?? c.textContent)",
        cell,
    )


def sorts(browser):
    return browser.script(
        "return [...document.querySelectorAll('#d1-layers th[aria-sort]')].map((h) => h.ariaSort)"
    )


def test_a_table_is_sorted_from_the_keyboard(browser, report):
    from selenium.webdriver.common.keys import Keys

    browser.open(report)
    before = dict(zip(order(browser, 1), order(browser, 7), strict=True))
    browser.focus("#d1-layers thead th:nth-child(7) button")
    browser.keys(Keys.ENTER)
    sums = sorted(map(float, before.values()), reverse=True)
    assert [float(value) for value in order(browser, 7)] == sums
    assert dict(zip(order(browser, 1), order(browser, 7), strict=True)) == before
    assert sorts(browser).index("descending") == 5
    browser.keys(" ")
    assert [float(value) for value in order(browser, 7)] == sums[::-1]
    assert [s for s in sorts(browser) if s != "none"] == ["ascending"]
    assert browser.texts("#d1-layers tfoot th") == ["all layers"]


def test_a_filter_leaves_the_rows_that_hold_every_word(browser, report):
    browser.open(report)
    names = browser.texts("#d1-layers tbody th")
    browser.focus("#d1-layers-filter")
    browser.keys("LAYER4 shortcut")
    wanted = [name for name in names if "layer4" in name and "shortcut" in name]
    assert 0 < len(wanted) < len(names)
    assert browser.texts("#d1-layers tbody th") == wanted
    assert browser.texts(".filter output")[0] == f"{len(wanted)} of {len(names)}"


def test_a_bar_says_its_value_on_hover(browser, report):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    browser.open(report)
    bar = browser.driver.find_element(By.CSS_SELECTOR, "#c1 rect")
    assert browser.texts("#tip") == []
    ActionChains(browser.driver).move_to_element(bar).perform()
    assert browser.texts("#tip")[0].startswith("fp: 100.00 % of the baseline, ")


def test_bars_and_shades_are_walked_through_with_the_arrows(browser, report):
    from selenium.webdriver.common.keys import Keys

    browser.open(report)
    stops = "return document.querySelectorAll('#d1-layers [tabindex=\"0\"]').length"
    assert browser.script(stops) == 1
    browser.focus('#d1-layers [tabindex="0"]')
    assert browser.texts("#tip")[0].startswith("conv1, forward: ")
    browser.keys(Keys.ARROW_RIGHT)
    assert browser.texts("#tip")[0].startswith("conv1, backward weight: ")
    browser.keys(Keys.ARROW_DOWN)
    assert browser.texts("#tip")[0].startswith("conv1.act, backward input: ")
    assert browser.script(stops) == 1
    browser.keys(Keys.ESCAPE)
    assert browser.texts("#tip") == []
    browser.focus(".heat [tabindex]")
    assert browser.texts("#tip")[0].startswith("I at L3: ")


def test_the_tab_key_goes_down_the_page_and_shows_where_it_is(browser, report):
    from selenium.webdriver.common.keys import Keys

    browser.open(report)
    places = []
    for _ in range(30):
        browser.keys(Keys.TAB)
        places.append(
            browser.script(
                "const e = document.activeElement, s = getComputedStyle(e);"
                "return [e.tagName, e.getBoundingClientRect().top + scrollY,"
                " s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2]"
            )
        )
    assert [tag for tag, _, _ in places[:6]] == ["A", "BUTTON", "A", "A", "A", "A"]
    assert all(visible for _, _, visible in places)
    tops = [top for _, top, _ in places[2:]]
    assert all(later >= earlier - 40 for earlier, later in pairwise(tops))


def test_paper_shows_the_reports_and_no_controls(browser, comparison):
    browser.open(comparison, theme="dark")
    browser.media("dark", "print")
    assert not browser.texts("nav, .filter, #theme")
    assert browser.script("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    browser.script("dispatchEvent(new Event('beforeprint'))")
    assert len(browser.texts("details.report table.heat")) == 2 * len(METHODS)
    browser.script("dispatchEvent(new Event('afterprint'))")
    assert browser.texts("details.report table.heat") == []
    browser.media("light")


def test_no_name_runs(browser, tmp_path):
    lines = [hostile(line) for line in compared(accounting="full")]
    path = tmp_path / "hostile.html"
    path.write_text(page(lines, lines[1:], *origin(lines)), encoding="utf-8")
    browser.messages()
    browser.open(path)
    browser.focus("#d1-layers rect")
    assert browser.texts("#tip")[0].startswith(HOSTILE)
    assert browser.texts("#d1-layers tbody th") == [HOSTILE]
    assert browser.script("return typeof pwned") == "undefined"
    assert browser.messages() == []


def test_no_script_runs_but_the_pages_own(browser, report):
    browser.open(report)
    browser.script(
        "const s = document.createElement('script'); s.textContent = 'pwned = 1';"
        "document.body.append(s)"
    )
    assert browser.script("return typeof pwned") == "undefined"
    assert any("Content Security Policy" in message for message in browser.messages())


def test_all_chips_and_methods_are_filtered_in_one_table(browser, comparison):
    browser.open(comparison)
    browser.focus("#all-filter")
    assert len(browser.texts("#all tbody tr")) == 2 * len(METHODS)
    browser.keys("v100 bold")
    rows = browser.texts("#all tbody tr")
    assert len(rows) == 2 and all("v100" in row and "bold" in row for row in rows)
    assert browser.texts("output[for=all-filter]") == [f"2 of {2 * len(METHODS)}"]


def test_a_layer_opens_its_derivation_from_the_keyboard(browser, tmp_path):
    from hwmodel.views.html.derivation import derivation

    lines = compared("mlp-784-512-512-10", optimal_tiles=False)
    path = tmp_path / "derived.html"
    path.write_text(page(lines, lines[1:], *origin(lines), explained=derivation), encoding="utf-8")
    browser.open(path)
    assert (
        browser.script("return document.querySelectorAll('details[open] .explained').length") == 0
    )
    browser.focus("a.why[href='#why1']")
    browser.keys("\ue007")  # Enter
    opened = "return document.querySelector('#why1').closest('details').open"
    assert browser.script(opened)
    assert browser.script("return document.activeElement.textContent") == "fc1"
    assert browser.script("return document.activeElement.tagName") == "SUMMARY"
