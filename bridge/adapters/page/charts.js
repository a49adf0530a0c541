// Charts of the last minutes, drawn by uPlot in the colours of the style sheet.

import { h, say } from "./dom.js";
import { live, whileShown } from "./live.js";

const FONT = "12px system-ui, sans-serif";
let span = 300;

export function chooseSpan(seconds) { span = seconds; }
export function chosenSpan() { return span; }

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// `series`: [{name, label, colour, text}], `text` writes a value. Returns the element.
export function chart(title, series, { height = 180, fixed = 0, font = FONT, apart = 56 } = {}) {
  const legend = series.map((one) => h("span", { class: "legend" },
    h("i", { class: `swatch ${one.colour}`, "aria-hidden": "true" }), `${one.label} `, h("b", {}, "–")));
  const place = h("div", { class: "plot" });
  const figure = h("figure", { class: "chart", role: "img", "aria-label": title },
    h("figcaption", {}, h("span", { class: "title" }, title), h("span", { class: "legends" }, legend)), place);
  let plot = null;
  let drawn = "";

  const tell = (index) => series.forEach((one, number) => {
    const value = plot.data[number + 1][index];
    say(legend[number].querySelector("b"), value === null || value === undefined ? "–" : one.text(value));
  });

  const options = () => ({
    width: Math.max(place.clientWidth, 120), height, legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true, range: () => { const now = Date.now() / 1000; return [now - (fixed || span), now]; } },
      y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] },
    },
    axes: [
      { stroke: colour("muted"), grid: { show: false }, ticks: { stroke: colour("line"), size: 5 }, font, space: apart, size: 32,
        values: (_, at, __, ___, step) => at.map((s) => new Date(s * 1000).toLocaleTimeString("en-GB").slice(0, step < 60 ? 8 : 5)) },
      { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font, size: 60, space: height > 200 ? 38 : 22,
        values: (_, at) => at.map((v) => series[0].text(v)) },
    ],
    series: [{}, ...series.map((one) => ({ label: one.label, stroke: colour(one.colour), width: one.width ?? 2,
      fill: one.fill ? `${colour(one.colour)}22` : undefined, spanGaps: true, dash: one.dash, points: { show: false } }))],
    hooks: { setCursor: [(self) => tell(self.cursor.idx ?? self.data[0].length - 1)] },
  });

  const draw = () => {
    const data = [live.column("at"), ...series.map((one) => live.column(one.name))];
    const look = `${document.documentElement.dataset.theme}${matchMedia("(prefers-color-scheme: dark)").matches}`;
    legend.forEach((one, number) => { one.hidden = data[number + 1].every((value) => value === null); });
    if (plot && look !== drawn) { plot.destroy(); plot = null; }
    if (!plot) { plot = new uPlot(options(), data, place); drawn = look; } // eslint-disable-line no-undef
    else plot.setData(data);
    if (plot.cursor.left === undefined || plot.cursor.left < 0) tell(data[0].length - 1);
    figure.setAttribute("aria-label", `${title}: ${legend.map((one) => one.textContent).join(", ")}`);
  };

  whileShown(figure, draw);
  const watch = new ResizeObserver(() => plot?.setSize({ width: Math.max(place.clientWidth, 120), height }));
  watch.observe(place);
  return figure;
}
