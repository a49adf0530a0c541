// Numbers, times and words as people read them.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export function count(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

export function brief(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) >= 100000) return short.format(value);
  return Math.abs(value) < 10 && !Number.isInteger(value) ? value.toFixed(1) : whole.format(value);
}

export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at += 1; }
  return `${at && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${units[at]}`;
}

export function seconds(value) {
  if (value < 1) return value ? `${value.toFixed(1)} s` : "0 s";
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  if (value < 172800) return `${Math.round(value / 3600)} h`;
  return `${Math.round(value / 86400)} days`;
}

export function milliseconds(value) {
  return value === null || value === undefined ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

export function clock(date) {
  return date.toLocaleTimeString("en-GB");
}

export function moment(ms) {
  const date = new Date(ms);
  const day = date.toDateString() === new Date().toDateString() ? "" : `${date.toLocaleDateString("en-CA")} `;
  return `${day}${clock(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

export function plural(number, thing, things = `${thing}s`) {
  return `${count(number)} ${number === 1 ? thing : things}`;
}

const VERDICTS = {
  accepted: ["ok", "Accepted", "it is a record in its topic"],
  forwarded: ["ok", "Handed on", "it is for another host"],
  duplicate: ["", "Duplicate", "it was here before: acknowledged again, not written again"],
  out_of_order: ["warn", "Out of order", "something before it is missing: its sender sends again"],
  expired: ["warn", "Expired", "its time was over when it came"],
  rejected: ["bad", "Rejected", "it was turned away"],
  received: ["ok", "Received", "a reader has taken it from its queue"],
  backfilled: ["ok", "Backfilled", "it was brought in from a journal or an export"],
  removed: ["warn", "Removed", "it left its queue without a reader"],
  busy: ["warn", "Busy", "not now: its sender keeps it"],
};

// [kind, name, meaning] of a verdict.
export function verdict(name) {
  return VERDICTS[name] ?? ["", name, ""];
}

// [kind, word, why] of the whole appliance. It may be ready while some queues are not. One that stands by is not ill: another one leads.
export function stateOf(figures) {
  const why = figures.reasons.filter((reason) => reason !== figures.role).join("; ");
  if (figures.ready) {
    return [why ? "warn" : "ok", figures.role === "leader" ? "Ready, leading" : "Ready", why];
  }
  return figures.role === "standby" ? [why ? "warn" : "", "Standby", why] : ["bad", "Not ready", why];
}
