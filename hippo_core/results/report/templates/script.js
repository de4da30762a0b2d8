"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th[data-sort]");
    if (!head) return;
    const place = head.cellIndex;
    const up = head.getAttribute("aria-sort") === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => {
      const cell = row.cells[place];
      const said = cell.dataset.value ?? cell.textContent.trim().replace("−", "-").replaceAll(",", "");
      return said === "" || isNaN(said) ? said : Number(said);
    };
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [value(row), row]);
    rows.sort(([a], [b]) => (typeof a === typeof b ? (a > b) - (a < b) : typeof a === "number" ? -1 : 1) * (up ? 1 : -1));
    for (const [, row] of rows) body.append(row);
  });
}
for (const button of document.querySelectorAll("table.verdicts button")) {
  const others = [...button.closest("tbody").querySelectorAll("tr.one")];
  const fold = (open) => {
    button.setAttribute("aria-expanded", open);
    for (const row of others) row.hidden = !open;
  };
  button.addEventListener("click", () => fold(button.getAttribute("aria-expanded") !== "true"));
  addEventListener("beforeprint", () => fold(true));
  fold(others.some((row) => "#" + row.id === location.hash));
}
const controls = document.querySelector(".controls");
const told = () => new URLSearchParams(location.hash.slice(1));
function show() {
  const wanted = Object.fromEntries([...controls.querySelectorAll("[name]")].map((one) => [one.name, one.value]));
  let seen = 0;
  for (const row of document.querySelectorAll("table.items tbody tr")) {
    row.hidden = !fits(row, wanted);
    seen += row.hidden ? 0 : 1;
  }
  document.querySelector(".seen").textContent = seen;
  for (const cell of document.querySelectorAll("table.items [data-column]")) {
    const one = cell.dataset.column;
    cell.hidden = Boolean(wanted.a && one !== wanted.a && one !== wanted.b);
  }
}
function fits(row, wanted) {
  if (wanted.rung && row.dataset.rung !== wanted.rung) return false;
  if (wanted.kind && row.dataset.kind !== wanted.kind) return false;
  if (wanted.score && row.dataset.score !== wanted.score) return false;
  if (wanted.text && !row.textContent.toLowerCase().includes(wanted.text.toLowerCase())) return false;
  if (!wanted.a || !wanted.b || wanted.only === "all") return true;
  const score = (name) => Number(row.querySelector(`[data-column="${CSS.escape(name)}"]`)?.dataset.score ?? NaN);
  const lead = score(wanted.a) - score(wanted.b);
  return wanted.only === "a" ? lead > 0 : wanted.only === "b" ? lead < 0 : lead !== 0;
}
function follow() {
  const wish = told();
  for (const one of controls.querySelectorAll("[name]")) if (wish.has(one.name)) one.value = wish.get(one.name);
  show();
  const item = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (item?.matches("table.items tr")) item.querySelector("details").open = true;
}
if (controls) {
  controls.addEventListener("input", show);
  addEventListener("hashchange", follow);
  follow();
}
