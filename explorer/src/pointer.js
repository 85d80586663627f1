// Fingers, mice and keys on the views.

import { canvasPen } from "./draw/pen.js";
import { discs, functionPlot, heatSquares, phasePlot } from "./draw/views.js";
import { frame, pictures } from "./engine.js";
import { embed, MOST_POINTS, round } from "./state.js";

/** @typedef {import("./main.js").Page} Page */

/** @param {Page} page @param {string} id @param {HTMLCanvasElement} canvas */
export function attach(page, id, canvas) {
  const pen = () => canvasPen(/** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")), canvas.clientWidth, canvas.clientHeight);
  const place = (/** @type {PointerEvent | MouseEvent} */ e) => {
    const box = canvas.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top };
  };
  if (id === "function") functionEvents(page, canvas, pen, place);
  if (id === "sphere") sphereEvents(page, canvas, pen, place);
  if (id === "gram") {
    canvas.addEventListener("click", (e) => {
      const { x, y } = place(e), n = page.state.points.length;
      for (const s of heatSquares(pen(), !!page.scene.result?.b)) {
        const c = Math.floor(((x - s.x) / s.side) * n), r = Math.floor(((y - s.y) / s.side) * n);
        if (c < 0 || r < 0 || c >= n || r >= n || c === r) continue;
        const order = page.state.points.map((_, i) => i).sort((i, j) => page.state.points[i][0] - page.state.points[j][0]);
        page.change({ pair: [order[r], order[c]] });
      }
    });
    canvas.addEventListener("keydown", (e) => {
      const n = page.state.points.length;
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: -1, ArrowDown: 1 }[e.key];
      if (!step || n < 3) return;
      e.preventDefault();
      let [i, j] = page.state.pair;
      const down = e.key === "ArrowUp" || e.key === "ArrowDown";
      do {
        if (down) i = (i + step + n) % n;
        else j = (j + step + n) % n;
      } while (i === j);
      page.change({ pair: [i, j] });
    });
  }
  if (id === "phase") {
    const set = (/** @type {PointerEvent} */ e) => {
      const plot = phasePlot(pen(), page.theme), { x, y } = place(e);
      const w = round(Math.min(Math.max(plot.fromX(x), 0), 3), 2), b = round(Math.min(Math.max(plot.fromY(y), 0), 2), 2);
      if (page.state.a.kind !== "profile") page.change({ a: { ...page.state.a, w, b } });
    };
    canvas.addEventListener("pointerdown", (e) => {
      canvas.setPointerCapture(e.pointerId);
      set(e);
    });
    canvas.addEventListener("pointermove", (e) => {
      if (e.buttons) set(e);
    });
    canvas.addEventListener("keydown", (e) => {
      const move = { ArrowRight: [0.02, 0], ArrowLeft: [-0.02, 0], ArrowUp: [0, 0.02], ArrowDown: [0, -0.02] }[e.key];
      if (!move || page.state.a.kind === "profile") return;
      e.preventDefault();
      const { a } = page.state;
      page.change({ a: { ...a, w: round(Math.min(Math.max(a.w + move[0], 0), 3), 3), b: round(Math.min(Math.max(a.b + move[1], 0), 2), 2) } });
    });
  }
  if (id === "kernel") {
    canvas.addEventListener("pointermove", (e) => {
      page.scene.hover = { id, ...place(e) };
      page.draw();
    });
    canvas.addEventListener("pointerleave", () => {
      page.scene.hover = null;
      page.draw();
    });
  }
}

/**
 * @param {Page} page @param {HTMLCanvasElement} canvas @param {() => import("./draw/pen.js").Pen} pen
 * @param {(e: PointerEvent | MouseEvent) => {x: number, y: number}} place
 */
