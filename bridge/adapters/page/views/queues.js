// Queues with what is in them, their journals and dead letters; with the token also purge and move.

import { get, post } from "../api.js";
import { confirmed, entered, told } from "../dialog.js";
import { chip, definition, fill, h, notice } from "../dom.js";
import { brief, count, plural, size } from "../format.js";
import { link } from "../route.js";
import { locked, may } from "../session.js";
import { pagedTable } from "../table.js";

const PEEKED = 20;
const PREVIEW = 600;
const SYSTEM = { "system$;deadletter": "Dead letters of the machine", "system$;deadxact": "Transactional dead letters", "system$;journal": "Journal of the machine" };

export function queues(params) {
  const queue = params.get("queue");
  if (queue) return messages(queue);
  const table = pagedTable({
    path: "/api/queues/page", params, label: "Queues", placeholder: "Search queue, topic or mode", empty: "No queue is mapped.",
    columns: [
      { name: "name", title: "Queue", sort: true, class: "code", show: name },
      { name: "mode", title: "Mode", sort: true, show: (row) => chip(row.mode, row.mode === "retain" ? "ok" : "") },
      { name: "transactional", title: "Kind", sort: true, show: (row) => (row.mode === "system" ? "–" : row.transactional ? "transactional" : "plain") },
      { name: "topic", title: "Topic", sort: true, class: "code" },
      { name: "per_second", title: "Records / s", sort: true, class: "number", show: (row) => brief(row.per_second) },
      { name: "records", title: "Records", sort: true, class: "number", show: (row) => count(row.records) },
      { name: "messages", title: "Waiting", sort: true, class: "number", show: depth },
      { name: "journal_messages", title: "Journal", sort: true, class: "number", show: journal },
      { name: "readers", title: "Readers", sort: true, class: "number", show: (row) => (row.mode === "forward" ? "–" : count(row.readers)) },
      { name: "act", title: "", class: "act", show: (row) => (may.write && holds(row)
        ? h("button", { type: "button", class: "small", "aria-label": `Purge ${row.name}`, onclick: () => purge(row.name, row.messages, table.look) }, "Purge …") : "") },
    ],
  });
  return h("section", { class: "card" },
    h("p", { class: "about" }, "A forward queue hands its messages to its topic at once. A retained queue keeps them for readers; its journal and the dead letters are queues, too."), table);
}

const holds = (row) => row.mode !== "forward";

function name(row) {
  const subqueues = Object.entries(row.subqueues);
  return [holds(row) ? h("a", { href: link("queues", { queue: row.name }) }, row.name) : row.name,
    SYSTEM[row.name] ? h("small", {}, SYSTEM[row.name]) : null,
    subqueues.map(([sub, number]) => h("small", {}, h("a", { href: link("queues", { queue: `${row.name};${sub}` }) }, `;${sub}`), ` ${count(number)}`))];
}

function depth(row) {
  if (!holds(row)) return h("span", { title: "accepted = received" }, "–");
  const share = row.quota_kb ? ` of ${size(row.quota_kb * 1024)}` : "";
  return [count(row.messages), row.messages ? h("small", {}, `${size(row.bytes)}${share}`) : null];
}

function journal(row) {
  if (!row.journal && !row.journal_messages) return "–";
  return h("a", { href: link("queues", { queue: `${row.name};journal` }), title: row.journal }, count(row.journal_messages));
}

async function purge(queue, number, after) {
  if (!await confirmed(`Purge ${queue}?`, [
    `${number === null ? "All messages" : plural(number, "message")} will be removed for good. Senders that asked for it are told that the queue was purged.`], "Purge")) return;
  await work(() => post("/api/queues/purge", { queue }), (done) => `${plural(done.purged, "message")} removed from ${queue}.`);
  after();
}

async function work(call, words) {
  try {
    await told("Done", words(await call()));
  } catch (error) {
    await told("It was not done", error.message);
  }
}

// -- one queue -------------------------------------------------------------------------------

function messages(queue) {
  const list = h("div", { class: "letters" });
  const said = h("p", { class: "found", role: "status" });
  let after = null;
  const more = h("button", { type: "button", hidden: true, onclick: () => look(after) }, "More");

  const look = async (from) => {
    try {
      const page = await get("/api/queues/messages", { queue, limit: PEEKED, after: from });
      const rows = page.messages.map((one) => letter(queue, one, again));
      if (from === null) fill(list, rows.length ? rows : h("p", { class: "empty" }, "It is empty."));
      else list.append(...rows);
      after = page.messages.at(-1)?.lookup_id ?? null;
      more.hidden = !page.more;
      fill(said, `${plural(list.querySelectorAll("details").length, "message")} shown${page.more ? ", there are more" : ""}`);
    } catch (error) {
      fill(list, notice("bad", error.message));
    }
  };
  const again = () => look(null);
  if (may.senders) queueMicrotask(again);
  else fill(list, locked("Messages name their senders: they need the admin token."));
  return h("section", { class: "card" },
    h("p", {}, h("a", { href: "#queues" }, "← all queues")),
    h("header", {}, h("h2", { class: "code" }, queue), h("span", { class: "buttons" },
      may.senders ? h("button", { type: "button", onclick: again }, "Look again") : null,
      may.write ? h("button", { type: "button", class: "danger", onclick: () => purge(queue, null, again) }, "Purge …") : null)),
    said, list, more);
}

function letter(queue, one, after) {
  return h("details", {},
    h("summary", {}, h("span", { class: "code" }, one.message_id), h("b", {}, one.label || "(no label)"),
      h("span", {}, size(bytesIn(one.body))), one.locked ? chip("a reader has it", "warn") : null),
    definition([["Lookup id", h("code", {}, String(one.lookup_id))], ["Source", h("code", {}, one.source)], ["Sent", one.sent_time],
      ["Arrived", one.arrived_time], ["Priority", String(one.priority)], ["Body", h("pre", {}, preview(one.body))]]),
    h("p", { class: "buttons" }, h("a", { class: "button", href: link("trace", { kind: "id", text: one.message_id }) }, "Trace"),
      may.write ? h("button", { type: "button", onclick: () => move(queue, one, after) }, "Move …") : null));
}

const bytesIn = (base64) => Math.floor((base64 ?? "").replace(/=+$/, "").length * 3 / 4);

function preview(base64) {
  const bytes = Uint8Array.from(atob((base64 ?? "").slice(0, PREVIEW * 4)), (c) => c.charCodeAt(0)).slice(0, PREVIEW);
  const wide = bytes.length > 3 && bytes[1] === 0 && bytes[3] === 0;
  const text = new TextDecoder(wide ? "utf-16le" : "utf-8").decode(bytes);
  if (/[\u0000-\u0008\u000e-\u001f\ufffd]/.test(text)) return [...bytes.slice(0, 64)].map((b) => b.toString(16).padStart(2, "0")).join(" ");
  return text || "(empty)";
}

async function move(queue, one, after) {
  const base = queue.split(";")[0];
  const to = await entered("Move this message", [`${one.message_id} leaves ${queue}. It may go to a subqueue, or back.`],
    "To", "Move", queue === base ? `${base};held` : base);
  if (!to) return;
  await work(() => post("/api/queues/move", { queue, lookup_id: one.lookup_id, to }), () => `It is in ${to} now.`);
  after();
}
