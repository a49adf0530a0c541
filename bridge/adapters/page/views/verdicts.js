// What became of messages, with MSMQ's own names in words; and the latest that were turned away.

import { get } from "../api.js";
import { card, chip, fill, h, notice } from "../dom.js";
import { count, moment, verdict } from "../format.js";
import { every } from "../live.js";
import { link, remember } from "../route.js";
import { locked, may } from "../session.js";

export function verdicts(params) {
  const field = h("input", { type: "search", value: params.get("search") ?? "", maxLength: 200,
    placeholder: "Filter by verdict, class, queue, label, id or peer", "aria-label": "Filter verdicts" });
  const counts = h("tbody");
  const latest = h("tbody");
  const faults = [h("div"), h("div")];
  let told = null; // until somebody has answered
  let refused = null;

  const draw = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row) => { const text = Object.values(row).join(" ").toLowerCase(); return words.every((word) => text.includes(word)); };
    fill(counts, lines(told, fits, counted, 5, "No verdict fits.", "No message has come yet."));
    fill(latest, lines(refused, fits, turnedAway, 6, "No refusal fits.", "Nothing was turned away."));
  };
  field.addEventListener("input", () => { remember({ search: field.value }); draw(); });

  const element = h("div", {},
    h("div", { class: "filter" }, field), faults,
    card("Since the start", null, table(["Verdict", "Class", "In words", "By", "Messages"], counts)),
    card("Turned away lately", h("span", { class: "empty" }, "from the rejects topic"),
      may.senders ? table(["When", "Message", "Queue", "Class, in words", "Reason", "From"], latest)
        : locked("Messages that were turned away name their senders: they need the admin token.")));
  const look = async (path, name, fault, before, take) => {
    try {
      const rows = (await get(path))[name];
      fill(fault);
      if (JSON.stringify(rows) !== JSON.stringify(before)) { take(rows); draw(); }
    } catch (error) {
      fill(fault, notice("warn", error.message));
    }
  };
  every(2000, element, () => look("/api/verdicts", "verdicts", faults[0], told, (rows) => { told = rows; }));
  if (may.senders) every(2000, element, () => look("/api/refusals", "refusals", faults[1], refused, (rows) => { refused = rows; }));
  draw();
  return element;
}

function table(titles, rows) {
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {},
    titles.map((title) => h("th", { scope: "col", class: title === "Messages" ? "number" : "" }, title)))), rows));
}

function lines(rows, fits, make, width, none, empty) {
  const shown = rows?.filter(fits) ?? [];
  if (shown.length) return shown.map(make);
  return h("tr", {}, h("td", { colSpan: width, class: "empty" }, rows === null ? "Looking …" : rows.length ? none : empty));
}

function counted(row) {
  const [kind, title, meaning] = verdict(row.verdict);
  return h("tr", {}, h("td", {}, chip(title, kind)), h("td", { class: "code" }, row.class || "–"),
    h("td", {}, row.words || meaning), h("td", {}, row.transport), h("td", { class: "number" }, count(row.count)));
}

function turnedAway(row) {
  return h("tr", {}, h("td", {}, moment(row.at)),
    h("td", { class: "code" }, h("a", { href: link("trace", { kind: "id", text: row.id }) }, row.id),
      row.label ? h("small", {}, row.label) : null),
    h("td", { class: "code" }, row.queue), h("td", {}, h("code", {}, row.class), h("small", {}, row.words)),
    h("td", {}, row.reason.replaceAll("-", " ")), h("td", { class: "code whole" }, row.peer));
}
