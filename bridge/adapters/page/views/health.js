// The doctor's findings, the shards, the listeners.

import { get } from "../api.js";
import { card, chip, definition, fill, h, notice } from "../dom.js";
import { clock, count, seconds, size } from "../format.js";
import { every, whileShown } from "../live.js";
import { remember } from "../route.js";

const RANK = { fail: 2, warn: 1 , ok: 0, skip: 0 }; // what is to mend comes first
const KINDS = { fail: "bad", warn: "warn", ok: "ok", skip: "" };

export function health(params) {
  return h("div", {}, findings(params), h("div", { class: "grid" }, shards(), listeners()));
}

export function finding(one) {
  return h("li", {}, chip(one.result, KINDS[one.result]), h("div", {},
    h("b", {}, one.about ? `${one.id}: ${one.about}` : one.id), ` ${one.found}`,
    one.mend ? h("p", { class: "mend" }, `→ ${one.mend}`) : null,
    one.result === "warn" || one.result === "fail" ? one.commands.map((text) => h("pre", {}, text)) : null));
}

function findings(params) {
  const body = h("div", {}, h("p", { class: "empty" }, "The doctor is looking …"));
  const looked = h("span", { class: "empty", role: "status" });
  let chosen = params.get("result") ?? "";
  let told = null;
  const choice = h("div", { class: "choice", role: "group", "aria-label": "Which findings" },
    ["", ...Object.keys(KINDS)].map((name) => h("button", { type: "button", "data-name": name,
      onclick: () => { chosen = name; remember({ result: name }); draw(); } }, name || "all")));
  const draw = () => {
    for (const one of choice.children) {
      one.setAttribute("aria-pressed", String(one.dataset.name === chosen));
      if (told && one.dataset.name) one.textContent = `${one.dataset.name} ${told.counts[one.dataset.name]}`;
    }
    if (!told?.at) return;
    const rows = told.findings.filter((one) => !chosen || one.result === chosen).sort((a, b) => RANK[b.result] - RANK[a.result]);
    fill(body, rows.length ? h("ul", { class: "findings" }, rows.map(finding)) : h("p", { class: "empty" }, "None."));
  };
  const element = card("Doctor", looked, choice, body);
  every(3000, element, async () => {
    try {
      const next = await get("/api/doctor");
      const isNew = next.at !== told?.at;
      told = next;
      fill(looked, next.at ? `${next.looking ? "looking again …" : "looked"} ${clock(new Date(next.at * 1000))}` : "");
      if (isNew) draw();
    } catch (error) {
      fill(body, notice("warn", error.message));
    }
  });
  draw();
  return element;
}

function shards() {
  const rows = h("tbody");
  const element = card("Shards", null, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {},
    ["Shard", "State", "Streams", "Waiting", "Bytes", "Acks owed"].map((title, at) => h("th", { scope: "col", class: at > 1 ? "number" : "" }, title)))), rows)));
  let shown = "";
  whileShown(element, (told) => {
    const text = JSON.stringify(told.shard_states);
    if (text === shown) return;
    shown = text;
    fill(rows, told.shard_states.map((one) => h("tr", {}, h("td", {}, String(one.shard)),
      h("td", {}, one.state === "open" ? chip("open", "ok") : [chip("closed", "bad"), ` ${one.state}`]),
      [count(one.streams), count(one.pending_messages), size(one.pending_bytes), count(one.waiting_acks)].map((value) => h("td", { class: "number" }, value)))));
  });
  return element;
}

function listeners() {
  const body = h("div");
  const element = card("This appliance", null, body);
  let shown = "";
  whileShown(element, (told) => {
    const minutes = Math.floor(told.uptime_s / 60);
    const text = JSON.stringify([told.listeners, told.cloned_guids, told.refusals, told.rejected_hosts, minutes]);
    if (text === shown) return;
    shown = text;
    const clones = Object.entries(told.cloned_guids ?? {});
    const refusals = Object.entries(told.refusals);
    fill(body, definition([
      ["Queue manager", h("code", {}, told.queue_manager.id)],
      ["Up for", minutes ? seconds(minutes * 60) : "less than a minute"],
      ...Object.entries(told.listeners).map(([name, address]) => [`Listens: ${name}`, h("code", {}, address)]),
      ["Cloned GUIDs", !told.cloned_guids ? "the admin token shows them" : clones.length ? clones.map(([guid, from]) => h("p", {}, `${guid}: ${from.join(" and ")}`)) : "none"],
      ["Refused host names", told.rejected_hosts?.length ? told.rejected_hosts.map((one) => h("p", {}, h("code", {}, one.host), `: ${count(one.messages)}`)) : "none"],
      ["Turned away", refusals.length ? refusals.map(([name, number]) => `${name.replaceAll("-", " ")}: ${count(number)}`).join(", ") : "nobody"],
    ]));
  });
  return element;
}
