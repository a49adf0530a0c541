// The figures of the appliance, asked every second; everybody who shows some listens here.

import { Away, Refused, get } from "./api.js";

const EVERY_MS = 1000;
const SLOWEST_MS = 5000;
const KEPT = 900;

class Live extends EventTarget {
  figures = null;
  awaySince = null; // when it stopped answering
  refusal = "";
  names = [];
  rows = [];
  #pause = EVERY_MS;
  #timer = 0;
  #asking = false;

  #started = false;

  start() {
    if (this.#started) return;
    this.#started = true;
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.#ask(); });
    this.#ask();
  }

  // The samples of one name, oldest first.
  column(name) {
    const at = this.names.indexOf(name);
    return this.rows.map((row) => row[at]);
  }

  last(name) {
    const row = this.rows.at(-1);
    return row ? row[this.names.indexOf(name)] : null;
  }

  async #ask() {
    if (this.#asking) return;
    this.#asking = true;
    clearTimeout(this.#timer);
    try {
      this.#take(await get("/api/live", { since: this.rows.at(-1)?.[0] ?? 0 }));
      this.awaySince = null;
      this.refusal = "";
      this.#pause = EVERY_MS;
    } catch (error) {
      if (error instanceof Refused) this.refusal = error.message;
      else if (!(error instanceof Away)) throw error;
      this.awaySince ??= new Date();
      this.#pause = Math.min(this.#pause * 1.5, SLOWEST_MS);
    } finally {
      this.#asking = false;
      if (!document.hidden) this.#timer = setTimeout(() => this.#ask(), this.#pause);
    }
    this.dispatchEvent(new Event("change"));
  }

  #take(figures) {
    const before = this.figures;
    this.figures = figures;
    this.names = figures.samples.names;
    this.rows = [...this.rows, ...figures.samples.rows].slice(-KEPT);
    if (before && figures.uptime_s < before.uptime_s) this.dispatchEvent(new Event("restart"));
  }
}

export const live = new Live();

// Calls `show` at every change while the element is on the page.
export function whileShown(element, show) {
  const listen = () => {
    if (element.isConnected) show(live.figures);
    else live.removeEventListener("change", listen);
  };
  live.addEventListener("change", listen);
  if (live.figures) queueMicrotask(listen);
}

// Calls `look` now and then while the element is on the page and somebody can see it.
export function every(ms, element, look) {
  const again = async () => {
    if (!element.isConnected) return;
    if (!document.hidden) await look();
    setTimeout(again, ms);
  };
  queueMicrotask(again);
}
