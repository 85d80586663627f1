// Sliders and choices.

import { make } from "./main.js";
import { activations } from "./math/activations.js";
import { short } from "./draw/pen.js";
import { LIMITS, newNet, presets, TIME } from "./state.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./math/kernel.js").Net} Net */

const STEPS = Math.round((TIME.last - TIME.first) * 100);

/**
 * A slider with a label and its number.
 * @param {{id: string, label: string, sub?: string, title: string, min: number, max: number, step: number, read: () => number, show: (v: number) => string, write: (v: number) => void}} of
 */
function slider(of) {
  const input = /** @type {HTMLInputElement} */ (make("input", { type: "range", id: of.id, min: of.min, max: of.max, step: of.step, title: of.title }));
  const output = make("output", { for: of.id });
  input.addEventListener("input", () => of.write(Number(input.value)));
  const row = make("div", { class: "row" }, make("label", { for: of.id, title: of.title }, of.label, ...(of.sub ? [make("sub", {}, of.sub)] : [])), input, output);
  const refresh = () => {
    const v = of.read();
    if (Number(input.value) !== v) input.value = String(v);
    output.textContent = of.show(v);
    input.setAttribute("aria-valuetext", of.show(v));
  };
  return { row, refresh };
}

/** @template {string} T @param {[T, string][]} options @param {string} label @param {() => T} read @param {(v: T) => void} write */
function segments(options, label, read, write) {
  const buttons = options.map(([value, text]) => make("button", { type: "button", onclick: () => write(value) }, text));
  const node = make("div", { class: "segments", role: "group", "aria-label": label }, ...buttons);
  const refresh = () => options.forEach(([value], i) => buttons[i].setAttribute("aria-pressed", String(read() === value)));
  return { node, refresh };
}

/** @param {Page} page @param {"a" | "b"} which */
function lane(page, which) {
  const net = () => page.state[which] ?? newNet();
  const set = (/** @type {Partial<Net>} */ part) => page.change({ [which]: { ...net(), ...part } });
  const kind = segments(
    [["mlp", "MLP"], ["resnet", "ResNet"]], "Kind of network",
    () => /** @type {"mlp" | "resnet"} */ (net().kind), (v) => set({ kind: v }),
  );
  const select = /** @type {HTMLSelectElement} */ (make("select", { id: `${which}-act`, onchange: () => set({ act: select.value }) }));
  for (const act of activations.values()) select.append(make("option", { value: act.name }, act.table ? `${act.label} (table)` : act.label));
  const depth = slider({ id: `${which}-depth`, label: "depth L", title: "Number of hidden layers", min: 1, max: 100, step: 1, read: () => net().depth, show: String, write: (v) => set({ depth: v }) });
  const w = slider({ id: `${which}-w`, label: "\u03c3", sub: "w", title: "Standard deviation of the weights", min: LIMITS.w[0], max: LIMITS.w[1], step: 0.001, read: () => net().w, show: (v) => v.toFixed(3), write: (v) => set({ w: Math.abs(v - Math.SQRT2) < 0.012 ? 1.414 : Math.round(v * 100) / 100 }) });
  const b = slider({ id: `${which}-b`, label: "\u03c3", sub: "b", title: "Standard deviation of the biases", min: LIMITS.b[0], max: LIMITS.b[1], step: 0.01, read: () => net().b, show: (v) => v.toFixed(2), write: (v) => set({ b: v }) });
  const alpha = slider({ id: `${which}-alpha`, label: "\u03b1", title: "Attenuation of the residual branches", min: -3, max: Math.log10(2), step: 0.00001, read: () => Math.log10(net().alpha), show: () => String(net().alpha), write: (v) => set({ alpha: Number((10 ** v).toPrecision(v < 0.3 ? 2 : 3)) }) });
  const formula = make("div", { class: "equation", role: "math", title: "The network's equation; click to copy its LaTeX", onclick: () => page.copy(formula.dataset.latex ?? "", "The equation's LaTeX is on the clipboard.") });
  const close = make("button", { type: "button", onclick: () => page.change({ b: null }) }, "remove");
  const title = make("h2", {}, which === "a" ? "Network A" : "Network B", ...(which === "b" ? [close] : []));
  const back = make("button", { type: "button", onclick: () => set({ kind: "mlp" }) }, "Back to the sliders");
  const sliders = make("div", {},
    make("div", { class: "row" }, make("label", {}, "kind"), kind.node),
    make("div", { class: "row" }, make("label", { for: `${which}-act` }, "activation"), select), depth.row, w.row, b.row, alpha.row);
  const node = make("section", { class: `card lane ${which}`, "aria-label": `Network ${which.toUpperCase()}` }, title, sliders, formula, back);
  const refresh = () => {
    const n = page.state[which];
    node.classList.toggle("hidden", !n);
    if (!n) return;
    [kind, depth, w, b, alpha].forEach((c) => c.refresh());
    alpha.row.classList.toggle("hidden", n.kind !== "resnet");
    sliders.classList.toggle("hidden", n.kind === "profile");
    back.classList.toggle("hidden", n.kind !== "profile");
    if (select.value !== n.act) select.value = n.act;
    page.equation(formula, n);
  };
  return { node, refresh };
}

