// The browser's side of ItemTable: all rows are here, those in sight are in the page. Whatever a row holds is set as text, never as HTML.

const ROW = 30; // pixels; as in table.css
const SPARE = 12; // rows drawn above and below those in sight
const WIDTH = 170, HEIGHT = 20, PAD = 7; // of an interval; as in hippo_core/results/report/pages.py
const MARKS = new Map([[true, ["✓", "right"]], [false, ["✗", "wrong"]], [null, ["–", "not measured"]]]);
let tables = 0;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function shape(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function interval(cell, [first, last]) {
  if (cell.value === null) return [];
  const x = (value) => PAD + Math.min(1, Math.max(0, (value - first) / (last - first))) * (WIDTH - 2 * PAD);
  const across = (name, from, to) => shape("line", { class: name, x1: x(from), x2: x(to), y1: HEIGHT / 2, y2: HEIGHT / 2 });
  const known = cell.low !== null && cell.high !== null;
  const colour = `--c: var(${known && (cell.low > 0 || cell.high < 0) ? "--ink" : "--quiet"})`;
  const picture = shape("svg", { class: "bar", width: WIDTH, height: HEIGHT, "aria-hidden": "true" });
  picture.append(across("axis", first, last), shape("line", { class: "guide", x1: x(0), x2: x(0), y1: 1, y2: HEIGHT - 1 }));
  if (known) picture.append(across("mark", cell.low, cell.high));
  picture.append(shape("circle", { class: "mark", cx: x(cell.value), cy: HEIGHT / 2, r: 4.5 }));
  for (const mark of picture.querySelectorAll(".mark")) mark.setAttribute("style", colour);
  return [picture];
}

function content(value, kind, axis) {
  if (kind === "mark") {
    const [sign, word] = MARKS.get(value);
    return [element("span", { class: word.split(" ")[0], role: "img", "aria-label": word }, sign)];
  }
  if (kind === "interval") return [...interval(value, axis), element("span", {}, value.text)];
  return [kind === "number" ? value.text : value];
}

const key = (row, { name, kind }) =>
  kind === "number" || kind === "interval" ? row[name].value : kind === "text" ? row[name].toLowerCase() : row[name];
const words = (row, columns) =>
  columns.filter((one) => one.kind !== "mark").map(({ name, kind }) => (kind === "text" ? row[name] : row[name].text)).join("\n").toLowerCase();

export function seen(rows, columns, query, sort, descending) {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  const held = wanted.length ? rows.filter((row) => { const text = words(row, columns); return wanted.every((word) => text.includes(word)); }) : rows;
  const column = columns.find((one) => one.name === sort);
  if (!column) return held;
  const known = held.filter((row) => key(row, column) !== null).map((row) => [key(row, column), row]);
  const sign = descending ? -1 : 1;
  known.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
  return [...known.map(([, row]) => row), ...held.filter((row) => key(row, column) === null)];
}

function render({ model, el }) {
  const own = `hippo-table-${++tables}`;
  const search = element("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${model.get("label")}` });
  const count = element("span", { class: "quiet", role: "status" });
  const head = element("tr", { "aria-rowindex": "1" });
  const body = element("tbody");
  const table = element("table", { role: "grid", tabindex: "0", "aria-label": model.get("label") }, element("thead", {}, head), body);
  const view = element("div", { class: "view" }, table);
  // JupyterLab has keys of its own, and leaves those alone that are pressed below this attribute
  el.replaceChildren(element("div", { class: "hippo-table", "data-lm-suppress-shortcuts": "true" }, element("div", { class: "top" }, search, count), view));

  let rows = [], at = 0, drawn = "", waiting = 0;
  const set = (name, value) => { model.set(name, value); model.save_changes(); };
  const columns = () => model.get("columns");

  function arrange() {
    rows = seen(model.get("rows"), columns(), model.get("query"), model.get("sort"), model.get("descending"));
    const chosen = rows.findIndex((row) => row.id === model.get("selected"));
    at = Math.max(0, chosen);
    count.textContent = `${rows.length.toLocaleString("en")} of ${model.get("rows").length.toLocaleString("en")}`;
    table.setAttribute("aria-rowcount", rows.length + 1);
    header();
    view.scrollTop = 0; // where there may be fewer rows now than were scrolled past
    draw(true);
    if (chosen > 0) go(chosen);
  }

  function header() {
    const sort = model.get("sort"), descending = model.get("descending");
    const open = document.activeElement?.dataset?.sort;
    head.replaceChildren(...columns().map(({ name, label, kind }) => {
      const button = element("button", { type: "button", "data-sort": name }, label);
      button.addEventListener("click", () => {
        model.set("descending", sort === name && !descending);
        set("sort", name);
      });
      const order = sort === name ? (descending ? "descending" : "ascending") : "none";
      return element("th", { class: kind, scope: "col", "aria-sort": order }, button);
    }));
    if (open) head.querySelector(`[data-sort="${CSS.escape(open)}"]`)?.focus();
  }

  function draw(anew = false) {
    const first = Math.max(0, Math.floor(view.scrollTop / ROW) - SPARE);
    const last = Math.min(rows.length, Math.ceil((view.scrollTop + Math.max(view.clientHeight, 360)) / ROW) + SPARE);
    const state = `${first} ${last} ${at} ${model.get("selected")}`;
    if (state === drawn && !anew) return;
    drawn = state;
    const gap = (count) => (count > 0 ? [element("tr", { class: "gap", "aria-hidden": "true", style: `height:${count * ROW}px` }, element("td", { colspan: columns().length }))] : []);
    body.replaceChildren(...gap(first), ...rows.slice(first, last).map((row, place) => line(row, first + place)), ...gap(rows.length - last));
    if (at >= first && at < last) table.setAttribute("aria-activedescendant", `${own}-${at}`);
    else table.removeAttribute("aria-activedescendant");
  }

  function line(row, place) {
    const chosen = row.id === model.get("selected");
    const made = element("tr", { id: `${own}-${place}`, "aria-rowindex": place + 2, "aria-selected": chosen, "data-place": place });
    made.className = [chosen ? "selected" : "", place === at ? "at" : ""].join(" ").trim();
    for (const { name, kind } of columns()) {
      const cell = element("td", { class: kind, role: "gridcell" }, ...content(row[name], kind, model.get("axis")));
      if (kind === "text") cell.title = row[name];
      made.append(cell);
    }
    return made;
  }

  function go(place) {
    at = Math.min(rows.length - 1, Math.max(0, place));
    const top = at * ROW, room = view.clientHeight - head.offsetHeight;
    if (top < view.scrollTop) view.scrollTop = top;
    if (top + ROW > view.scrollTop + room) view.scrollTop = top + ROW - room;
    draw();
  }

  const page = () => Math.max(1, Math.floor((view.clientHeight - head.offsetHeight) / ROW) - 1);
  const KEYS = {
    ArrowDown: () => go(at + 1), ArrowUp: () => go(at - 1), PageDown: () => go(at + page()), PageUp: () => go(at - page()),
    Home: () => go(0), End: () => go(rows.length - 1), Enter: choose, " ": choose,
  };
  function choose() {
    if (rows[at]) set("selected", rows[at].id);
  }

  table.addEventListener("keydown", (event) => {
    if (event.target.tagName === "BUTTON" || !KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    KEYS[event.key]();
  });
  body.addEventListener("click", (event) => {
    const place = event.target.closest("tr[data-place]")?.dataset.place;
    if (place === undefined) return;
    go(Number(place));
    choose();
  });
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { view.scrollTop = 0; set("query", search.value); }, 120);
  });
  view.addEventListener("scroll", () => requestAnimationFrame(() => draw()));

  let due = false;
  const again = () => { // one arrangement for all that a message changed
    if (due) return;
    due = true;
    queueMicrotask(() => { due = false; arrange(); });
  };
  const chosen = () => {
    const place = rows.findIndex((row) => row.id === model.get("selected"));
    if (place >= 0) go(place);
    draw(true);
  };
  const asked = () => { if (search.value !== model.get("query")) search.value = model.get("query"); };
  const heard = [...["rows", "columns", "axis", "query", "sort", "descending"].map((name) => [name, again]), ["selected", chosen], ["query", asked]];
  for (const [name, answer] of heard) model.on(`change:${name}`, answer);
  asked();
  arrange();
  return () => {
    clearTimeout(waiting);
    for (const [name, answer] of heard) model.off(`change:${name}`, answer);
  };
}

export default { render };
