// Who sends: sessions that are open, streams that are known.

import { chip, h } from "../dom.js";
import { count, moment } from "../format.js";
import { link } from "../route.js";
import { pagedTable } from "../table.js";

const STATES = { OPEN: "ok" };

export function sessions(params) {
  return h("section", { class: "card" },
    h("p", { class: "about" }, "Binary sessions (TCP 1801) that are open now. “Undecided” are messages that wait for their commit."),
    pagedTable({
      path: "/api/sessions", params, label: "Sessions", placeholder: "Search address, GUID or state", empty: "No session is open.",
      columns: [
        { name: "peer", title: "Peer", sort: true, class: "code" },
        { name: "queue_manager", title: "Queue manager", sort: true, class: "code",
          show: (row) => h("a", { href: link("streams", { search: row.queue_manager }) }, row.queue_manager) },
        { name: "state", title: "State", sort: true, show: (row) => chip(row.state.toLowerCase().replaceAll("_", " "), STATES[row.state] ?? "warn") },
        { name: "direction", title: "Opened by", sort: true, show: (row) => (row.direction === "in" ? "the peer" : "us") },
        { name: "received", title: "Messages", sort: true, class: "number", show: (row) => count(row.received) },
        { name: "waiting", title: "Undecided", sort: true, class: "number", show: (row) => count(row.waiting) },
      ],
    }));
}

export function streams(params) {
  return h("section", { class: "card" },
    h("p", { class: "about" }, "A stream is a sender’s GUID and a destination, byte for byte. Its messages are taken once and in order; “number” is the last one that is in Kafka."),
    pagedTable({
      path: "/api/streams", params, label: "Streams", placeholder: "Search GUID or destination", empty: "No stream has come yet.", ms: 4000,
      columns: [
        { name: "destination", title: "Destination", sort: true, class: "code" },
        { name: "source", title: "Source", sort: true, class: "code" },
        { name: "transport", title: "By", sort: true, show: (row) => chip(row.transport) },
        { name: "sequence_id", title: "Sequence", sort: true, class: "code", show: (row) => BigInt(row.sequence_id).toString(16) },
        { name: "number", title: "Number", sort: true, class: "number", show: (row) => count(row.number) },
        { name: "more", title: "Receipts", show: receipts },
      ],
    }));
}

function receipts(row) {
  if (row.transport !== "http") return "–";
  const behind = row.number > row.receipted ? `receipted to ${count(row.receipted)}` : "all receipted";
  const rejects = row.rejects ? `, ${count(row.rejects)} rejects` : "";
  return h("span", { title: `last message ${moment(row.last_access * 1000)}` }, `${behind}${rejects}`);
}
