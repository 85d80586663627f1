// Questions and answers: the same in the worker and, where a page may have none, beside the page.

import { compute, globe, phases, smoothness } from "./engine.js";
import { install } from "./math/activations.js";
import { errors } from "./math/check.js";
import profiles from "./profiles.json";

install(/** @type {any} */ (profiles));

/** @param {any} m @returns {any} */
export function answer(m) {
  if (m.type === "compute") {
    const result = compute(m.state, m.file);
    if (m.state.tab !== "sphere" || !m.view) return { result, globes: null };
    /** @param {any} net @param {any} lane */
    const of = (net, lane) => (lane ? globe(m.state, net, lane.dual, m.view, m.file) : null);
    return { result, globes: [of(m.state.a, result.a), m.state.b ? of(m.state.b, result.b) : null] };
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
