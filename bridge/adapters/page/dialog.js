// Asks before anything is changed, and for the token.

import { access, keepToken } from "./api.js";
import { h, fill, notice } from "./dom.js";

function open(title, body, buttons) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" });
    const close = (value) => { dialog.close(); dialog.remove(); resolve(value); };
    dialog.addEventListener("cancel", (event) => { event.preventDefault(); close(null); });
    dialog.append(h("h2", { id: "dialog-title" }, title), body, h("div", { class: "buttons" }, buttons(close)));
    document.body.append(dialog);
    dialog.showModal();
  });
}

// True if the operator means it. The safe button has the focus.
export async function confirmed(title, lines, action) {
  const body = h("div", {}, lines.map((line) => (typeof line === "string" ? h("p", {}, line) : line)));
  return (await open(title, body, (close) => [
    h("button", { type: "button", autofocus: true, onclick: () => close(false) }, "Cancel"),
    h("button", { type: "button", class: "danger", onclick: () => close(true) }, action),
  ])) === true;
}

// A line of text, or null.
export function entered(title, lines, label, action, initial = "") {
  const field = h("input", { type: "text", id: "dialog-field", value: initial, maxLength: 512, autocomplete: "off" });
  const body = h("div", {}, lines.map((line) => h("p", {}, line)), h("label", { for: "dialog-field" }, label), field);
  return open(title, body, (close) => {
    field.addEventListener("keydown", (event) => { if (event.key === "Enter" && field.value) close(field.value); });
    return [
      h("button", { type: "button", onclick: () => close(null) }, "Cancel"),
      h("button", { type: "button", class: "danger", onclick: () => field.value && close(field.value) }, action),
    ];
  });
}

// Keeps the token if the appliance knows it; true then.
export function askToken() {
  const field = h("input", { type: "password", id: "token", autocomplete: "off", maxLength: 1024 });
  const said = h("div", {});
  const body = h("div", {},
    h("p", {}, "Paste the text of the file that ", h("code", {}, "admin.token_file"), " names; without that setting it is ",
      h("code", {}, "admin.token"), " in the data folder. It stays in the memory of this page and is gone when you close or reload it."),
    h("label", { for: "token" }, "Admin token"), field, said);
  return open("Unlock", body, (close) => {
    const attempt = async () => {
      const given = field.value.trim();
      if (!given) return;
      try {
        const told = await access(given);
        if (!told.error) { keepToken(given); close(true); return; }
        fill(said, notice("bad", told.error));
      } catch (error) {
        fill(said, notice("bad", error.message));
      }
      field.select();
    };
    field.addEventListener("keydown", (event) => { if (event.key === "Enter") attempt(); });
    return [
      h("button", { type: "button", onclick: () => close(false) }, "Cancel"),
      h("button", { type: "button", class: "primary", onclick: attempt }, "Unlock"),
    ];
  });
}

export async function told(title, ...lines) {
  await open(title, h("div", {}, lines.map((line) => h("p", {}, line))), (close) => [
    h("button", { type: "button", autofocus: true, onclick: () => close(null) }, "Close")]);
}