function functionEvents(page, canvas, pen, place) {
  let dragged = -1, last = { time: 0, index: -1, fresh: false };
  const plot = () => functionPlot(pen(), page.theme, page.state);
  /** @param {number} x @param {number} y @param {number} reach */
  const nearest = (x, y, reach) => {
    const p = plot();
    let best = -1, distance = reach;
    page.state.points.forEach((q, i) => {
      const d = Math.hypot(p.x(q[0]) - x, p.y(q[1]) - y);
      if (d <= distance) {
        best = i;
        distance = d;
      }
    });
    return best;
  };
  /** @param {number} x @param {number} y */
  const value = (x, y) => {
    const p = plot(), reach = page.state.tab === "circle" ? Math.PI : 3;
    return [round(Math.min(Math.max(p.fromX(x), -reach), reach)), round(Math.min(Math.max(p.fromY(y), -3), 3), 3)];
  };
  /** @param {number} i */
  const remove = (i) => page.change({ points: page.state.points.filter((_, k) => k !== i) });
  canvas.addEventListener("pointerdown", (e) => {
    canvas.setPointerCapture(e.pointerId);
    const { x, y } = place(e);
    dragged = nearest(x, y, e.pointerType === "touch" ? 26 : 14);
    const again = dragged >= 0 && dragged === last.index && e.timeStamp - last.time < 420;
    if (again && !last.fresh) {
      remove(dragged);
      dragged = -1;
      last = { time: 0, index: -1, fresh: false };
      page.scene.selected = -1;
      return;
    }
    let fresh = false;
    if (dragged < 0 && page.state.points.length < MOST_POINTS) {
      const points = [...page.state.points, value(x, y)];
      dragged = points.length - 1;
      fresh = true;
      page.scene.selected = dragged;
      page.change({ points });
    }
    page.scene.selected = dragged;
    last = { time: e.timeStamp, index: dragged, fresh };
    page.draw();
  });
  canvas.addEventListener("pointermove", (e) => {
    const { x, y } = place(e);
    if (dragged < 0 || !e.buttons) {
      canvas.style.cursor = nearest(x, y, 14) >= 0 ? "grab" : "crosshair";
      return;
    }
    last.time = 0;
    page.change({ points: page.state.points.map((p, i) => (i === dragged ? value(x, y) : p)) });
  });
  canvas.addEventListener("pointerup", () => {
    dragged = -1;
    page.tell();
  });
  canvas.addEventListener("keydown", (e) => {
    const { points } = page.state, n = points.length;
    let k = page.scene.selected;
    const step = e.shiftKey ? 0.2 : 0.02;
    const move = { ArrowRight: [step, 0], ArrowLeft: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[e.key];
    if (move && n) {
      e.preventDefault();
      if (k < 0) k = 0;
      const reach = page.state.tab === "circle" ? Math.PI : 3;
      const clamp = (/** @type {number} */ v, /** @type {number} */ r) => round(Math.min(Math.max(v, -r), r));
      page.scene.selected = k;
      page.change({ points: points.map((p, i) => (i === k ? [clamp(p[0] + move[0], reach), clamp(p[1] + move[1], 3)] : p)) });
    } else if ((e.key === "PageDown" || e.key === "PageUp" || e.key === "n" || e.key === "p") && n) {
      e.preventDefault();
      page.scene.selected = (k + (e.key === "PageDown" || e.key === "n" ? 1 : n - 1) + (k < 0 ? 1 : 0)) % n;
      page.toast(`Point ${page.scene.selected + 1}: ${points[page.scene.selected].join(", ")}`);
      page.draw();
    } else if (e.key === "Enter" || e.key === "Insert") {
      e.preventDefault();
      page.scene.selected = n;
      page.change({ points: [...points, [0, 0]].slice(0, MOST_POINTS) });
    } else if ((e.key === "Delete" || e.key === "Backspace") && k >= 0) {
      e.preventDefault();
      remove(k);
    }
  });
}

/**
 * @param {Page} page @param {HTMLCanvasElement} canvas @param {() => import("./draw/pen.js").Pen} pen
 * @param {(e: PointerEvent | MouseEvent) => {x: number, y: number}} place
 */
function sphereEvents(page, canvas, pen, place) {
  /** Longitude and latitude under the pointer, or null. @param {number} x @param {number} y */
  const under = (x, y) => {
    for (const [k, disc] of discs(pen()).entries()) {
      const u = (x - disc.x) / disc.r, v = (disc.y - y) / disc.r, rest = 1 - u * u - v * v;
      if (rest < 0) continue;
      const side = pictures(!!page.state.b, page.scene.eye)[k];
      const { forward, east, north } = frame(side), w = Math.sqrt(rest);
      const p = [0, 1, 2].map((i) => u * east[i] + v * north[i] + w * forward[i]);
      return { p, lon: Math.atan2(p[1], p[0]), lat: Math.asin(Math.min(Math.max(p[2], -1), 1)), r: disc.r, far: side.far };
    }
    return null;
  };
  /** @param {number[]} p */
  const nearest = (p) => {
    let best = -1, most = Math.cos(0.09);
    page.state.points.forEach((q, i) => {
      const e = embed("sphere", q), dot = e[0] * p[0] + e[1] * p[1] + e[2] * p[2];
      if (dot > most) {
        most = dot;
        best = i;
      }
    });
    return best;
  };
  let start = { x: 0, y: 0, lon: 0, lat: 0, r: 1, far: false }, dragged = -1, turned = false, down = false;
  canvas.addEventListener("pointerdown", (e) => {
    canvas.setPointerCapture(e.pointerId);
    const at = place(e), hit = under(at.x, at.y);
    start = { ...at, ...page.scene.eye, r: hit?.r ?? 1, far: !!hit?.far };
    dragged = hit ? nearest(hit.p) : -1;
    page.scene.selected = dragged;
    turned = false;
    down = !!hit;
    page.draw();
  });
  canvas.addEventListener("pointermove", (e) => {
    if (!e.buttons || !down) return;
    const at = place(e);
    if (!turned && Math.hypot(at.x - start.x, at.y - start.y) < 4) return;
    turned = true;
    if (dragged >= 0) {
      const hit = under(at.x, at.y);
      if (hit) page.change({ points: page.state.points.map((p, i) => (i === dragged ? [round(hit.lon), round(hit.lat), p[2]] : p)) });
      return;
    }
    const { r, far } = start;
    page.scene.eye = { lon: start.lon - (at.x - start.x) / r, lat: Math.min(Math.max(start.lat + ((far ? -1 : 1) * (at.y - start.y)) / r, -1.5), 1.5) };
    page.draw();
    page.ask();
  });
  canvas.addEventListener("pointerup", (e) => {
    page.tell();
    if (turned || !down) return;
    const at = place(e), hit = under(at.x, at.y);
    if (hit && dragged < 0 && page.state.points.length < MOST_POINTS) {
      page.change({ points: [...page.state.points, [round(hit.lon), round(hit.lat), page.brush]] });
    }
  });
  canvas.addEventListener("dblclick", (e) => {
    const at = place(e), hit = under(at.x, at.y), i = hit ? nearest(hit.p) : -1;
    if (i >= 0) page.change({ points: page.state.points.filter((_, k) => k !== i) });
  });
  canvas.addEventListener("keydown", (e) => {
    const turn = { ArrowRight: [0.1, 0], ArrowLeft: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
    const { eye } = page.scene;
    if (turn) {
      e.preventDefault();
      page.scene.eye = { lon: eye.lon + turn[0], lat: Math.min(Math.max(eye.lat + turn[1], -1.5), 1.5) };
      page.draw();
      page.ask();
    } else if (e.key === "Enter") page.change({ points: [...page.state.points, [round(Math.atan2(Math.sin(eye.lon), Math.cos(eye.lon))), round(eye.lat), page.brush]] });
    else if ((e.key === "Delete" || e.key === "Backspace") && page.scene.selected >= 0) page.change({ points: page.state.points.filter((_, k) => k !== page.scene.selected) });
  });
}
