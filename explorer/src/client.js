// The page's side of the worker.

import source from "worker-source";
import { answer } from "./answers.js";
import { train } from "./twin.js";

/** Questions to a worker of one's own; beside the page where no worker may be made. */
export class Client {
  constructor() {
    this.next = 0;
    /** @type {Map<number, {done: (v: any) => void, fail: (e: Error) => void, tell?: (run: any) => void}>} */
    this.waiting = new Map();
    this.stops = 0;
    try {
      this.worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
      this.worker.onmessage = ({ data }) => {
        const who = this.waiting.get(data.id);
        if (!who) return;
        if (data.run) return who.tell?.(data.run);
        this.waiting.delete(data.id);
        if (data.error) who.fail(new Error(data.error));
        else who.done(data.answer);
      };
    } catch {
      this.worker = null;
    }
  }

  /** @param {any} question @param {(run: any) => void} [tell] @returns {Promise<any>} */
  ask(question, tell) {
    const id = ++this.next;
    const { worker } = this;
    if (!worker) {
      if (question.type !== "train") return Promise.resolve().then(() => answer(question));
      const mine = ++this.stops;
      const rest = () => new Promise((/** @type {(v: void) => void} */ done) => setTimeout(done, 0));
      return train(question.state, question.widths, question.seeds, tell ?? (() => {}), () => mine !== this.stops, rest).then(() => mine === this.stops);
    }
    return new Promise((done, fail) => {
      this.waiting.set(id, { done, fail, tell });
      worker.postMessage({ ...question, id });
    });
  }

  stop() {
    this.stops++;
    this.worker?.postMessage({ type: "stop" });
  }
}
