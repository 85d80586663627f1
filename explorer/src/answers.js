// Questions and answers: the same in the worker and, where a page may have none, beside the page.

import { compute, globe, phases, pictures, smoothness } from "./engine.js";
import { install } from "./math/activations.js";
import { errors } from "./math/check.js";
import profiles from "./profiles.json";

install(/** @type {any} */ (profiles));

/** @param {any} m @returns {any} */
export function answer(m) {
  if (m.type === "compute") {
    const result = compute(m.state, m.file);
    if (m.state.tab !== "sphere" || !m.view) return { result, globes: null };
    const globes = pictures(!!m.state.b, m.view).map((p) => {
      const lane = p.of ? result.b : result.a;
      return lane ? globe(m.state, p.of ? m.state.b : m.state.a, lane.dual, { ...p, size: m.view.size }, m.file) : null;
    });
    return { result, globes };
  }
  if (m.type === "smoothness") {
    return [m.state.a, m.state.b].map((net) => {
      try {
        return net && smoothness(m.state, net, m.file);
      } catch {
        return null;
      }
    });
  }
  if (m.type === "phases") return phases(m.act, 60, 40);
  if (m.type === "check") return errors(m.golden);
  throw new Error(m.type);
}
