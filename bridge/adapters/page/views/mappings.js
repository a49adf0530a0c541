// Which queue becomes which topic, and what `map apply` would change.

import { Refused, get, post } from "../api.js";
import { confirmed, told } from "../dialog.js";
import { card, chip, fill, h, notice } from "../dom.js";
import { plural } from "../format.js";
import { may } from "../session.js";
import { pagedTable } from "../table.js";

const SIGNS = { create: ["+", "ok"], alter: ["~", "warn"], warn: ["!", "bad"] };

export function mappings(params) {
  return h("div", {}, plan(), card("In use", null, pagedTable({
    path: "/api/mappings", params, label: "Mappings", placeholder: "Search queue, topic or mode", empty: "Nothing is mapped: every message is refused.", ms: 5000,
    columns: [
      { name: "queue", title: "Queue", sort: true, class: "code" },
      { name: "topic", title: "Topic", sort: true, class: "code", show: (row) => [row.topic, row.is_dynamic ? h("small", {}, "named by each message") : null] },
      { name: "mode", title: "Mode", sort: true, show: (row) => chip(row.mode, row.mode === "retain" ? "ok" : "") },
      { name: "transactional", title: "Kind", sort: true, show: (row) => (row.transactional ? "transactional" : "plain") },
      { name: "key", title: "Key, order", show: (row) => `${row.key}, ${row.order}` },
      { name: "value", title: "Value, time", show: (row) => `${row.value}, ${row.timestamp}` },
      { name: "journal", title: "Journal", sort: true, class: "code", show: (row) => row.journal ?? "–" },
      { name: "oversize", title: "Oversize", show: (row) => row.oversize },
    ],
  })));
}

function plan() {
  const body = h("div", {}, h("p", { class: "empty" }, "Comparing the mapping files with the cluster …"));
  const look = async () => {
    try {
      fill(body, drawn(await get("/api/mappings/plan"), look));
    } catch (error) {
      fill(body, notice("warn", error.message));
    }
  };
  queueMicrotask(look);
  return card("Plan", h("button", { type: "button", class: "small", onclick: look }, "Look again"), body);
}

function drawn(plan, look) {
  const { changed } = plan.queues;
  const lines = plan.changes.map(line);
  const todo = plan.changes.filter((one) => one.action !== "warn").length + changed.length;
  return [
    todo || lines.length ? null : h("p", { class: "good" }, "Nothing to do: the cluster is as the mappings want it, and the appliance uses the files as they are."),
    changed.length ? h("p", {}, chip("files", "warn"), ` ${plural(changed.length, "queue")} in the files differ from what is in use: `, h("span", { class: "code" }, changed.join(", "))) : null,
    lines.length ? h("ul", { class: "plan" }, lines) : null,
    plan.notes.length ? h("ul", { class: "notes" }, plan.notes.map((note) => h("li", {}, note))) : null,
    todo && may.write ? h("p", { class: "buttons" }, h("button", { type: "button", class: "primary", onclick: () => apply(plan, changed, look) }, "Apply …")) : null,
    todo && !may.write ? h("p", { class: "empty" }, may.token ? "Unlock to apply it here, or run msmq-bridge map apply." : "msmq-bridge map apply does it.") : null,
  ];
}

function line(change) {
  const [sign, kind] = SIGNS[change.action];
  const what = change.action === "create"
    ? `create topic ${change.topic} (${parts(change.to)}) for ${change.reason}`
    : `${change.topic} ${change.setting} ${change.action === "warn" ? change.from : `${change.from} → ${change.to}`}: ${change.reason}`;
  return h("li", {}, chip(sign, kind), h("span", {}, what));
}

function parts(made) {
  return [made.partitions ? plural(made.partitions, "partition") : "the cluster’s partitions",
    made.replication ? plural(made.replication, "replica") : "the cluster’s replicas",
    ...Object.entries(made.config).map(([name, value]) => `${name} ${value}`)].join(", ");
}

async function apply(plan, changed, look) {
  const list = h("ul", { class: "plan" }, plan.changes.filter((one) => one.action !== "warn").map(line));
  const files = changed.length ? [`The appliance switches to the files: ${changed.join(", ")}.`] : [];
  if (await confirmed("Apply the mappings?", [...files, list, "Sessions and streams go on."], "Apply")) await carryOut(false);
  look();
}

async function carryOut(force) {
  try {
    const done = await post(`/api/mappings/apply?force=${force ? 1 : 0}`);
    await told("Done", `${plural(done.changes.length, "change")} of the cluster; the appliance switched ${done.appliance.applied.join(", ") || "nothing"}.`);
  } catch (error) {
    const breaks = error instanceof Refused ? error.data.breaks_order ?? [] : [];
    if (!breaks.length) { await told("It was not done", error.message); return; }
    const list = h("ul", {}, breaks.map((one) => h("li", {}, `${one.queue}: ${one.reason}`)));
    if (await confirmed("Live streams would lose their order", [list], "Switch anyway")) await carryOut(true);
  }
}
