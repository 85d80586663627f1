// The page: holds the state, asks the worker, draws what comes back.

import katex from "katex";
import { Client } from "./client.js";
import { canvasPen, short, svgPen } from "./draw/pen.js";
import { nameOf, themes, views } from "./draw/views.js";
import { Profile } from "./math/kernel.js";
import { buildControls } from "./controls.js";
import { attach } from "./pointer.js";
import { cleanPoints, csv, decode, encode, equation, initial, presets, python } from "./state.js";
import { stops } from "./tour.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./draw/views.js").Scene} Scene */

/** @template {HTMLElement} T @param {string} id @returns {T} */
const byId = (id) => /** @type {T} */ (document.getElementById(id));

/** @param {string} tag @param {Record<string, any>} [props] @param {(Node | string)[]} children */
export function make(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (k.startsWith("on")) node.addEventListener(k.slice(2), v);
    else if (k === "class") node.className = v;
    else node.setAttribute(k, String(v));
  }
  node.append(...children);
  return node;
}


/** @type {Record<string, string>} What keys do on a view. */
const KEYS = {
  function: "Keys: n and p choose a point, arrows move it, Enter adds one, Delete removes it.",
  sphere: "Keys: arrows turn the globe, Enter adds a point in its middle, Delete removes the chosen one.",
  gram: "Keys: arrows choose the pair.",
  phase: "Keys: arrows move the network.",
};

