// Elements, made one by one: what comes from senders is text, never markup.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name in element && !name.includes("-") && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
}

// Changes the text only if it differs, so that nobody's selection or screen reader is disturbed.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function chip(word, kind = "") {
  return h("span", { class: `chip ${kind}` }, word);
}

// A card with a heading; `side` stands right of it.
export function card(title, side, ...children) {
  return h("section", { class: "card", "aria-label": title },
    h("header", {}, h("h2", {}, title), side ?? null), ...children);
}

export function notice(kind, ...children) {
  return h("p", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" }, ...children);
}

export function definition(pairs) {
  return h("dl", { class: "pairs" },
    pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined)
      .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
