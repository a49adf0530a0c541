// What the tables show of a queue, a sender, a message.
const dash = () => el("span", { class: "dash" }, "0");
const count = (name, of) => ({ name, number: true, value: of, text: () => "", cell: (row) => (of(row) ? integer.format(of(row)) : dash()) });
const time = (name, key, show = moment) => ({ name, value: (row) => row[key], text: (row) => moment(row[key]), cell: (row) => el("span", { class: "time", title: moment(row[key]) }, show(row[key])) });
const minute = (at) => moment(at).replace(/^(\S+ \d\d:\d\d):\d\d$/, "$1");
const late = (name, key) => ({ name, number: true, value: (row) => row.latency_ms?.[key] ?? null, text: () => "", cell: (row) => duration(row.latency_ms?.[key]) });

const broken = {
  name: "Breaks parity", number: true,
  value: (row) => sum(row.verdicts, BREAKING),
  text: (row) => listed(row.verdicts, BREAKING),
  cell: (row) => (sum(row.verdicts, BREAKING)
    ? el("span", { class: "broken" }, el("b", {}, shape("stop"), integer.format(sum(row.verdicts, BREAKING))), el("small", {}, listed(row.verdicts, BREAKING)))
    : dash()),
};
const lawful = {
  name: "Lawful", number: true,
  value: (row) => sum(row.verdicts, LAWFUL),
  text: (row) => listed(row.verdicts, LAWFUL),
  cell: (row) => (sum(row.verdicts, LAWFUL) ? integer.format(sum(row.verdicts, LAWFUL)) : dash()),
};
const once = count("Delivered once", (row) => row.verdicts.delivered_once ?? 0);
const messages = count("Messages", (row) => row.messages);
const text = (name, of, cell) => ({ name, value: (row) => of(row).toLowerCase(), text: of, cell: cell ?? ((row) => el("bdi", {}, visible(of(row)))) });
const identity = (name, of, what) => ({ ...text(name, of, (row) => el("span", { class: "id" }, mono(of(row)), " ", copyButton(of(row), what))), wide: true });

const facts = (pairs) => el("dl", { class: "facts" }, ...pairs.filter(([, value]) => value).map(([name, value]) =>
  el("div", {}, el("dt", {}, name), el("dd", {}, value))));

const QUEUE_COLUMNS = [
  { ...text("Queue", (row) => row.queue, (row) => el("bdi", { class: "strong" }, visible(row.queue))), wide: true },
  messages, once, broken, lawful, late("Half within", "p50"), late("99 % within", "p99"), late("Slowest", "max"), time("Last", "last", minute),
];
const queueDetails = (row) => facts([
  ["Topics", mono(row.topics.join(", "))],
  ["Mode", visible(row.mode)],
  ["First and last", `${moment(row.first)} to ${moment(row.last)}`],
  ["Content", visible(row.content)],
  ["Lawful", listed(row.verdicts, LAWFUL)],
  ["Classes", Object.keys(row.classes).sort().map((name) => `${integer.format(row.classes[name])} × ${visible(name)}`).join(", ")],
]);

const SENDER_COLUMNS = [
  identity("Sender", (row) => row.source, "the sender's GUID"),
  count("Queues", (row) => row.queues), messages, once, broken, lawful, time("First", "first", minute), time("Last", "last", minute),
];
const senderDetails = (row) => facts([["Verdicts", listed(row.verdicts, ["delivered_once", ...BREAKING, ...LAWFUL])]]);

const place = (copy) => `${copy.topic}-${copy.partition}@${copy.offset}`;
const kindOf = (verdict) => (BREAKING.includes(verdict) ? "stop" : "ring");
const OFFENDER_COLUMNS = [
  text("Verdict", (row) => nameOf(row.verdict), (row) => el("span", { class: `verdict ${kindOf(row.verdict)}` }, shape(kindOf(row.verdict)), nameOf(row.verdict))),
  identity("Message id", (row) => row.message_id, "the message id"),
  text("Queue", (row) => row.queue),
  text("Reason", (row) => row.reason ?? ""),
  time("Sent", "sent_time"),
  text("Records", (row) => row.copies.map(place).join(" "), (row) => (row.copies.length
    ? el("span", { class: "places" }, ...row.copies.map((copy) => mono(place(copy)))) : el("span", { class: "dash" }, "none"))),
];
const offenderDetails = (row) => facts([
  ["Sender", row.source == null ? "not known" : mono(row.source)],
  ["Class", row.class == null ? "" : visible(row.class)],
  ["Sent", moment(row.sent_time)],
  ["Accepted", moment(row.accepted_time)],
  ["Landed", moment(row.landed_time)],
]);
