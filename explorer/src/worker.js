// The worker: computes what it is asked, one question after the other.

import { answer } from "./answers.js";
import { train } from "./twin.js";

let training = 0;

self.onmessage = (event) => {
  const m = event.data;
  if (m.type === "train") {
    const mine = ++training;
    const rest = () => new Promise((/** @type {(v: void) => void} */ done) => setTimeout(done, 0));
    const tell = (/** @type {any} */ run) => self.postMessage({ id: m.id, run });
    train(m.state, m.widths, m.seeds, tell, () => training !== mine, rest).then(
      () => self.postMessage({ id: m.id, answer: training === mine }),
      (error) => self.postMessage({ id: m.id, error: String(error.message ?? error) }),
    );
  } else if (m.type === "stop") training++;
  else {
    try {
      self.postMessage({ id: m.id, answer: answer(m) });
    } catch (error) {
      self.postMessage({ id: m.id, error: String(/** @type {any} */ (error).stack ?? error) });
    }
  }
};
