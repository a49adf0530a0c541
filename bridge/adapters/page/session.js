// What whoever looks at the page may do.

import { access, hasToken, keepToken } from "./api.js";
import { askToken } from "./dialog.js";
import { h, notice } from "./dom.js";

export const may = new EventTarget();
may.read = true;
may.write = false;
may.senders = false; // read what names senders: GUIDs, addresses, streams, messages
may.token = false; // there is one to ask for

export async function learn() {
  const told = await access();
  may.read = told.may_read;
  may.write = told.may_write;
  may.senders = told.may_see_senders;
  may.token = told.token;
  may.protected = told.protect_reads;
  may.dispatchEvent(new Event("change"));
}

export async function unlock() {
  if (await askToken()) await learn();
}

// Stands where something is that names senders, until the token is there.
export function locked(words) {
  return h("div", { class: "locked" }, notice("warn", words),
    may.token ? h("button", { type: "button", class: "primary", onclick: unlock }, "Unlock") : null);
}

export async function lock() {
  if (!hasToken()) return;
  keepToken("");
  if (may.protected) location.reload();
  else await learn();
}
