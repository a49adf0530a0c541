// A table that sorts, filters and pages. It draws the rows of one page; on paper all of them.
class Table {
  constructor(root, { label, rows, columns, sort, only, empty, details, extra }) {
    Object.assign(this, { root, label, rows, columns, only, empty, details });
    this.sort = sort ?? null; // { column, down }
    this.page = 0;
    this.size = 10;
    this.words = "";
    this.onlyBroken = false;
    this.printing = false;
    this.pick = () => true;
    this.texts = new Map(rows.map((row) => [row, columns.map((c) => c.text(row)).join("\n").toLowerCase()]));
    if (rows.length === 0) root.append(el("p", { class: "empty" }, shape("check"), ` ${empty}`));
    else this.build(extra);
  }

  build(extra) {
    this.status = el("p", { class: "status", role: "status" });
    this.back = this.step("Previous", -1);
    this.next = this.step("Next", 1);
    this.body = el("tbody");
    this.heads = this.columns.map((column) => this.head(column));
    const more = this.details ? [el("th", { scope: "col", class: "more" }, el("span", { class: "visually-hidden" }, "Details"))] : [];
    const table = el("table", {}, el("caption", { class: "visually-hidden" }, this.label),
      el("thead", {}, el("tr", {}, ...this.heads, ...more)), this.body);
    this.root.append(this.controls(extra), table,
      el("div", { class: "pager" }, this.status, this.sizes(), this.back, this.next));
    this.draw();
  }

  controls(extra) {
    const search = el("input", { type: "search", placeholder: "Filter…", "aria-label": `Filter ${this.label}`, autocomplete: "off",
      oninput: (e) => this.change(() => { this.words = e.target.value.toLowerCase(); }) });
    const parts = [search];
    if (this.only) parts.push(el("label", { class: "tick" }, el("input", { type: "checkbox",
      onchange: (e) => this.change(() => { this.onlyBroken = e.target.checked; }) }), " Only what breaks parity"));
    parts.push(this.sorter());
    const [before, after] = extra ?? [];
    return el("div", { class: "controls" }, before, ...parts, after);
  }

  sorter() { // cards have no heads to click on
    const choices = this.columns.map((column, at) => el("option", { value: at }, column.name));
    this.select = el("select", { "aria-label": `Sort ${this.label}`, onchange: (e) => this.sortBy(this.columns[e.target.value]) },
      el("option", { value: "" }, "Sort by…"), ...choices);
    return el("span", { class: "sorter" }, this.select);
  }

  sizes() {
    const choices = [10, 25, 100, Infinity].map((n) => el("option", { value: n }, n === Infinity ? "All rows" : `${n} rows`));
    return el("select", { "aria-label": `Rows of ${this.label} on a page`, onchange: (e) => this.change(() => { this.size = Number(e.target.value); }) }, ...choices);
  }

  step(word, by) {
    return el("button", { type: "button", "aria-label": `${word} page of ${this.label}`, onclick: () => { this.page += by; this.draw(); } }, word);
  }

  head(column) {
    return el("th", { scope: "col", class: column.number ? "num" : null },
      el("button", { type: "button", onclick: () => this.sortBy(column) }, column.name, el("span", { class: "arrow", "aria-hidden": "true" })));
  }

  sortBy(column) {
    if (!column) return;
    const again = this.sort?.column === column.name;
    this.change(() => { this.sort = { column: column.name, down: again ? !this.sort.down : Boolean(column.number) }; });
  }

  change(how) {
    how();
    this.page = 0;
    this.draw();
  }

  chosen() {
    const words = this.words.split(/\s+/).filter(Boolean);
    const rows = this.printing ? [...this.rows] : this.rows.filter((row) => this.pick(row)
      && (!this.onlyBroken || this.only(row)) && words.every((word) => this.texts.get(row).includes(word)));
    const column = this.columns.find((c) => c.name === this.sort?.column);
    if (column) rows.sort((a, b) => compare(column.value(a), column.value(b), this.sort.down));
    return rows;
  }

  draw() {
    if (!this.body) return;
    const rows = this.chosen();
    const size = this.printing ? Infinity : this.size;
    const pages = Math.max(1, Math.ceil(rows.length / size));
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const first = size === Infinity ? 0 : this.page * size;
    const shown = rows.slice(first, first + size);
    this.body.replaceChildren(...shown.map((row) => this.row(row)));
    if (shown.length === 0) this.body.append(el("tr", {}, el("td", { class: "nothing", colspan: this.columns.length + 1 }, "Nothing matches the filter.")));
    this.columns.forEach((column, at) => this.heads[at].setAttribute("aria-sort", this.direction(column)));
    this.select.value = this.columns.findIndex((c) => c.name === this.sort?.column) === -1 ? "" : this.columns.findIndex((c) => c.name === this.sort?.column);
    this.status.textContent = this.told(first, shown.length, rows.length);
    this.back.disabled = this.page === 0;
    this.next.disabled = this.page === pages - 1;
  }

  told(first, shown, found) {
    const range = shown ? `${integer.format(first + 1)} to ${integer.format(first + shown)} of ${integer.format(found)}` : "0";
    return found === this.rows.length ? range : `${range}, from ${integer.format(this.rows.length)}`;
  }

  direction(column) {
    if (this.sort?.column !== column.name) return "none";
    return this.sort.down ? "descending" : "ascending";
  }

  row(row) {
    const cells = this.columns.map((column) =>
      el("td", { class: [column.number ? "num" : "", column.wide ? "wide" : ""].join(" ").trim() || null, "data-label": column.name }, column.cell(row)));
    const line = el("tr", {}, ...cells);
    if (this.details) line.append(this.opener(row, line));
    return line;
  }

  opener(row, line) {
    const button = el("button", { type: "button", class: "open", "aria-expanded": "false", "aria-label": `Details of ${visible(this.columns[0].text(row))}`,
      onclick: () => {
        const open = button.getAttribute("aria-expanded") === "true";
        if (open) line.nextSibling.remove();
        else line.after(el("tr", { class: "details" }, el("td", { colspan: this.columns.length + 1 }, this.details(row))));
        button.setAttribute("aria-expanded", String(!open));
      } });
    return el("td", { class: "more" }, button);
  }

  print(now) {
    this.printing = now;
    this.draw();
  }
}

function compare(a, b, down) { // what is not known comes last either way
  if (a == null || b == null) return (a == null) - (b == null);
  const order = typeof a === "number" ? a - b : a < b ? -1 : Number(a > b);
  return down ? -order : order;
}
