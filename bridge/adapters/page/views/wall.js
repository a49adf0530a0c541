// For a screen on the wall: big figures, nothing to press. Escape leads back.

import { get } from "../api.js";
import { chart } from "../charts.js";
import { chip, fill, h, say } from "../dom.js";
import { brief, clock, count, seconds } from "../format.js";
import { every, live, whileShown } from "../live.js";
import { THROUGHPUT } from "./overview.js";

const FIGURES = [
  ["messages / s", (f) => brief(f.rates.messages_per_second)],
  ["waiting", (f) => brief(f.pending.messages)],
  ["oldest", (f) => seconds(f.pending.oldest_s)],
  ["sessions", (f) => brief(f.session_count)],
  ["streams", (f) => brief(f.streams)],
  ["turned away", (f) => brief((f.verdicts.rejected ?? 0) + (f.verdicts.expired ?? 0))],
];

export function wall() {
  const time = h("time", { class: "now" });
  const word = h("strong", {}, "asking …");
  const about = h("span", { class: "about" });
  const banner = h("div", { class: "banner", role: "status" }, word, about, time);
  const tiles = FIGURES.map(([name]) => h("div", { class: "tile" }, h("span", { class: "name" }, name), h("strong", {}, "–")));
  const problems = h("ul", { class: "findings problems" });
  const element = h("div", { class: "wallview" }, banner, h("div", { class: "tiles" }, tiles),
    chart("Throughput", THROUGHPUT, { height: Math.max(200, innerHeight * 0.44), fixed: 600, apart: 130, font: "18px system-ui, sans-serif" }), problems);

  whileShown(element, (told) => {
    const isWell = told.ready && !live.awaySince;
    banner.dataset.kind = isWell ? "ok" : "bad";
    say(word, live.awaySince ? `Not reachable since ${clock(live.awaySince)}` : told.ready ? "Ready" : "Not ready");
    say(about, live.awaySince ? "" : told.ready ? told.queue_manager.names[0] : told.reasons.join("; "));
    FIGURES.forEach(([, value], at) => say(tiles[at].querySelector("strong"), value(told)));
  });
  every(1000, element, () => say(time, clock(new Date())));
  every(10000, element, async () => {
    const told = await get("/api/doctor").catch(() => null);
    const bad = told?.findings.filter((one) => one.result === "fail" || one.result === "warn") ?? [];
    fill(problems, bad.slice(0, 3).map((one) => h("li", {}, chip(one.result, one.result === "fail" ? "bad" : "warn"),
      h("span", {}, `${one.about ? `${one.id}: ${one.about}` : one.id} ${one.found}`))));
    if (bad.length > 3) problems.append(h("li", {}, `and ${count(bad.length - 3)} more findings`));
  });
  return element;
}