/** @param {Page} page @param {HTMLElement} aside */
export function buildControls(page, aside) {
  const a = lane(page, "a"), b = lane(page, "b");
  const add = make("button", { type: "button", id: "add-b", onclick: () => page.change({ b: { ...page.state.a, kind: page.state.a.kind === "mlp" ? "resnet" : "mlp" } }) }, "+ Compare with a second network");
  const kernel = segments([["ntk", "NTK"], ["nngp", "NNGP"]], "What is trained", () => page.state.kind, (v) => page.change({ kind: v }));
  const draws = slider({ id: "draws", label: "networks", title: "How many single networks are drawn", min: 0, max: 8, step: 1, read: () => page.state.draws, show: String, write: (v) => page.change({ draws: v }) });
  const again = make("button", { type: "button", onclick: () => page.change({ seed: (page.state.seed + 1) % 10000 }) }, "Redraw");
  const preset = /** @type {HTMLSelectElement} */ (make("select", { id: "preset", onchange: () => {
    if (preset.value) page.change({ points: presets[preset.value].make(page.state.tab) });
    preset.value = "";
  } }, make("option", { value: "" }, "choose \u2026")));
  for (const [key, p] of Object.entries(presets)) preset.append(make("option", { value: key }, p.label));
  const file = /** @type {HTMLInputElement} */ (make("input", { type: "file", id: "file", accept: ".csv,.json,text/csv,application/json", class: "hidden", onchange: async () => {
    const chosen = file.files?.[0];
    if (chosen) page.open(await chosen.text());
    file.value = "";
  } }));
  const open = make("button", { type: "button", title: "Points as CSV, or a network's profile written by Profile.to_json of Python", onclick: () => file.click() }, "Open \u2026");
  const count = make("output", {});
  const value = slider({ id: "brush", label: "new value", title: "The value of a point that is added on the sphere", min: -2, max: 2, step: 0.1, read: () => page.brush, show: (v) => v.toFixed(1), write: (v) => { page.brush = v; page.controls.refresh(); } });
  const data = make("section", { class: "card", "aria-label": "Data" },
    make("h2", {}, "Data"), make("div", { class: "row" }, make("label", { for: "preset" }, "preset"), preset),
    make("div", { class: "row" }, make("label", {}, "points"), make("span"), count), value.row, draws.row,
    make("div", { class: "row" }, make("label", {}, ""), make("span", { class: "pairbox" }, again, open, file)));
  const training = make("section", { class: "card", "aria-label": "Training" }, make("h2", {}, "Training"), make("div", { class: "row" }, make("label", {}, "kernel"), kernel.node), make("p", { class: "look" }, "NTK: all layers are trained. NNGP: the last one only; for ever, that is the Bayesian posterior."));
  aside.append(a.node, b.node, add, training, data);

  // Time, below the function.
  const time = /** @type {HTMLInputElement} */ (make("input", { type: "range", id: "time", min: 0, max: STEPS + 2, step: 1, "aria-label": "Training time, logarithmic, from 0 to for ever" }));
  time.addEventListener("input", () => {
    const v = Number(time.value);
    page.change({ time: v === 0 ? -Infinity : v === STEPS + 2 ? Infinity : Math.round((TIME.first + (v - 1) / 100) * 100) / 100 });
  });
  const beside = /** @type {HTMLInputElement} */ (time.cloneNode());
  beside.id = "twin-time";
  beside.addEventListener("input", () => {
    time.value = beside.value;
    time.dispatchEvent(new Event("input"));
  });
  const play = make("button", { type: "button", id: "play", onclick: () => page.play() }, "\u25b6 Play");
  const clock = make("output", { for: "time" });
  const bars = [document.getElementById("view-function"), document.getElementById("view-sphere")];
  const bar = make("div", { class: "time" }, play, time, clock);

  // The twin's own bar.
  const width = /** @type {HTMLInputElement} */ (make("input", { type: "range", id: "twin-width", min: 3, max: 10, step: 1, "aria-label": "Width n of the finite networks" }));
  width.addEventListener("input", () => page.change({ width: 2 ** Number(width.value) }));
  const widthText = make("output", { for: "twin-width" });
  const twin = make("div", { class: "twinbar" }, make("label", { for: "twin-width" }, "width n"), width, widthText,
    make("button", { type: "button", class: "primary", id: "twin-train", onclick: () => page.train() }, "Train"),
    make("label", { for: "twin-time" }, "time"), beside,
    make("progress", { id: "twin-progress", class: "hidden", max: 1, value: 0, "aria-label": "Training" }));
  document.querySelector("#view-twin .look")?.after(twin);

  const refresh = () => {
    const s = page.state;
    a.refresh();
    b.refresh();
    add.classList.toggle("hidden", !!s.b);
    kernel.refresh();
    draws.refresh();
    value.refresh();
    value.row.classList.toggle("hidden", s.tab !== "sphere");
    draws.row.classList.toggle("hidden", s.tab === "sphere");
    again.classList.toggle("hidden", s.tab === "sphere");
    count.textContent = String(s.points.length);
    const v = s.time === -Infinity ? 0 : s.time === Infinity ? STEPS + 2 : Math.round((s.time - TIME.first) * 100) + 1;
    for (const slider of [time, beside]) if (Number(slider.value) !== v) slider.value = String(v);
    const home = bars[s.tab === "sphere" ? 1 : 0];
    if (bar.parentElement !== home) home?.append(bar);
    play.textContent = page.playing ? "\u275a\u275a Pause" : page.still.matches ? "\u25b6 Step" : "\u25b6 Play";
    width.value = String(Math.round(Math.log2(s.width)));
    widthText.textContent = String(s.width);
  };
  /** @param {number} t */
  const showTime = (t) => {
    const text = t === Infinity ? "for ever" : Number.isNaN(t) ? "" : `t = ${short(t)}`;
    clock.textContent = text;
    time.setAttribute("aria-valuetext", text);
  };
  return { refresh, time: showTime };
}
