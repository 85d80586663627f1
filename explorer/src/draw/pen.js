// One drawing, two papers: a canvas on the screen, or SVG to take away.

/**
 * @typedef {{stroke?: string, fill?: string, width?: number, dash?: number[], alpha?: number, close?: boolean, round?: boolean}} Ink
 * @typedef {{fill?: string, size?: number, align?: "start" | "middle" | "end", weight?: number, turn?: boolean, alpha?: number, italic?: boolean}} Letters
 * @typedef {object} Pen
 * @property {number} width @property {number} height
 * @property {(xs: ArrayLike<number>, ys: ArrayLike<number>, ink: Ink) => void} path Breaks where a number is not finite.
 * @property {(x: number, y: number, r: number, ink: Ink) => void} circle
 * @property {(x: number, y: number, w: number, h: number, ink: Ink) => void} rect
 * @property {(text: string, x: number, y: number, how?: Letters) => void} text
 * @property {(pixels: ImageData, x: number, y: number, w: number, h: number, smooth: boolean) => void} image
 * @property {(x: number, y: number, w: number, h: number, draw: () => void) => void} clip
 */

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

/** @param {CanvasRenderingContext2D} c @param {number} width @param {number} height @returns {Pen} */
export function canvasPen(c, width, height) {
  /** @param {Ink} ink */
  const finish = (ink) => {
    c.globalAlpha = ink.alpha ?? 1;
    if (ink.fill) {
      c.fillStyle = ink.fill;
      c.fill();
    }
    if (ink.stroke) {
      c.strokeStyle = ink.stroke;
      c.lineWidth = ink.width ?? 1;
      c.setLineDash(ink.dash ?? []);
      c.lineCap = ink.round ? "round" : "butt";
      c.lineJoin = "round";
      c.stroke();
    }
    c.globalAlpha = 1;
  };
  return {
    width,
    height,
    path(xs, ys, ink) {
      c.beginPath();
      let open = false;
      for (let i = 0; i < xs.length; i++) {
        if (!Number.isFinite(xs[i]) || !Number.isFinite(ys[i])) open = false;
        else if (open) c.lineTo(xs[i], ys[i]);
        else {
          c.moveTo(xs[i], ys[i]);
          open = true;
        }
      }
      if (ink.close) c.closePath();
      finish(ink);
    },
    circle(x, y, r, ink) {
      if (!Number.isFinite(x + y + r)) return;
      c.beginPath();
      c.arc(x, y, r, 0, 2 * Math.PI);
      finish(ink);
    },
    rect(x, y, w, h, ink) {
      c.beginPath();
      c.rect(x, y, w, h);
      finish(ink);
    },
    text(text, x, y, how = {}) {
      c.save();
      c.font = `${how.italic ? "italic " : ""}${how.weight ?? 400} ${how.size ?? 11}px ${FONT}`;
      c.fillStyle = how.fill ?? "#000";
      c.globalAlpha = how.alpha ?? 1;
      c.textAlign = /** @type {CanvasTextAlign} */ ({ start: "left", middle: "center", end: "right" }[how.align ?? "start"]);
      c.translate(x, y);
      if (how.turn) c.rotate(-Math.PI / 2);
      c.fillText(text, 0, 0);
      c.restore();
    },
    image(pixels, x, y, w, h, smooth) {
      const sheet = document.createElement("canvas");
      sheet.width = pixels.width;
      sheet.height = pixels.height;
      sheet.getContext("2d")?.putImageData(pixels, 0, 0);
      c.imageSmoothingEnabled = smooth;
      c.drawImage(sheet, x, y, w, h);
    },
    clip(x, y, w, h, draw) {
      c.save();
      c.beginPath();
      c.rect(x, y, w, h);
      c.clip();
      draw();
      c.restore();
    },
  };
}

