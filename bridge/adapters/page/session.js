// What whoever looks at the page may do.

import { access, hasToken, keepToken } from "./api.js";
import { askToken } from "./dialog.js";

export const may = new EventTarget();
may.read = true;
may.write = false;
may.token = false; // there is one to ask for

export async function learn() {
  const told = await access();
  may.read = told.may_read;
  may.write = told.may_write;
  may.token = told.token;
  may.protected = told.protect_reads;
  may.dispatchEvent(new Event("change"));
}

export async function unlock() {
  if (await askToken()) await learn();
}

export async function lock() {
  if (!hasToken()) return;
  keepToken("");
  if (may.protected) location.reload();
  else await learn();
}
