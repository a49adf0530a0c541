// Where is my message? Its whole story, as the audit topic has it.

import { get } from "../api.js";
import { chip, definition, fill, h, notice } from "../dom.js";
import { moment, plural, verdict } from "../format.js";
import { remember } from "../route.js";

const KINDS = { id: "Message id", label: "Label", correlation: "Correlation id" };
const ID = /^\{?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\}?\\(\d{1,20})$/i;

export function trace(params) {
  const kind = h("select", { id: "trace-kind" }, Object.entries(KINDS).map(([name, title]) =>
    h("option", { value: name, selected: params.get("kind") === name }, title)));
  const field = h("input", { type: "search", id: "trace-text", value: params.get("text") ?? "", maxLength: 1000,
    placeholder: "3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77\\42", autocomplete: "off" });
  const found = h("div", { class: "story", "aria-live": "polite" });
  const look = () => { if (field.value.trim()) tell(kind.value, field.value, found); };
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") look(); });
  const form = h("div", { class: "ask", role: "search" },
    h("label", { for: "trace-kind" }, "Find by"), kind,
    h("label", { for: "trace-text", class: "hidden" }, "What to find"), field,
    h("button", { type: "button", class: "primary", onclick: look }, "Trace"));
  if (field.value) queueMicrotask(look);
  return h("section", { class: "card" },
    h("p", { class: "about" }, "Every message that reached the wire has a verdict in the audit topic. The index may be some seconds behind while messages come."), form, found);
}

async function tell(kind, text, found) {
  remember({ kind, text });
  fill(found, h("p", { class: "empty" }, "Looking …"));
  try {
    const { verdicts } = await get("/api/trace", { [kind]: asked(kind, text.trim()) });
    fill(found, verdicts.length ? story(verdicts)
      : notice("warn", "No verdict: it never reached this appliance’s wire, or its verdict is older than the topic keeps."));
  } catch (error) {
    fill(found, notice("bad", error.message));
  }
}

// Ids as MSMQ shows them become what the appliance looks for.
function asked(kind, text) {
  const id = ID.exec(text);
  if (!id || kind === "label") return text;
  return kind === "id" ? `${id[1].toLowerCase()}\\${id[2]}` : correlation(id[1], BigInt(id[2]));
}

// A correlation id is 20 bytes: the GUID as Windows stores it, and the ordinal.
function correlation(guid, ordinal) {
  const [a, b, c, d, e] = guid.toLowerCase().split("-");
  const turned = (hex) => hex.match(/../g).reverse().join("");
  const number = (ordinal & 0xffffffffn).toString(16).padStart(8, "0");
  return [turned(a), turned(b), turned(c), d, e, turned(number)].join("");
}

// One story for each message and destination: what it is, then what happened, in order.
function story(verdicts) {
  const stories = new Map();
  for (const one of verdicts) {
    const key = `${one.id} ${(one.queue || one.dest).toLowerCase()}`;
    stories.set(key, [...(stories.get(key) ?? []), one]);
  }
  return [h("h2", {}, `${plural(verdicts.length, "verdict")} on ${plural(stories.size, "message")}`),
    [...stories.values()].map((entries) => h("article", {}, about(entries), h("ol", { class: "timeline" }, entries.map(steps))))];
}

function about(entries) {
  const one = Object.assign({}, ...entries.toReversed()); // the first one knows best
  return definition([
    ["Message", h("code", {}, one.id)],
    ["Label", one.label],
    ["Sent to", h("code", {}, one.dest)],
    ["Queue here", one.queue ? h("code", {}, one.queue) : ""],
    ["Stream", one.tx_sequence_number ? `number ${one.tx_sequence_number}, after ${one.tx_previous_number ?? 0}, of sequence ${BigInt(one.tx_sequence_id).toString(16)}` : ""],
    ["Correlation", one.correlation ? h("code", {}, one.correlation) : ""],
  ]);
}

const LATER = ["received", "removed", "backfilled"]; // nothing arrives with these

function steps(entry, number) {
  const [kind, title, meaning] = verdict(entry.verdict);
  const from = [entry.peer, entry.transport].filter(Boolean).join(" by ");
  return [
    LATER.includes(entry.verdict) ? null : step("", entry.at, number ? "Came again" : "Came in", from ? `from ${from}` : ""),
    step(kind, entry.at, title, entry.words || meaning, definition([
      ["Class", entry.class ? h("code", {}, entry.class_name) : ""],
      ["Reason", entry.reason ? entry.reason.replaceAll("-", " ") : ""],
    ])),
    entry.topic && entry.verdict !== "received" && entry.verdict !== "removed" ? step("ok", entry.stamp || entry.at, "In Kafka", "one record, committed with its verdict", definition([["Record", h("code", {}, record(entry))]])) : null,
  ];
}

function record(entry) {
  const isThere = entry.offset !== null && entry.offset !== undefined;
  return `${entry.topic}-${entry.partition}${isThere ? `@${entry.offset}` : " (no longer there)"}`;
}

function step(kind, at, title, words, more) {
  return h("li", { class: kind },
    h("div", { class: "head" }, h("time", { dateTime: new Date(at).toISOString() }, moment(at)), chip(title, kind), h("span", {}, words)),
    more?.childElementCount ? more : null);
}