/** @param {number} width @param {number} height @param {string} background @returns {Pen & {finish: (title: string) => string}} */
export function svgPen(width, height, background) {
  /** @type {string[]} */
  const parts = [];
  let clips = 0;
  const n = (/** @type {number} */ v) => String(Math.round(v * 100) / 100);
  const escape = (/** @type {string} */ t) => t.replace(/[<>&"]/g, (ch) => `&#${ch.charCodeAt(0)};`);
  /** @param {Ink} ink */
  const style = (ink) =>
    `fill="${ink.fill ?? "none"}"` +
    (ink.stroke ? ` stroke="${ink.stroke}" stroke-width="${n(ink.width ?? 1)}" stroke-linejoin="round"` : "") +
    (ink.dash?.length ? ` stroke-dasharray="${ink.dash.join(" ")}"` : "") +
    (ink.alpha !== undefined ? ` opacity="${n(ink.alpha)}"` : "");
  return {
    width,
    height,
    path(xs, ys, ink) {
      let d = "", open = false;
      for (let i = 0; i < xs.length; i++) {
        if (!Number.isFinite(xs[i]) || !Number.isFinite(ys[i])) open = false;
        else {
          d += `${open ? "L" : "M"}${n(xs[i])} ${n(ys[i])}`;
          open = true;
        }
      }
      if (d) parts.push(`<path d="${d}${ink.close ? "Z" : ""}" ${style(ink)}/>`);
    },
    circle(x, y, r, ink) {
      if (Number.isFinite(x + y + r)) parts.push(`<circle cx="${n(x)}" cy="${n(y)}" r="${n(r)}" ${style(ink)}/>`);
    },
    rect: (x, y, w, h, ink) => void parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" ${style(ink)}/>`),
    text(text, x, y, how = {}) {
      const turn = how.turn ? ` transform="rotate(-90 ${n(x)} ${n(y)})"` : "";
      parts.push(
        `<text x="${n(x)}" y="${n(y)}" font-family="${escape(FONT)}" font-size="${how.size ?? 11}" font-weight="${how.weight ?? 400}"` +
          ` text-anchor="${how.align ?? "start"}" fill="${how.fill ?? "#000"}"${how.italic ? ' font-style="italic"' : ""}${how.alpha !== undefined ? ` opacity="${how.alpha}"` : ""}${turn}>${escape(text)}</text>`,
      );
    },
    image(pixels, x, y, w, h, smooth) {
      const sheet = document.createElement("canvas");
      sheet.width = pixels.width;
      sheet.height = pixels.height;
      sheet.getContext("2d")?.putImageData(pixels, 0, 0);
      parts.push(
        `<image x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" preserveAspectRatio="none" style="image-rendering:${smooth ? "auto" : "pixelated"}" href="${sheet.toDataURL()}"/>`,
      );
    },
    clip(x, y, w, h, draw) {
      const id = `c${++clips}`;
      parts.push(`<clipPath id="${id}"><rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}"/></clipPath><g clip-path="url(#${id})">`);
      draw();
      parts.push("</g>");
    },
    finish: (title) =>
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"><title>${escape(title)}</title>` +
      `<rect width="${width}" height="${height}" fill="${background}"/>${parts.join("")}</svg>\n`,
  };
}

/**
 * Axes: a rectangle of the paper with two scales.
 * @typedef {{lo: number, hi: number, log?: boolean, ticks?: [number, string][], label?: string, grid?: boolean}} Axis
 */
export class Plot {
  /** @param {Pen} pen @param {import("./views.js").Theme} theme @param {Axis} x @param {Axis} y @param {{l?: number, r?: number, t?: number, b?: number}} [margin] */
  constructor(pen, theme, x, y, margin = {}) {
    this.pen = pen;
    this.theme = theme;
    this.ax = x;
    this.ay = y;
    this.l = margin.l ?? 40;
    this.t = margin.t ?? 10;
    this.w = Math.max(pen.width - this.l - (margin.r ?? 12), 10);
    this.h = Math.max(pen.height - this.t - (margin.b ?? 30), 10);
  }

  /** @param {number} v */
  x(v) {
    return this.l + this.w * part(this.ax, v);
  }

  /** @param {number} v */
  y(v) {
    return this.t + this.h * (1 - part(this.ay, v));
  }

  /** @param {number} px */
  fromX(px) {
    return back(this.ax, (px - this.l) / this.w);
  }

  /** @param {number} py */
  fromY(py) {
    return back(this.ay, 1 - (py - this.t) / this.h);
  }

  axes() {
    const { pen, theme, l, t, w, h } = this;
    const faint = { stroke: theme.grid, width: 1 };
    for (const [v, text] of this.ax.ticks ?? ticks(this.ax, w / 48)) {
      const x = this.x(v);
      if (x < l - 1 || x > l + w + 1) continue;
      pen.path([x, x], [t, t + h], faint);
      pen.text(text, x, t + h + 14, { fill: theme.faint, align: "middle", size: 11 });
    }
    for (const [v, text] of this.ay.ticks ?? ticks(this.ay, h / 34)) {
      const y = this.y(v);
      if (y < t - 1 || y > t + h + 1) continue;
      pen.path([l, l + w], [y, y], faint);
      pen.text(text, l - 6, y + 3.5, { fill: theme.faint, align: "end", size: 11 });
    }
    if (this.ax.label) pen.text(this.ax.label, l + w, t + h + 27, { fill: theme.faint, align: "end", size: 11, italic: true });
    if (this.ay.label) pen.text(this.ay.label, l + 4, t + 11, { fill: theme.faint, size: 11, italic: true });
  }

  /** @param {ArrayLike<number>} xs @param {ArrayLike<number>} ys @param {Ink} ink */
  curve(xs, ys, ink) {
    const far = 4 * this.h;
    const px = Float64Array.from(xs, (v) => this.x(v));
    const py = Float64Array.from(ys, (v) => Math.min(Math.max(this.y(v), this.t - far), this.t + far));
    this.pen.clip(this.l, this.t - 1, this.w, this.h + 2, () => this.pen.path(px, py, ink));
  }

  /** @param {ArrayLike<number>} xs @param {ArrayLike<number>} low @param {ArrayLike<number>} high @param {Ink} ink */
  band(xs, low, high, ink) {
    const n = xs.length;
    const x = new Float64Array(2 * n), y = new Float64Array(2 * n);
    for (let i = 0; i < n; i++) {
      x[i] = xs[i];
      y[i] = high[i];
      x[2 * n - 1 - i] = xs[i];
      y[2 * n - 1 - i] = low[i];
    }
    this.curve(x, y, { ...ink, close: true });
  }
}

/** @param {Axis} a @param {number} v */
function part(a, v) {
  if (a.log) return v > 0 ? Math.log(v / a.lo) / Math.log(a.hi / a.lo) : -9;
  return (v - a.lo) / (a.hi - a.lo);
}

/** @param {Axis} a @param {number} u */
function back(a, u) {
  return a.log ? a.lo * (a.hi / a.lo) ** u : a.lo + u * (a.hi - a.lo);
}

const SUPER = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
/** @param {number} k */
export const power = (k) =>
  k === 0 ? "1" : k === 1 ? "10" : `10${k < 0 ? "\u207b" : ""}${String(Math.abs(k)).replace(/\d/g, (d) => SUPER[Number(d)])}`;

/** @param {Axis} a @param {number} most @returns {[number, string][]} */
function ticks(a, most) {
  /** @type {[number, string][]} */
  const out = [];
  const count = Math.max(Math.floor(most), 2);
  if (a.log) {
    const lo = Math.ceil(Math.log10(a.lo) - 1e-9), hi = Math.floor(Math.log10(a.hi) + 1e-9);
    const step = Math.max(1, Math.ceil((hi - lo) / count));
    for (let k = hi; k >= lo; k -= step) out.push([10 ** k, power(k)]);
    return out;
  }
  const raw = (a.hi - a.lo) / count;
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * base).find((v) => v >= raw * 0.999) ?? raw;
  for (let v = Math.ceil(a.lo / step - 1e-9) * step; v <= a.hi + 1e-9 * step; v += step) {
    out.push([v, short(Math.abs(v) < 1e-12 * step ? 0 : v)]);
  }
  return out;
}

/** A number for people. @param {number} v */
export function short(v) {
  if (!Number.isFinite(v)) return v > 0 ? "\u221e" : v < 0 ? "\u2212\u221e" : "\u2013";
  const size = Math.abs(v);
  if (size !== 0 && (size >= 1e4 || size < 1e-3)) {
    const [m, e] = v.toExponential(1).split("e");
    const head = m.replace(/\.0$/, "");
    return `${head === "1" ? "" : head + "\u00b7"}${power(Number(e))}`.replace("-", "\u2212");
  }
  return String(Number(v.toPrecision(3))).replace("-", "\u2212");
}
