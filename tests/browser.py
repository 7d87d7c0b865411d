"""A real browser without a screen, and what a test asks of a page in it."""

import shutil
import time

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip

# Every visible piece of text with its colour against what is behind it, as WCAG 2.2 computes it;
# colours are asked of a canvas, which knows every way to write one.
CONTRASTS = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const known = {};
const rgba = (text) => known[text] ??= (() => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
})();
const over = ([r, g, b, a], below) => [r, g, b].map((c, i) => a * c + (1 - a) * below[i]);
const light = (rgb) => {
  const [r, g, b] = rgb.map((c) => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  if (!element) return [255, 255, 255];
  const own = rgba(getComputedStyle(element).backgroundColor);
  return own[3] === 1 ? own.slice(0, 3) : over(own, behind(element.parentElement));
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
  if (!text || !element.checkVisibility({visibilityProperty: true}) || element.closest("script")) continue;
  const back = behind(element), front = over(rgba(getComputedStyle(element).color), back);
  const [low, high] = [light(front), light(back)].sort((a, b) => a - b);
  found.push([(high + 0.05) / (low + 0.05), text]);
}
return found;
"""


class Browser:
    """Chromium with one page open."""

    def __init__(self, folder):
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(DRIVER)
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})

    def open(self, path, *, width=1280, theme="light"):
        """Open a file anew; the seconds that took."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.media(theme)
        started = time.perf_counter()
        self.driver.get(path.as_uri())
        return time.perf_counter() - started

    def media(self, theme, kind=""):
        """The reader's theme, and `kind` "print" for paper."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": kind, "features": features}
        )

    def script(self, text, *arguments):
        """What a script returns."""
        return self.driver.execute_script(text, *arguments)

    def messages(self):
        """What the console has said since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def keys(self, *keys):
        """Press keys where the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def focus(self, selector):
        """Set the focus, as far as the element takes it."""
        self.script("document.querySelector(arguments[0]).focus()", selector)

    def wait(self, selector, text):
        """Wait until the only such element says so; a change of theme takes a frame or two."""
        end = time.monotonic() + 10
        while self.texts(selector) != [text]:
            assert time.monotonic() < end, f"{selector} does not say {text!r}"
            time.sleep(0.02)

    def texts(self, selector):
        """Texts of the elements that can be seen."""
        return self.script(
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter((e) => e.checkVisibility()).map((e) => e.textContent)",
            selector,
        )
