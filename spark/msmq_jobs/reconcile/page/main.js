// Puts the parts on the page, and keeps them right when the theme changes or paper asks.
const root = document.documentElement;

function verdictPicker(verdicts) {
  const choose = (verdict) => () => offenders.change(() => { offenders.pick = (row) => verdict === "" || row.verdict === verdict; });
  const choice = (verdict, name) => el("label", {}, el("input", { type: "radio", name: "verdict", value: verdict, checked: verdict === "", onchange: choose(verdict) }), el("span", {}, name));
  return el("fieldset", { class: "segments" }, el("legend", { class: "visually-hidden" }, "Verdict"), choice("", "All"), ...verdicts.map((v) => choice(v, nameOf(v))));
}

function idsButton() { // of all pages, as the filter has them
  const ids = () => [...new Set(offenders.chosen().map((row) => visible(row.message_id)))].join("\n");
  return el("button", { type: "button", class: "copy", onclick: (e) => copy(ids(), e.currentTarget) }, "Copy these ids");
}

const found = [...BREAKING, ...LAWFUL].filter((verdict) => data.offenders[verdict]?.length);
const offenders = new Table(document.getElementById("offenders-table"), {
  label: "messages", columns: OFFENDER_COLUMNS, details: offenderDetails, extra: [verdictPicker(found), idsButton()],
  rows: found.flatMap((verdict) => data.offenders[verdict].map((row) => ({ ...row, verdict }))),
  empty: "Every message was delivered once. There is nobody to name.",
});
const breaks = (row) => sum(row.verdicts, BREAKING) > 0;
const worstFirst = { column: "Breaks parity", down: true };
const queues = new Table(document.getElementById("queues-table"), {
  label: "queues", rows: data.queues, columns: QUEUE_COLUMNS, details: queueDetails, only: breaks, sort: worstFirst, empty: "No queue has a message.",
});
const senders = new Table(document.getElementById("senders-table"), {
  label: "senders", rows: data.senders, columns: SENDER_COLUMNS, details: senderDetails, only: breaks, sort: worstFirst, empty: "Nobody sent a message.",
});
const tables = [offenders, queues, senders];
timelineChart(document.getElementById("timeline"));
latencyChart(document.getElementById("latency"));

const redraw = () => charts.forEach((chart) => chart.draw());

for (const input of document.querySelectorAll('input[name="theme"]')) {
  input.checked = input.value === (root.dataset.theme ?? "auto");
  input.addEventListener("change", () => {
    if (input.value === "auto") delete root.dataset.theme;
    else root.dataset.theme = input.value;
    try { localStorage.setItem("msmq-bridge.theme", input.value); } catch { /* it lasts as long as the page */ }
    redraw();
  });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

for (const link of document.querySelectorAll("[data-show]"))
  link.addEventListener("click", () => document.querySelector(`input[name="verdict"][value="${link.dataset.show}"]`)?.click());
for (const button of document.querySelectorAll("[data-copy-code]"))
  button.addEventListener("click", () => copy(button.previousElementSibling.textContent, button));

let paper = false;
function onPaper(now) { // all rows, nothing folded
  if (paper === now) return;
  paper = now;
  tables.forEach((table) => table.print(now));
  for (const ranges of document.querySelectorAll("details.ranges")) {
    if (now) ranges.dataset.was = ranges.open;
    ranges.open = now || ranges.dataset.was === "true";
  }
  redraw();
}
addEventListener("beforeprint", () => onPaper(true));
addEventListener("afterprint", () => onPaper(false));
matchMedia("print").addEventListener("change", (e) => onPaper(e.matches));
