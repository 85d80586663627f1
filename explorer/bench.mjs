// How fast the page is: a drag of one of 60 points at depth 50 with all views visible, in headless Chromium.
//   node explorer/bench.mjs
// Prints first paint, time until interactive, and the frames of scripted drags. Timings depend on the machine; nothing
// is asserted.
import { pathToFileURL, fileURLToPath } from "node:url";
import { launch } from "./tests/browser.mjs";

const page = pathToFileURL(fileURLToPath(new URL("../src/widelimit/explorer/page.html", import.meta.url))).href;
const points = Array.from({ length: 60 }, (_, k) => `${(-3.1 + k * 0.1043).toFixed(4)},${Math.sin(4 * k).toFixed(3)}`).join("_");
const browser = await launch({ width: 1600, height: 2000 });
const median = (list) => list.slice().sort((a, b) => a - b)[list.length >> 1];
const late = (list) => list.slice().sort((a, b) => a - b)[Math.floor(list.length * 0.95)];
try {
  await browser.open(page);
  await browser.until("window.widelimit && widelimit.page.scene.result", "the first picture");
  const paint = await browser.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime");
  await browser.until("performance.getEntriesByName('widelimit-ready').length", "the first drawing");
  const ready = await browser.evaluate("performance.getEntriesByName('widelimit-ready')[0].startTime");
  console.log(`first paint ${paint.toFixed(0)} ms, first result drawn ${ready.toFixed(0)} ms`);
  const drag = async (name, hash, move) => {
    await browser.open("about:blank");
    await browser.open(page + hash);
    await browser.settled();
    const { frames, answers } = await browser.evaluate(`(async () => {
      const page = widelimit.page, frames = [];
      page.frames.length = 0;
      let last = performance.now();
      for (let k = 0; k < 120; k++) {
        (${move})(page, k);
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
        const now = performance.now();
        frames.push(now - last);
        last = now;
      }
      return { frames, answers: page.frames.slice() };
    })()`);
    console.log(`${name}: frame median ${median(frames).toFixed(1)} ms, 95 % ${late(frames).toFixed(1)} ms; ` +
      `answer median ${median(answers).toFixed(1)} ms, ${answers.length} answers in ${frames.length} frames`);
  };
  const move = "(page, k) => page.change({ points: page.state.points.map((p, i) => (i === 30 ? [+(0.5 * Math.sin(k / 9)).toFixed(4), +(Math.cos(k / 7)).toFixed(3)] : p)) })";
  const lane = "m,relu,50,1.414,0,0.1";
  await drag("a point of 60, depth 50", `#1!c!ntk!${lane}!!e2!${points}!3,40!3,1,128`, move);
  await drag("the same with two networks", `#1!c!ntk!${lane}!r,erf,50,1.4,0.1,0.1!e2!${points}!3,40!3,1,128`, move);
  await drag("time", `#1!c!ntk!${lane}!!e2!${points}!3,40!3,1,128`, "(page, k) => page.change({ time: -2 + k / 15 })");
  await drag("alpha, ResNet of depth 50", `#1!c!ntk!r,relu,50,1.414,0,0.1!!inf!${points}!3,40!3,1,128`, "(page, k) => page.change({ a: { ...page.state.a, alpha: +(10 ** (-3 + k / 40)).toPrecision(2) } })");
  await drag("sigma_w, erf of depth 50 on the line", `#1!l!ntk!m,erf,50,1.414,0.1,0.1!!inf!${points}!3,40!3,1,128`, "(page, k) => page.change({ a: { ...page.state.a, w: 1 + k / 100 } })");
  const globe = Array.from({ length: 100 }, (_, k) => `${(-3.1 + k * 0.062).toFixed(3)},${(1.4 * Math.sin(k)).toFixed(3)},${k % 2 ? 1 : -1}`).join("_");
  await drag("100 points on the sphere", `#1!s!ntk!m,relu,5,1.414,0,0.1!!inf!${globe}!3,40!3,1,128`, "(page, k) => { page.scene.eye = { lon: k / 20, lat: 0.3 }; page.ask(); page.draw(); }");
} finally {
  await browser.close();
}
