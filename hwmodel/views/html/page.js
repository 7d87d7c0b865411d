"use strict";
(() => {
  const root = document.documentElement;
  const tip = document.getElementById("tip");

  // Theme: that of the reader's system until the button is pressed.
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  system.addEventListener("change", name);
  name();

  // What a bar or a shade stands for, on hover and on focus. A chart is one stop of the Tab key;
  // the arrows move within it.
  const MARKS = "[data-tip]";
  const prepare = (mark, text) => {
    mark.dataset.tip = text;
    mark.setAttribute("aria-label", text);
    mark.setAttribute("tabindex", "-1");
  };
  for (const title of document.querySelectorAll("rect > title")) {
    const rect = title.parentElement;
    title.remove();
    prepare(rect, title.textContent);
    rect.setAttribute("role", "img");
  }
  for (const cell of document.querySelectorAll("td[title]")) {
    prepare(cell, cell.title);
    cell.removeAttribute("title");
  }
  for (const chart of document.querySelectorAll("[data-chart]")) {
    chart.querySelector(MARKS)?.setAttribute("tabindex", "0");
  }
  const show = (mark) => {
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const box = mark.getBoundingClientRect();
    const left = Math.min(Math.max(box.left + box.width / 2 - tip.offsetWidth / 2, 6), root.clientWidth - tip.offsetWidth - 6);
    const above = box.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(left, 6)}px`;
    tip.style.top = `${above > 0 ? above : box.bottom + 6}px`;
  };
  const hide = () => { tip.hidden = true; };
  const follow = () => {
    const mark = document.activeElement.closest(MARKS);
    if (mark && !tip.hidden && tip.textContent === mark.dataset.tip) show(mark);
    else hide();
  };
  // Not on mouseover: that also comes when the page scrolls below a mouse at rest.
  for (const kind of ["mousemove", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const mark = event.target.closest(MARKS);
      if (mark) show(mark);
    });
  }
  document.addEventListener("mouseout", (event) => { if (event.target.closest(MARKS)) hide(); });
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", follow, true);

  const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const move = (mark, [down, along]) => {
    const chart = mark.closest("[data-chart]");
    const rows = [...chart.querySelectorAll("tr:not([hidden])")]
      .map((row) => [...row.querySelectorAll(MARKS)]).filter((row) => row.length);
    const y = rows.findIndex((row) => row.includes(mark));
    const row = rows[y + down];
    const x = rows[y].indexOf(mark) + along;
    const next = row && row[down ? Math.min(x, row.length - 1) : x];
    if (!next) return;
    for (const other of chart.querySelectorAll('[data-tip][tabindex="0"]')) other.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const mark = event.target.closest?.(MARKS);
    if (mark && STEPS[event.key]) {
      event.preventDefault();
      move(mark, STEPS[event.key]);
    }
  });

  // Sorting: numbers from the largest, words from A; again for the other way round. Cells without
  // a value stay at the end.
  const value = (row, column, numeric) => {
    const cell = row.cells[column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    return numeric ? (text === "" ? null : Number(text)) : text;
  };
  const sort = (head) => {
    const numeric = head.classList.contains("n");
    const first = numeric ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") !== first ? first : numeric ? "ascending" : "descending";
    for (const other of head.parentElement.cells) {
      if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    }
    head.setAttribute("aria-sort", order);
    const body = head.closest("table").tBodies[0];
    const sign = order === "ascending" ? 1 : -1;
    const keyed = [...body.rows].map((row) => [value(row, head.cellIndex, numeric), row]);
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
    });
    body.append(...keyed.map(([, row]) => row));
  };
  for (const head of document.querySelectorAll("th[aria-sort]")) {
    head.firstElementChild.addEventListener("click", () => sort(head));
  }

  // Filters: rows that hold every word.
  for (const input of document.querySelectorAll("input[data-of]")) {
    const rows = [...document.getElementById(input.dataset.of).tBodies[0].rows];
    const count = input.closest(".filter").querySelector("output");
    const texts = rows.map((row) => row.textContent.toLowerCase());
    input.closest(".filter").hidden = false;
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/);
      let left = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        left += !row.hidden;
      });
      count.textContent = input.value ? `${left} of ${rows.length}` : "";
    });
  }

  // A layer's name opens its derivation, and the keyboard goes on from there.
  for (const link of document.querySelectorAll("a.why")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();  // to follow the link would take the focus away
      const details = document.getElementById(link.hash.slice(1)).closest("details");
      details.open = true;
      details.querySelector("summary").focus();
    });
  }

  // On paper reports stand open.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.report:not([open])")];
    for (const closed of opened) closed.open = true;
  });
  addEventListener("afterprint", () => { for (const closed of opened) closed.open = false; });
})();
