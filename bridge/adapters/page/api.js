// Talks to the appliance. The token lives here, in memory, and nowhere else.

const PATIENCE_MS = 10000;
let token = "";

// The appliance said no; `status` and `data` are its answer.
export class Refused extends Error {
  constructor(status, data) {
    super(data?.error ?? `the appliance answers ${status}`);
    this.status = status;
    this.data = data ?? {};
  }
}

// Nobody answered.
export class Away extends Error {}

export function keepToken(text) { token = text; }
export function hasToken() { return token !== ""; }

export function get(path, params = {}) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== "" && value !== undefined && value !== null) asked.set(name, value);
  }
  const query = asked.toString();
  return ask(query ? `${path}?${query}` : path, { method: "GET" }, PATIENCE_MS);
}

// These have 64 bits, a number of JavaScript has 53: they are text here and numbers on the wire.
const LONG = "(lookup_id|tx_sequence_id)";
const read = (text) => JSON.parse(text.replace(new RegExp(`"${LONG}": (\\d+)`, "g"), '"$1": "$2"'));
const written = (order) => JSON.stringify(order).replace(new RegExp(`"${LONG}":"(\\d+)"`, "g"), '"$1":$2');

// A purge may have a million messages to do: a write is waited for.
export function post(path, order = {}) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", body: written(order), headers }, 600000);
}

async function ask(path, options, patience, given = token) {
  const headers = { Accept: "application/json", ...options.headers };
  if (given) headers.Authorization = `Bearer ${given}`;
  let answer;
  let data;
  try {
    answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin",
      redirect: "error", signal: AbortSignal.timeout(patience) });
    data = read(await answer.text());
  } catch (error) {
    throw new Away(error.message);
  }
  if (!answer.ok) throw new Refused(answer.status, data);
  return data;
}

// What whoever has this token may do; asked without keeping it.
export function access(given = token) {
  return ask("/api/access", { method: "GET" }, PATIENCE_MS, given);
}
