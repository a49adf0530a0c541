// Two charts by uPlot. Canvas knows no CSS variables, so every colour is read from an element.
const UTC = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
const FONT = '12px "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif';
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const charts = [];

function colour(name) {
  const probe = el("i", { class: `probe ${name}` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
function tick(seconds, step) { // UTC, and the same for every reader
  const at = new Date(seconds * 1000);
  if (step >= 86400 * 28) return `${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
  const clock = at.toISOString().slice(11, step < 60 ? 19 : 16);
  return step >= 86400 || clock === "00:00" ? `${DAYS[at.getUTCDay()]} ${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}` : clock;
}

const faded = (rgb, by) => rgb.replace("rgb(", "rgba(").replace(")", `, ${by})`);
const axis = (more) => ({ stroke: colour("muted"), font: FONT, grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, ...more });

class Chart {
  constructor(figure, { ways, options, columns, aria, empty }) {
    Object.assign(this, { figure, options, ways });
    this.way = Object.keys(ways)[0];
    if (columns[0].values.length === 0) {
      figure.append(el("p", { class: "empty" }, empty));
      return;
    }
    this.plot = el("div", { class: "plot", role: "img", "aria-label": aria });
    figure.append(this.switch(), this.plot, asTable(columns));
    this.draw();
    new ResizeObserver(() => this.fit()).observe(this.plot);
    charts.push(this);
  }

  switch() {
    const group = `way-${this.figure.id}`;
    return el("fieldset", { class: "segments" }, el("legend", { class: "visually-hidden" }, "What the chart shows"),
      ...Object.keys(this.ways).map((way) => el("label", {}, el("input", { type: "radio", name: group, checked: way === this.way,
        onchange: () => { this.way = way; this.draw(); } }), el("span", {}, way))));
  }

  draw() {
    this.chart?.destroy();
    const { values, ...more } = this.ways[this.way]();
    this.chart = new uPlot({ width: this.width(), height: this.height(), padding: [12, 8, 0, 0], ...this.options(), ...more }, values, this.plot);
  }

  width() { return Math.max(240, Math.floor(this.plot.clientWidth)); }
  height() { return innerWidth < 640 ? 200 : 250; }

  fit() {
    if (this.chart.width !== this.width()) this.chart.setSize({ width: this.width(), height: this.height() });
  }
}

function asTable(columns) { // for ears, and for whoever wants the numbers; made when it is opened
  const place = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The numbers of the chart" });
  return el("details", { class: "numbers", ontoggle: (e) => {
    if (!e.currentTarget.open || place.firstChild) return;
    place.append(el("table", { class: "plain" },
      el("thead", {}, el("tr", {}, ...columns.map((c, at) => el("th", { scope: "col", class: at ? "num" : null }, c.name)))),
      el("tbody", {}, ...columns[0].values.map((_, i) => el("tr", {}, ...columns.map((c, at) => el("td", { class: at ? "num" : null }, c.show(c.values[i]))))))));
  } }, el("summary", {}, "As a table"), place);
}

function withSilence(points, bucket) { // a bucket that is left out had no message
  const quiet = (seconds) => ({ at: new Date(seconds * 1000).toISOString(), sent: 0, accepted: 0, landed: 0 });
  return points.flatMap((point, i) => {
    const now = Date.parse(point.at) / 1000;
    const before = i ? Date.parse(points[i - 1].at) / 1000 : now;
    if (now - before <= bucket * 1.5) return [point];
    return now - before <= bucket * 2.5 ? [quiet(now - bucket), point] : [quiet(before + bucket), quiet(now - bucket), point];
  });
}

function timelineChart(figure) {
  const bucket = data.timeline.bucket_s;
  const points = withSilence(data.timeline.points, bucket);
  const at = points.map((p) => Date.parse(p.at) / 1000);
  // A ledger that was not read has no line, which is not the same as a line of zeros.
  const looks = () => ({ // asked again when the theme changes
    sent: { label: "Sent", stroke: colour("sent"), fill: faded(colour("sent"), 0.28), width: 1 },
    landed: { label: "Landed", stroke: colour("landed"), width: 1.6 },
    accepted: { label: "Accepted", stroke: colour("accepted"), width: 1.6, dash: [5, 7] },
  });
  const keys = Object.keys(looks()).filter((key) => points.some((p) => p[key]));
  const each = keys.map((key) => points.map((p) => p[key]));
  const running = (values) => { let all = 0; return values.map((v) => (all += v)); };
  const show = (v) => integer.format(v);
  const shown = (u, v) => (v == null ? "" : show(v));
  const ends = points.map((_, i) => i === points.length - 1);
  new Chart(figure, {
    empty: "No message has a time, so there is nothing to draw.",
    aria: `Messages sent, accepted and landed, by time: ${points.filter((_, i) => i === 0 || ends[i]).map((p) => moment(p.at)).join(" to ")}`,
    ways: {
      [`Per ${duration(bucket * 1000)}`]: () => ({ values: [at, ...each] }),
      "Running total": () => ({ values: [at, ...each.map(running)] }),
    },
    columns: [{ name: "From (UTC)", values: points.map((p) => p.at), show: moment },
      ...keys.map((key, i) => ({ name: looks()[key].label, values: each[i], show }))],
    options: () => ({
      tzDate: UTC,
      cursor: { y: false, drag: { x: true, y: false } },
      scales: { y: { range: (u, low, high) => [0, Math.max(1, high * 1.08)] } },
      axes: [axis({ grid: { show: false }, space: 76, size: 30, values: (u, splits, i, space, step) => splits.map((v) => tick(v, step)) }), axis({ size: 52, values: (u, splits) => splits.map((v) => short.format(v)) })],
      series: [{ label: "UTC", value: (u, v) => (v == null ? "" : new Date(v * 1000).toISOString().slice(0, 16).replace("T", " ")) },
        ...keys.map((key) => ({ ...looks()[key], points: { show: points.length < 3 }, value: shown }))],
    }),
  });
}

function latencyChart(figure) {
  const buckets = data.latency.buckets.some((b) => b.count) ? data.latency.buckets : [];
  const label = (i) => (buckets[i]?.le_ms == null ? "more" : duration(buckets[i].le_ms));
  const counts = buckets.map((b) => b.count);
  const show = (v) => integer.format(v);
  const some = (u) => Math.max(1, Math.ceil(54 / ((u.bbox.width / devicePixelRatio) / buckets.length)));
  const logarithm = { distr: 100, fwd: (v) => Math.log10(1 + Math.max(0, v)), bwd: (v) => 10 ** v - 1 };
  const scale = (more) => ({ scales: { x: { time: false, range: [-0.6, buckets.length - 0.4] }, y: { range: (u, low, high) => [0, Math.max(1, high * 1.05)], ...more } } });
  const values = [buckets.map((_, i) => i), counts];
  const tens = (u, at, low, high) => [0, ...Array.from({ length: 16 }, (_, i) => 10 ** i).filter((v) => v <= high)];
  const axes = (splits) => [axis({ grid: { show: false }, size: 30, splits: () => values[0], values: (u, all) => all.map((i) => (i % some(u) ? "" : label(i))) }),
    axis({ size: 52, values: (u, all) => all.map((v) => short.format(v)), ...(splits ? { splits } : {}) })];
  new Chart(figure, {
    empty: "",
    aria: "Messages by how long they took to land",
    ways: { Linear: () => ({ values, ...scale({}), axes: axes() }), Logarithmic: () => ({ values, ...scale(logarithm), axes: axes(tens) }) },
    columns: [{ name: "At most", values: values[0], show: label }, { name: "Messages", values: counts, show }],
    options: () => ({
      cursor: { y: false, drag: { x: false } },
      series: [{ label: "At most", value: (u, v) => (v == null ? "" : label(v)) },
        { label: "Messages", stroke: colour("landed"), fill: faded(colour("landed"), 0.7), width: 0, paths: uPlot.paths.bars({ size: [0.78, 60], radius: 0.12 }),
          points: { show: false }, value: (u, v) => (v == null ? "" : show(v)) }],
    }),
  });
}
