// Starts the page: who may look, the state on top, the views below.

import { h, fill, say, notice } from "./dom.js";
import { clock, stateOf } from "./format.js";
import { live } from "./live.js";
import { route } from "./route.js";
import { learn, lock, locked, may, unlock } from "./session.js";
import { health } from "./views/health.js";
import { mappings } from "./views/mappings.js";
import { overview } from "./views/overview.js";
import { queues } from "./views/queues.js";
import { sessions, streams } from "./views/senders.js";
import { trace } from "./views/trace.js";
import { verdicts } from "./views/verdicts.js";
import { wall } from "./views/wall.js";

const VIEWS = {
  overview: ["Overview", overview], queues: ["Queues", queues], sessions: ["Sessions", sessions],
  streams: ["Streams", streams], trace: ["Trace", trace], verdicts: ["Verdicts", verdicts],
  mappings: ["Mappings", mappings], health: ["Health", health],
};
// They name senders.
const NEED_TOKEN = {
  sessions: "Sessions name senders and their addresses: they need the admin token.",
  streams: "Streams name senders and how far each has come: they need the admin token.",
  trace: "A trace names the sender of a message: it needs the admin token.",
};
const THEMES = { auto: "Auto", light: "Light", dark: "Dark" };

const root = document.documentElement;
const main = document.getElementById("main");
const nav = document.getElementById("nav");
const links = Object.entries(VIEWS).map(([name, [title]]) => h("a", { href: `#${name}`, "data-view": name }, title));
fill(nav, links);

// -- the views -------------------------------------------------------------------------------

function show() {
  const { view, params } = route();
  if (view === "main") return; // the skip link
  const isWall = view === "wall";
  root.classList.toggle("wall", isWall);
  const [title, make] = isWall ? ["Wall", wall] : VIEWS[view] ?? VIEWS.overview;
  for (const one of links) {
    if (one.dataset.view === view) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  document.title = `${title} – msmq-bridge`;
  if (!may.read) {
    fill(main, notice("warn", "Reading needs the admin token here. "),
      h("button", { type: "button", class: "primary", onclick: unlock }, "Unlock"));
    return;
  }
  const closed = !may.senders && NEED_TOKEN[view];
  fill(main, isWall ? null : h("h1", {}, title), closed ? locked(closed) : make(params));
}

addEventListener("hashchange", () => { show(); if (route().view !== "wall") main.focus({ preventScroll: true }); });
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && root.classList.contains("wall")) location.hash = "#overview";
});

// -- the state on top ------------------------------------------------------------------------

const state = document.getElementById("state");
const who = document.getElementById("who");

function tell() {
  const figures = live.figures;
  const word = state.querySelector(".word");
  if (live.awaySince) {
    state.dataset.kind = "bad";
    say(word, live.refusal || `Not reachable since ${clock(live.awaySince)}`);
  } else if (figures) {
    const [kind, name, why] = stateOf(figures);
    state.dataset.kind = kind;
    say(word, why ? `${name}: ${why}` : name);
  }
  root.classList.toggle("away", live.awaySince !== null);
  if (figures) say(who, figures.queue_manager.names.join(", "));
}
live.addEventListener("change", tell);
live.addEventListener("restart", learn);

// -- the tools -------------------------------------------------------------------------------

const unlockButton = document.getElementById("unlock");
unlockButton.addEventListener("click", () => (may.write ? lock() : unlock()));
may.addEventListener("change", () => {
  unlockButton.hidden = !may.token;
  say(unlockButton, may.write ? "Lock" : "Unlock");
  unlockButton.title = may.write ? "Forget the token" : "Give the admin token to see senders and to change things";
  if (may.read) live.start();
  show();
});

const themeButton = document.getElementById("theme");
function useTheme(name) {
  root.dataset.theme = name;
  localStorage.setItem("theme", name);
  say(themeButton, THEMES[name]);
  themeButton.title = "Colours: auto, light or dark";
}
themeButton.addEventListener("click", () => {
  const names = Object.keys(THEMES);
  useTheme(names[(names.indexOf(root.dataset.theme) + 1) % names.length]);
});
useTheme(THEMES[localStorage.getItem("theme")] ? localStorage.getItem("theme") : "auto");

// -- go --------------------------------------------------------------------------------------

async function begin() {
  try {
    await learn();
  } catch {
    live.awaySince ??= new Date();
    tell();
    setTimeout(begin, 2000);
    return;
  }
  if (may.read) live.start();
}
begin();