export class Page {
  constructor() {
    /** @type {State} */
    this.state = decode(location.hash);
    /** @type {Scene} */
    this.scene = {
      state: this.state, result: null, smooth: [null, null], phases: null, globes: null, runs: [],
      selected: -1, hover: null, eye: { lon: 0.4, lat: 0.35 },
    };
    /** @type {any} A profile from Python. */
    this.file = null;
    this.client = new Client();
    this.trainer = /** @type {Client | null} */ (null);
    this.busy = false;
    this.stale = false;
    this.frames = /** @type {number[]} */ ([]);
    this.brush = 1;
    /** @type {Map<import("./state.js").Tab, number[][]>} */
    this.kept = new Map();
    /** @type {((s: State) => void)[]} */
    this.listeners = [];
    /** @type {Map<string, {canvas: HTMLCanvasElement, visible: boolean, note: HTMLElement, key: string}>} */
    this.cards = new Map();
    this.playing = 0;
    this.stop = -1;
    const wish = matchMedia("(prefers-color-scheme: dark)");
    this.dark = wish.matches;
    wish.addEventListener("change", () => this.setTheme(wish.matches));
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.buildViews();
    this.buildHeader();
    this.controls = buildControls(this, byId("controls"));
    this.setTheme(this.dark);
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) !== encode(this.state)) this.change(decode(location.hash));
    });
    addEventListener("message", (e) => this.told(e));
    addEventListener("keydown", (e) => {
      if (e.key === "Escape" && !byId("tour").hidden) this.tour(-1);
    });
    this.change({});
  }

  /** @returns {import("./draw/views.js").Theme} */
  get theme() {
    return themes[this.dark ? "dark" : "light"];
  }

  /** @param {boolean} dark */
  setTheme(dark) {
    this.dark = dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.draw();
  }

  // --- the state ------------------------------------------------------------------------------------------------------

  /** Change some of the state; everything else follows. @param {Partial<State>} part */
  change(part) {
    const before = this.state;
    if (part.tab && part.tab !== before.tab && !part.points) {
      this.kept.set(before.tab, before.points);
      part = { ...part, points: this.kept.get(part.tab) ?? presets.six.make(part.tab) };
    }
    const s = { ...before, ...part };
    const n = s.points.length;
    if (s.pair.some((i) => i >= n) || s.pair[0] === s.pair[1]) s.pair = [0, n > 1 ? 1 : 0];
    this.state = this.scene.state = s;
    if (this.scene.selected >= n) this.scene.selected = -1;
    const twinPart = (/** @type {State} */ v) => JSON.stringify([v.tab, v.a, v.points, v.seed, v.kind]);
    if (twinPart(before) !== twinPart(s) && this.scene.runs.length) {
      this.scene.runs = [];
      this.trainer?.stop();
      this.progress(null);
    }
    this.controls.refresh();
    this.showViews();
    this.listeners.forEach((f) => f(s));
    clearTimeout(this.urlTimer);
    this.urlTimer = setTimeout(() => {
      try {
        history.replaceState(null, "", `#${encode(this.state)}`);
      } catch {
        // A page without an address of its own, as in a notebook.
      }
      this.tell();
    }, 150);
    this.draw();
    this.ask();
  }

  /** Ask the worker, one question at a time: the newest state wins. */
  ask() {
    if (this.busy) {
      this.stale = true;
      return;
    }
    this.busy = true;
    this.stale = false;
    const asked = performance.now();
    const { state } = this;
    // Pixels of the picture of the sphere: as many as can be painted in real time.
    const size = Math.round(Math.min(Math.max(Math.sqrt(1.2e6 / (state.points.length + 1)), 120), 280));
    const patience = setTimeout(() => this.sentence("Computing \u2026"), 400);
    this.client
      .ask({ type: "compute", state, file: this.file, view: { ...this.scene.eye, size } })
      .then(({ result, globes }) => {
        this.scene.result = result;
        this.scene.globes = globes;
        this.sentence(result.sentences.join(" "));
        this.frames.push(performance.now() - asked);
        if (this.frames.length > 600) this.frames.shift();
        this.draw();
        if (this.frames.length === 1) requestAnimationFrame(() => performance.mark("widelimit-ready"));
        this.controls.time(result.a ? result.a.t : NaN);
      })
      .catch((error) => {
        console.error(error);
        this.sentence("This could not be computed; the page is as it was before.");
      })
      .finally(() => {
        clearTimeout(patience);
        this.busy = false;
        if (this.stale) this.ask();
        else this.askMore();
      });
  }

  /** What may wait until nothing moves: measures, the phase diagram, and words. */
  askMore() {
    const { state } = this;
    clearTimeout(this.moreTimer);
    this.moreTimer = setTimeout(async () => {
      if (this.busy || state !== this.state) return;
      const current = () => state === this.state;
      if (state.a.act !== this.scene.phases?.act) {
        const map = await this.client.ask({ type: "phases", act: state.a.act });
        this.scene.phases = { ...map, act: state.a.act };
        this.draw();
      }
      if (!current()) return;
      const smooth = await this.client.ask({ type: "smoothness", state, file: this.file });
      if (!current()) return;
      this.scene.smooth = smooth;
      this.measures();
      this.words();
      this.settled = encode(state);
    }, 60);
  }

  /** @param {string} text */
  sentence(text) {
    const node = byId("sentence");
    if (node.textContent !== text) node.textContent = text;
  }

  /** @param {string} text */
  toast(text) {
    const node = byId("toast");
    node.textContent = text;
    clearTimeout(this.toastTimer);
    this.toastTimer = setTimeout(() => (node.textContent = ""), 2600);
  }

  // --- drawing --------------------------------------------------------------------------------------------------------

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      for (const view of views) {
        const card = this.cards.get(view.id);
        if (!card || !card.visible || (view.shown && !view.shown(this.state))) continue;
        const { canvas } = card;
        const width = canvas.clientWidth, height = canvas.clientHeight;
        if (!width) continue;
        const scale = Math.min(devicePixelRatio || 1, 2);
        // A view that would look the same is left alone.
        const key = view.key ? JSON.stringify([width, height, scale, this.dark, view.key(this.scene)]) : "";
        if (key && key === card.key) continue;
        card.key = key;
        if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
          canvas.width = Math.round(width * scale);
          canvas.height = Math.round(height * scale);
        }
        const c = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
        c.setTransform(scale, 0, 0, scale, 0, 0);
        c.clearRect(0, 0, width, height);
        view.draw(canvasPen(c, width, height), this.theme, this.scene);
      }
      this.compare();
    });
  }

  buildViews() {
    const main = byId("views");
    const watch = new IntersectionObserver((entries) => {
      for (const e of entries) {
        const card = this.cards.get(/** @type {HTMLElement} */ (e.target).dataset.view ?? "");
        if (card) card.visible = e.isIntersecting;
      }
      this.draw();
    }, { rootMargin: "120px" });
    for (const view of views) {
      const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", { tabindex: 0, role: KEYS[view.id] ? "application" : "img", "aria-label": view.title, "aria-describedby": `say-${view.id}`, style: `height:${view.height}px`, "data-view": view.id, ...(KEYS[view.id] ? { title: KEYS[view.id] } : {}) }));
      const note = make("p", { class: "sr", id: `say-${view.id}` });
      const save = make("span", { class: "save" }, ...["PNG", "SVG"].map((kind) =>
        make("button", { type: "button", "aria-label": `Save \u201c${view.title}\u201d as ${kind}`, onclick: () => this.save(view, kind) }, kind)));
      const card = make("section", { class: `card view${view.wide ? " wide" : ""}`, id: `view-${view.id}`, "aria-label": view.title },
        make("div", { class: "head" }, make("h2", {}, view.title), save), make("p", { class: "look" }, view.look), canvas, note);
      main.append(card);
      this.cards.set(view.id, { canvas, visible: true, note, key: "" });
      watch.observe(canvas);
      attach(this, view.id, canvas);
    }
    const measures = make("section", { class: "card view", id: "view-measures", "aria-label": "Smoothness and comparison" },
      make("div", { class: "head" }, make("h2", {}, "In numbers")),
      make("p", { class: "look" }, "Both smoothness measures of the papers for the interpolant, trained for ever, on 4096 points of the circle (for up to 200 samples)."),
      make("table", { id: "measures" }));
    byId("view-twin").before(measures);
    new ResizeObserver(() => this.draw()).observe(main);
  }

  showViews() {
    for (const view of views) {
      byId(`view-${view.id}`).classList.toggle("hidden", !!view.shown && !view.shown(this.state));
    }
  }

  /** The table: A, B and their difference. */
  measures() {
    const { state, result, smooth } = this.scene;
    const a = result?.a, b = result?.b;
    const cell = (/** @type {number | null | undefined} */ v) => (v === null || v === undefined || Number.isNaN(v) ? "\u2013" : short(v));
    /** @type {[string, any, any][]} */
    const rows = [
      ["second derivative \u03bc (smaller is smoother)", smooth[0]?.second, smooth[1]?.second],
      ["Gaussian \u03bc (larger is smoother)", smooth[0]?.gaussian, smooth[1]?.gaussian],
      ["kink of the tangent kernel", a?.kink, b?.kink],
      ["exponent of the kernel's waves", a?.exponent, b?.exponent],
      ["smallest eigenvalue", a?.n ? a.values[0] : null, b?.n ? b.values[0] : null],
      ["kernel at equal inputs", a?.peak, b?.peak],
    ];
    const body = rows.map(([name, x, y]) =>
      make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "a" }, cell(x)), ...(state.b ? [make("td", { class: "b" }, cell(y))] : [])));
    if (state.b) {
      body.unshift(make("tr", {}, make("th", {}, ""), make("td", { class: "a" }, "A"), make("td", { class: "b" }, "B")));
      body.push(make("tr", {}, make("th", { scope: "row" }, "largest |f_A \u2212 f_B|"), make("td", { id: "apart", colspan: 2 }, "")));
    }
    byId("measures").replaceChildren(...body);
    this.compare();
  }

  /** The largest difference of the lanes, while dragging too. */
  compare() {
    const node = document.getElementById("apart");
    const a = this.scene.result?.a, b = this.scene.result?.b;
    if (!node || !a || !b) return;
    const [f, g] = this.state.tab === "sphere" ? [a.probe.mean, b.probe.mean] : [a.mean, b.mean];
    let most = 0;
    for (let i = 0; i < Math.min(f.length, g.length); i++) most = Math.max(most, Math.abs(f[i] - g[i]));
    node.textContent = short(most);
  }

  /** Text of each view for those who do not see it. */
  words() {
    for (const view of views) {
      const card = this.cards.get(view.id);
      if (card) card.note.textContent = view.say(this.scene);
    }
  }

  /** @param {HTMLElement} node @param {import("./math/kernel.js").Net} net */
  equation(node, net) {
    const text = equation(net);
    if (node.dataset.latex === text) return;
    const write = () => katex.render(node.dataset.latex ?? "", node, { throwOnError: false, displayMode: false, output: "htmlAndMathml" });
    const first = node.dataset.latex === undefined;
    node.dataset.latex = text;
    if (first) return write();
    // Typesetting costs more than a frame; it follows when the slider rests for a moment.
    clearTimeout(Number(node.dataset.timer));
    node.dataset.timer = String(setTimeout(write, 90));
  }

  // --- what leaves the page -------------------------------------------------------------------------------------------

  /** @param {string} name @param {Blob} blob */
  download(name, blob) {
    const link = /** @type {HTMLAnchorElement} */ (make("a", { href: URL.createObjectURL(blob), download: name }));
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 5000);
  }

  /** @param {import("./draw/views.js").View} view */
  svg(view) {
    const card = this.cards.get(view.id);
    const width = card?.canvas.clientWidth || 640, height = card?.canvas.clientHeight || view.height;
    const pen = svgPen(width, height, this.theme.paper);
    view.draw(pen, this.theme, this.scene);
    return pen.finish(view.title);
  }

  /** @param {import("./draw/views.js").View} view @param {string} kind */
  save(view, kind) {
    if (kind === "SVG") return this.download(`widelimit-${view.id}.svg`, new Blob([this.svg(view)], { type: "image/svg+xml" }));
    const card = this.cards.get(view.id);
    if (!card) return;
    const { clientWidth: w, clientHeight: h } = card.canvas;
    const sheet = document.createElement("canvas");
    sheet.width = 3 * w;
    sheet.height = 3 * h;
    const c = /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d"));
    c.scale(3, 3);
    c.fillStyle = this.theme.paper;
    c.fillRect(0, 0, w, h);
    view.draw(canvasPen(c, w, h), this.theme, this.scene);
    sheet.toBlob((blob) => blob && this.download(`widelimit-${view.id}.png`, blob));
  }

  /** @param {string} text @param {string} done */
  async copy(text, done) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = /** @type {HTMLTextAreaElement} */ (make("textarea", { style: "position:fixed;opacity:0" }));
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    this.toast(done);
  }

  /** A file of the reader's: points as CSV, or a profile from Python. @param {string} text */
  open(text) {
    try {
      if (text.trimStart().startsWith("{")) {
        const file = JSON.parse(text);
        Profile.fromJSON(file);
        this.file = file;
        this.change({ a: { ...this.state.a, kind: "profile" } });
        this.toast("Network A is now the profile from Python.");
        return;
      }
      const rows = text.split(/\r?\n/).map((line) => line.split(/[,;\t]/));
      const points = cleanPoints(this.state.tab, rows.filter((row) => row.length > 1));
      if (!points.length) throw new Error(`no row of ${this.state.tab === "sphere" ? "longitude, latitude, y" : "position, y"}`);
      this.change({ points });
    } catch (error) {
      this.toast(`This file could not be read: ${/** @type {Error} */ (error).message}`);
    }
  }

  python() {
    return python(this.state, this.scene.result?.a ? this.scene.result.a.t : Infinity);
  }

  buildHeader() {
    const tabs = byId("tabs");
    for (const [tab, label] of /** @type {const} */ ([["circle", "Circle"], ["line", "Line"], ["sphere", "Sphere"]])) {
      const button = make("button", { type: "button", onclick: () => this.change({ tab }) }, label);
      tabs.append(button);
      this.listeners.push((s) => button.setAttribute("aria-pressed", String(s.tab === tab)));
    }
    byId("tools").append(
      make("button", { type: "button", class: "primary", id: "tour-start", onclick: () => this.tour(0) }, "Tour"),
      make("button", { type: "button", id: "copy-python", onclick: () => this.copy(this.python(), "The script is on the clipboard.") }, "Copy Python"),
      make("button", { type: "button", id: "copy-link", onclick: () => this.copy(`${location.href.split("#")[0]}#${encode(this.state)}`, "The link is on the clipboard.") }, "Copy link"),
      make("button", { type: "button", id: "save-csv", onclick: () => this.download("widelimit-data.csv", new Blob([csv(this.state)], { type: "text/csv" })) }, "CSV"),
      make("button", { type: "button", "aria-label": "Light or dark", onclick: () => this.setTheme(!this.dark) }, "\u25d0"),
    );
  }

  // --- time, twin, tour -------------------------------------------------------------------------------------------------

  play() {
    if (this.playing) {
      cancelAnimationFrame(this.playing);
      this.playing = 0;
      this.controls.refresh();
      return;
    }
    const from = Number.isFinite(this.state.time) && this.state.time < 5 ? this.state.time : -2;
    if (this.still.matches) {
      // No motion: one press, one step.
      this.change({ time: from + 0.5 > 5 ? Infinity : Math.round((from + 0.5) * 100) / 100 });
      return;
    }
    const start = performance.now();
    const tick = () => {
      const time = from + (performance.now() - start) / 1100;
      this.playing = time < 5 ? requestAnimationFrame(tick) : 0;
      this.change({ time: time < 5 ? Math.round(time * 100) / 100 : Infinity });
    };
    this.playing = requestAnimationFrame(tick);
  }

  /** @param {number | null} part */
  progress(part) {
    const bar = /** @type {HTMLProgressElement | null} */ (document.getElementById("twin-progress"));
    if (bar) {
      bar.classList.toggle("hidden", part === null);
      bar.value = part ?? 0;
    }
    const button = document.getElementById("twin-train");
    if (button) button.textContent = part === null ? "Train" : "Stop";
    this.training = part !== null;
  }

  /** Train finite networks of several widths. */
  async train() {
    if (this.training) {
      this.trainer?.stop();
      this.progress(null);
      return;
    }
    const { state } = this;
    const refuse =
      state.a.kind === "profile" ? "A network that came as a profile has no finite twin here."
      : state.points.length === 0 ? "Add a point first."
      : state.points.length > 100 ? "The twin trains on at most 100 points here."
      : !(this.scene.result?.a && this.scene.result.a.peak > 0) ? "This network's kernel is zero or not known; there is nothing to train."
      : state.a.depth > 20 ? "The twin is for depths up to 20 here; deeper ones belong in Python (wl.optimise)."
      : null;
    if (refuse) return this.toast(refuse);
    this.trainer ??= new Client();
    const widths = [16, 8, 4, 2, 1].map((k) => Math.round(state.width / k)).filter((n) => n >= 8);
    const seeds = 3, total = widths.reduce((a, n) => a + n * n + 2000, 0) * seeds;
    /** @type {import("./twin.js").Run[]} */
    const runs = [];
    this.scene.runs = runs;
    this.progress(0);
    const complete = await this.trainer.ask({ type: "train", state, widths, seeds }, (run) => {
      if (this.scene.runs !== runs) return;
      const known = runs.findIndex((r) => r.width === run.width && r.seed === run.seed);
      if (known < 0) runs.push(run);
      else runs[known] = run;
      this.progress(runs.reduce((a, r) => a + r.done * (r.width ** 2 + 2000), 0) / total);
      this.draw();
    });
    if (complete && this.scene.runs === runs) {
      this.progress(null);
      const lost = runs.filter((r) => r.diverged).length;
      if (lost) this.toast(`${lost} narrow networks diverged at this learning rate; they are left out.`);
      this.words();
    }
  }

  /** @param {number} k */
  tour(k) {
    this.stop = k;
    const box = byId("tour");
    document.querySelectorAll(".marked").forEach((n) => n.classList.remove("marked"));
    box.hidden = k < 0 || k >= stops.length;
    if (box.hidden) return byId("tour-start").focus();
    const stop = stops[k];
    this.change(stop.set(this.state));
    const go = (/** @type {string} */ text, /** @type {number} */ to, primary = false) =>
      make("button", { type: "button", class: primary ? "primary" : "", onclick: () => this.tour(to) }, text);
    box.setAttribute("role", "dialog");
    box.setAttribute("aria-label", "Guided tour");
    box.replaceChildren(
      make("h2", { tabindex: -1 }, `${k + 1}. ${stop.title}`), make("p", {}, stop.text), make("p", { class: "try" }, make("strong", {}, "Try: "), stop.attempt),
      make("div", { class: "nav" }, make("span", {}, `${k + 1} of ${stops.length}`), go("Close", -1), ...(k ? [go("Back", k - 1)] : []), go(k + 1 < stops.length ? "Next" : "Done", k + 1, true)),
    );
    const card = byId(`view-${stop.view}`);
    card.classList.add("marked");
    box.classList.toggle("west", ["phase", "twin"].includes(stop.view));
    card.scrollIntoView({ block: innerWidth < 860 ? "start" : "center", behavior: this.still.matches ? "auto" : "smooth" });
    /** @type {HTMLElement} */ (box.querySelector("h2")).focus({ preventScroll: true });
  }

  // --- a notebook around the page -----------------------------------------------------------------------------------------

  /** @param {MessageEvent} event */
  told(event) {
    if (event.source !== parent || parent === window || event.data?.widelimit !== "set") return;
    const { state, file } = event.data;
    const base = initial();
    if (file) this.file = file;
    const tab = ["circle", "line", "sphere"].includes(state?.tab) ? state.tab : base.tab;
    const hash = state?.hash ? decode(state.hash) : base;
    this.change({
      ...hash, tab, ...(state?.points ? { points: cleanPoints(tab, state.points) } : {}),
      ...(file ? { a: { ...hash.a, kind: "profile" } } : {}),
    });
  }

  /** Tell the surrounding notebook. */
  tell() {
    if (parent === window) return;
    parent.postMessage({ widelimit: "state", hash: encode(this.state), tab: this.state.tab, points: this.state.points, selected: this.scene.selected }, "*");
  }
}

const page = new Page();
if (parent !== window) parent.postMessage({ widelimit: "ready" }, "*");
/** For scripts and tests: what the page knows, and its own check against Python's numbers. */
Object.assign(window, {
  widelimit: {
    page,
    views,
    nameOf,
    encode: () => encode(page.state),
    settled: () => !page.busy && page.settled === encode(page.state),
    check: (/** @type {any} */ golden) => page.client.ask({ type: "check", golden }),
  },
});
