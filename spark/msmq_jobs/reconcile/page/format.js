"use strict";
// Names, ids and reasons come from senders: they become text nodes, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
const BREAKING = ["missing", "duplicated", "out_of_order", "altered", "unexpected"];
const LAWFUL = ["expired", "rejected", "dead_lettered", "in_flight"];
const integer = new Intl.NumberFormat("en");
// What would hide itself or turn its neighbours round is shown by its number.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

function shape(kind) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const use = document.createElementNS(space, "use");
  svg.setAttribute("class", `shape ${kind}`);
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#${kind}`);
  svg.append(use);
  return svg;
}

const visible = (text) =>
  String(text).replace(HIDDEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const mono = (text) => el("bdi", { class: "mono" }, visible(text));
const nameOf = (verdict) => (verdict === "dead_lettered" ? "dead-lettered" : verdict.replaceAll("_", " "));
const sum = (verdicts, names) => names.reduce((all, name) => all + (verdicts[name] ?? 0), 0);
const listed = (verdicts, names) =>
  names.filter((name) => verdicts[name]).map((name) => `${integer.format(verdicts[name])} ${nameOf(name)}`).join(", ");

function moment(time) {
  if (time == null) return "–";
  const found = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(?:Z|\+00:00)$/.exec(time);
  return found ? `${found[1]} ${found[2]}` : visible(time);
}

function duration(ms) {
  if (ms == null) return "–";
  for (const [size, unit] of [[3600000, "h"], [60000, "min"], [1000, "s"]])
    if (ms >= size) return `${Number((ms / size).toPrecision(3))} ${unit}`;
  return `${Number(ms.toPrecision(3))} ms`;
}

function say(text) {
  document.getElementById("said").textContent = text;
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not over plain http: then as pages did before
    const area = el("textarea", { class: "visually-hidden" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = [...button.childNodes];
  button.replaceChildren(button.textContent ? "Copied" : shape("done"));
  say("Copied");
  setTimeout(() => button.replaceChildren(...before), 1200);
}

const copyButton = (text, what) =>
  el("button", { type: "button", class: "copy icon", title: `Copy ${what}`, "aria-label": `Copy ${what}`, onclick: (e) => copy(visible(text), e.currentTarget) }, shape("clip"));
