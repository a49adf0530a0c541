// A list that the server pages, searches and sorts. What is chosen stands in the address.

import { get } from "./api.js";
import { h, fill, notice, say } from "./dom.js";
import { count } from "./format.js";
import { every } from "./live.js";
import { remember } from "./route.js";

const LIMIT = 50;
const EVERY_MS = 2000;
const TYPING_MS = 250;

// `columns`: [{name, title, sort, class, show(row)}]. Returns the element; its `look()` asks at once.
export function pagedTable({ path, columns, params, label, placeholder, empty, limit = LIMIT, ms = EVERY_MS }) {
  const state = { offset: Number(params.get("offset")) || 0, search: params.get("search") ?? "",
    sort: params.get("sort") ?? "", order: params.get("order") ?? "" };
  let shown = "";
  let typing = 0;
  let asked = 0;

  const field = h("input", { type: "search", value: state.search, placeholder, "aria-label": placeholder, maxLength: 200 });
  const said = h("p", { class: "found", role: "status" });
  const heads = columns.map((column) => h("th", { scope: "col", class: column.class },
    column.sort ? h("button", { type: "button", onclick: () => sortBy(column.name) }, column.title) : column.title));
  const rows = h("tbody");
  const fault = h("div");
  const pager = ["First", "Previous", "Next", "Last"].map((word) =>
    h("button", { type: "button", onclick: () => turn(word) }, word));
  const turns = h("div", { class: "pager", hidden: true }, pager);
  const table = h("table", {}, h("caption", { class: "hidden" }, label), h("thead", {}, h("tr", {}, heads)), rows);
  const element = h("div", { class: "paged" },
    h("div", { class: "filter" }, field, said), fault,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table),
    turns);
  let found = 0;

  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => change({ search: field.value, offset: 0 }), TYPING_MS);
  });

  function sortBy(name) {
    const again = state.sort === name;
    if (again && state.order === "desc") change({ sort: "", order: "", offset: 0 });
    else change({ sort: name, order: again ? "desc" : "asc", offset: 0 });
  }

  function turn(word) {
    const last = Math.max(0, Math.floor((found - 1) / limit) * limit);
    const to = { First: 0, Previous: state.offset - limit, Next: state.offset + limit, Last: last }[word];
    change({ offset: Math.min(Math.max(to, 0), last) });
  }

  function change(part) {
    Object.assign(state, part);
    remember(state);
    look();
  }

  async function look() {
    const mine = ++asked;
    let page;
    try {
      page = await get(path, { ...state, limit });
    } catch (error) {
      if (mine === asked) fill(fault, notice("warn", error.message));
      return;
    }
    if (mine !== asked) return; // a newer question is under way
    found = page.found;
    if (state.offset >= found && state.offset > 0) { turn("Last"); return; }
    fill(fault);
    show(page);
  }

  function show(page) {
    const first = page.found ? page.offset + 1 : 0;
    const of = page.found === page.total ? count(page.total) : `${count(page.found)} found among ${count(page.total)}`;
    say(said, page.found ? `${count(first)}–${count(page.offset + page.rows.length)} of ${of}` : `0 of ${count(page.total)}`);
    turns.hidden = page.found <= limit;
    pager.forEach((button, number) => {
      button.disabled = number < 2 ? page.offset === 0 : page.offset + limit >= page.found;
    });
    heads.forEach((head, number) => {
      const is = columns[number].name === state.sort;
      head.setAttribute("aria-sort", is ? (state.order === "desc" ? "descending" : "ascending") : "none");
    });
    const text = JSON.stringify(page.rows);
    if (text === shown) return; // nothing moves under the reader's eyes
    shown = text;
    fill(rows, page.rows.length ? page.rows.map(line)
      : h("tr", {}, h("td", { colSpan: columns.length, class: "empty" }, state.search ? "Nothing fits the search." : empty)));
  }

  function line(row) {
    return h("tr", {}, columns.map((column) =>
      h("td", { class: column.class, "data-title": column.title }, h("div", {}, column.show ? column.show(row) : String(row[column.name] ?? "–")))));
  }

  element.look = look;
  every(ms, element, look);
  return element;
}
