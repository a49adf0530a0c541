// Where we are: #view?name=value. The address of what one sees can be sent to somebody.

export function route() {
  const [view, query] = location.hash.slice(1).split(/\?(.*)/s);
  return { view: view || "overview", params: new URLSearchParams(query ?? "") };
}

// Puts the choices of the present view into the address, without a new entry in the history.
export function remember(choices) {
  const { view, params } = route();
  for (const [name, value] of Object.entries(choices)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  const query = params.toString();
  history.replaceState(null, "", `#${view}${query ? `?${query}` : ""}`);
}

export function link(view, choices = {}) {
  const query = new URLSearchParams(choices).toString();
  return `#${view}${query ? `?${query}` : ""}`;
}
