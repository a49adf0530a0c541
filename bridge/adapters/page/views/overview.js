// What an operator looks at first: is it well, how much goes through, what waits.

import { get } from "../api.js";
import { chart, chooseSpan, chosenSpan } from "../charts.js";
import { card, chip, definition, fill, h, say } from "../dom.js";
import { brief, count, milliseconds, plural, seconds, size, verdict } from "../format.js";
import { every, live, whileShown } from "../live.js";
import { link } from "../route.js";
import { may } from "../session.js";
import { finding } from "./health.js";

export function overview() {
  const element = h("div", { class: "overview" });
  element.append(figures(), charts(), h("div", { class: "grid" }, doctor(), kafka(), outcome(), waitingAcks()));
  return element;
}

// -- figures ---------------------------------------------------------------------------------

const FIGURES = [
  ["messages / s", (f) => brief(f.rates.messages_per_second), "verdicts", (f) => `${count(f.totals.messages)} in all`],
  ["uncommitted", (f) => brief(f.pending.messages), "health", (f) => (f.pending.messages ? `oldest ${seconds(f.pending.oldest_s)}` : "nothing lags")],
  ["sessions", (f) => count(f.session_count), "sessions", () => "open now"],
  ["streams", (f) => count(f.streams), "streams", () => "each in order"],
  ["acks owed", (f) => count(f.waiting_acks), "health", (f) => (f.waiting_forwards ? `${plural(f.waiting_forwards, "forward")} wait` : (f.waiting_acks ? "peers are away" : "none waits"))],
  ["received", (f) => `${size(f.rates.bytes_received_per_second)}/s`, "queues", (f) => `${size(f.totals.bytes_received)} in all`],
];

function figures() {
  const tiles = FIGURES.map(([name, , view]) => h("a", { class: "tile", href: link(view) },
    h("span", { class: "name" }, name), h("strong", {}, "–"), h("small", {}, "")));
  const element = h("div", { class: "tiles" }, tiles);
  whileShown(element, (told) => FIGURES.forEach(([, value, , more], number) => {
    say(tiles[number].querySelector("strong"), value(told));
    say(tiles[number].querySelector("small"), more(told));
  }));
  return element;
}

// -- charts ----------------------------------------------------------------------------------

export const THROUGHPUT = [
  { name: "messages", label: "messages/s", colour: "blue", text: brief, fill: true },
  { name: "records", label: "records/s", colour: "green", text: brief, dash: [3, 4], width: 1.5 },
];
const WAITING = [{ name: "pending", label: "messages", colour: "orange", text: brief, fill: true }];
const TIMES = [
  { name: "commit_ms", label: "commit", colour: "purple", text: milliseconds },
  { name: "ack_ms", label: "arrival to ack", colour: "blue", text: milliseconds },
];

function charts() {
  const choice = h("div", { class: "choice", role: "group", "aria-label": "Minutes shown" },
    [5, 15].map((minutes) => h("button", { type: "button", "aria-pressed": String(chosenSpan() === minutes * 60),
      onclick: (event) => {
        chooseSpan(minutes * 60);
        for (const one of choice.children) one.setAttribute("aria-pressed", String(one === event.target));
        live.dispatchEvent(new Event("change"));
      } }, `${minutes} min`)));
  return card("Throughput and lag", choice, h("div", { class: "charts" },
    chart("Throughput", THROUGHPUT, { height: 255 }),
    h("div", {}, chart("Waiting for a commit", WAITING, { height: 110 }), chart("Times", TIMES, { height: 110 }))));
}

// -- cards -----------------------------------------------------------------------------------

function doctor() {
  const body = h("div", {}, h("p", { class: "empty" }, "The doctor is looking …"));
  const element = card("Doctor", h("a", { href: link("health") }, "all findings"), body);
  every(5000, element, async () => {
    const told = await get("/api/doctor").catch(() => null);
    if (told?.at) fill(body, doctorLines(told));
  });
  return element;
}

export function doctorLines(told) {
  const bad = told.findings.filter((one) => one.result === "fail" || one.result === "warn");
  if (!bad.length) return h("p", { class: "good" }, `Nothing to mend: ${plural(told.counts.ok, "check")} passed.`);
  const shown = bad.sort((a, b) => a.result.localeCompare(b.result)).slice(0, 4);
  return [h("ul", { class: "findings" }, shown.map(finding)),
    bad.length > shown.length ? h("p", { class: "empty" }, `and ${bad.length - shown.length} more`) : null];
}

function kafka() {
  const body = h("div");
  const element = card("Kafka", null, body);
  let shown = "";
  whileShown(element, (f) => {
    const closed = f.shard_states.filter((one) => one.state !== "open");
    const text = JSON.stringify([f.kafka, f.kafka_state, f.shard_states.map((one) => one.state), f.topic_prefix]);
    if (text === shown) return;
    shown = text;
    fill(body, definition([
      ["State", f.kafka_state === "up" ? chip("up", "ok") : h("span", {}, chip("away", "bad"), ` Kafka ${f.kafka_state}`)],
      ["Brokers", `${f.kafka["bootstrap.servers"] || "–"}${f.kafka.embedded ? " (embedded)" : ""}`],
      ["Shards", closed.length ? closed.map((one) => `${one.shard}: ${one.state}`).join("; ") : `${plural(f.shards, "shard")}, all open`],
      ["Topics of its own", `${f.topic_prefix}.*`],
    ]));
  });
  return element;
}

function outcome() {
  const body = h("div");
  const element = card("Verdicts", h("a", { href: link("verdicts") }, "in words"), body);
  let shown = "";
  whileShown(element, (f) => {
    const text = JSON.stringify(f.verdicts);
    if (text === shown) return;
    shown = text;
    const rows = Object.entries(f.verdicts).sort((a, b) => b[1] - a[1]);
    fill(body, rows.length ? h("ul", { class: "bars" }, rows.map(([name, number]) => bar(name, number, rows[0][1])))
      : h("p", { class: "empty" }, "No message has come yet."));
  });
  return element;
}

export function bar(name, number, most) {
  const [kind, title] = verdict(name);
  const length = h("i", { class: kind });
  length.style.width = `${Math.max(100 * number / most, 0.5)}%`;
  return h("li", {}, h("span", { class: "what" }, title), h("span", { class: "bar", "aria-hidden": "true" }, length), h("b", {}, count(number)));
}

function waitingAcks() {
  const body = h("div");
  const element = card("Acks that are owed", null, body);
  if (!may.senders) {
    fill(body, h("p", { class: "empty" }, "The admin token shows which peers wait."));
    return element;
  }
  every(5000, element, async () => {
    const page = await get("/api/acks", { limit: 6 }).catch(() => null);
    if (!page) return;
    fill(body, page.rows.length ? h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Peer"), h("th", { scope: "col", class: "number" }, "Waiting"))),
      h("tbody", {}, page.rows.map((row) => h("tr", {}, h("td", { class: "code" }, row.peer), h("td", { class: "number" }, count(row.waiting))))))
      : h("p", { class: "good" }, "Every peer has its acknowledgments."));
  });
  return element;
}
