// A visit to the page in a real Chromium without network. Prints what it found as JSON; any request to the network
// and any error in the console ends it with a failure.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const page = pathToFileURL(resolve(process.argv[2] ?? `${here}/../../src/widelimit/explorer/page.html`)).href;
const golden = readFileSync(`${here}/golden.json`, "utf8");
const found = {};
const browser = await launch({ width: 1366, height: 900 });
const { evaluate, settled } = browser;
const state = () => evaluate("widelimit.page.state");
const key = async (name, times = 1) => {
  const codes = { ArrowRight: 39, ArrowLeft: 37, ArrowUp: 38, ArrowDown: 40, Delete: 46, PageDown: 34, End: 35, Home: 36 };
  for (let k = 0; k < times; k++) {
    for (const type of ["rawKeyDown", "keyUp"]) await browser.call("Input.dispatchKeyEvent", { type, key: name, code: name, windowsVirtualKeyCode: codes[name] });
  }
};
const visit = async (hash) => {
  await browser.open("about:blank");
  await browser.open(page + hash);
  await settled();
};
// Lists of every number that is on the screen, to see that none is missing.
const finite = () =>
  evaluate(`(() => {
    const r = widelimit.page.scene.result, out = [];
    for (const lane of [r.a, r.b]) if (lane) out.push(lane.mean, lane.std, lane.curve, lane.gram, lane.probe.mean, ...lane.draws);
    return { finite: out.every((list) => list.every(Number.isFinite)), count: out.length, sentence: document.getElementById("sentence").textContent };
  })()`);

try {
  await visit("");
  found.paint = await evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null");
  found.ready = await evaluate("performance.now()");

  // The page's own code against Python's numbers.
  found.golden = await evaluate(`widelimit.check(${golden})`);

  // Six points by clicks, one moved, one removed and added again.
  await evaluate("widelimit.page.change({ points: [] })");
  await settled();
  const box = await evaluate("(() => { const b = document.querySelector('#view-function canvas').getBoundingClientRect(); return { x: b.x, y: b.y, w: b.width, h: b.height }; })()");
  const spot = (u, v) => [box.x + box.w * u, box.y + box.h * v];
  for (let k = 0; k < 6; k++) {
    await browser.click(...spot(0.15 + 0.14 * k, 0.3 + 0.35 * ((k * 3) % 5) / 5));
    await new Promise((r) => setTimeout(r, 60));
  }
  assert.equal((await state()).points.length, 6);
  const before = (await state()).points;
  await browser.mouse("mousePressed", ...spot(0.15, 0.3), 1);
  for (let k = 1; k <= 6; k++) await browser.mouse("mouseMoved", ...spot(0.15 + 0.004 * k, 0.3 + 0.02 * k), 1);
  await browser.mouse("mouseReleased", ...spot(0.174, 0.42));
  await settled();
  const after = (await state()).points;
  assert.ok(after.length === 6 && after[0][0] > before[0][0] && after[0][1] < before[0][1], "a drag moves a point");
  await new Promise((r) => setTimeout(r, 500));
  for (let k = 0; k < 2; k++) await browser.click(...spot(0.174, 0.42));
  await settled();
  assert.equal((await state()).points.length, 5, "a double click removes a point");
  await browser.click(...spot(0.15, 0.3));
  await settled();

  // alpha by the keyboard, time by the slider.
  await evaluate("widelimit.page.change({ a: { ...widelimit.page.state.a, kind: 'resnet' } }); document.getElementById('a-alpha').focus()");
  const alpha = (await state()).a.alpha;
  await key("Home");
  await settled();
  assert.equal((await state()).a.alpha, 0.001);
  await evaluate("(() => { const s = document.getElementById('a-alpha'); s.value = -0.3; s.dispatchEvent(new Event('input')); })()");
  await settled();
  assert.ok((await state()).a.alpha === 0.5 && alpha !== 0.5);
  await evaluate("(() => { const s = document.getElementById('time'); s.value = 331; s.dispatchEvent(new Event('input')); })()");
  await evaluate("document.getElementById('add-b').click()");
  await settled();
  assert.equal((await state()).time, 1.3);

  // The script, and the numbers that it must print.
  await evaluate("navigator.clipboard.writeText = async (t) => { window.copied = t; }; document.getElementById('copy-python').click()");
  await browser.until("window.copied", "the script");
  const numbers = () => evaluate(`Object.fromEntries(["a", "b"].map((k) => { const l = widelimit.page.scene.result[k]; return [k.toUpperCase(), { eigenvalues: [...l.values], mean: [...l.probe.mean], std: [...l.probe.std] }]; }))`);
  found.scripts = [{ python: await evaluate("copied"), numbers: await numbers() }];

  // The finite twin.
  await evaluate("widelimit.page.change({ b: null, width: 32, a: { ...widelimit.page.state.a, depth: 2 } }); document.getElementById('twin-train').click()");
  await browser.until("!widelimit.page.training && widelimit.page.scene.runs.length >= 6", "the twins");
  found.gaps = await evaluate("widelimit.page.scene.runs.map((r) => [r.width, r.gap[r.gap.length - 1]])");
  assert.ok(found.gaps.every(([, g]) => Number.isFinite(g)));

  // Reload from the URL: the same state.
  await settled();
  const link = await evaluate("location.hash");
  const kept = await evaluate("widelimit.encode()");
  assert.equal(link, `#${kept}`);
  await visit(link);
  assert.equal(await evaluate("widelimit.encode()"), kept);

  // A profile from Python, and points from a file.
  await evaluate(`widelimit.page.open(${JSON.stringify(JSON.stringify({ schema: "widelimit.profile/1", variance: 0.5, scale: 2, nngp: { shift: 0, error: 0, coefficients: [0.5, -0.5] }, ntk: { shift: 0, error: 0, coefficients: [1, -0.5] } }))})`);
  await settled();
  assert.equal(await evaluate("widelimit.page.scene.result.a.peak"), 3);
  await evaluate("widelimit.page.open('{\"schema\": 1}'); widelimit.page.open('angle,y\\n0.5,1\\n1.5,-1\\n')");
  assert.deepEqual((await state()).points, [[0.5, 1], [1.5, -1]]);
  await visit(link);

  // Every view as SVG; the tour.
  found.svg = await evaluate("widelimit.views.filter((v) => !v.shown || v.shown(widelimit.page.state)).map((v) => [v.id, widelimit.page.svg(v).length])");
  await evaluate("document.getElementById('tour-start').click()");
  for (let k = 0; k < 6; k++) {
    await settled();
    assert.ok((await finite()).finite, `stop ${k + 1}`);
    assert.match(await evaluate("document.querySelector('#tour h2').textContent"), new RegExp(`^${k + 1}\\.`));
    await evaluate("document.querySelector('#tour .primary').click()");
  }
  assert.equal(await evaluate("document.getElementById('tour').hidden"), true);
  found.words = await evaluate("[...document.querySelectorAll('[id^=say-]')].map((n) => n.textContent.length)");

  await visit("#1!l!nngp!r,gelu,4,1.5,0.3,0.5!m,sin,3,1.4,0.5,0.1!e1!-1.1,1_0.2,0.55_1.5,-1!0,1!3,1,128");
  found.scripts.push({ python: await evaluate("widelimit.page.python()"), numbers: await numbers() });

  // Garbage and extremes: a finite picture or a sentence.
  const many = Array.from({ length: 500 }, (_, k) => `${(-3.14 + k * 0.0125).toFixed(4)},${Math.sin(k).toFixed(2)}`).join("_");
  found.extremes = {};
  for (const [name, hash] of Object.entries({
    garbage: "#%%%\u0000!!<script>alert(1)</script>",
    nonsense: "#1!q!ntk!z,zz,NaN,Infinity,-1,1e999!!eNaN!1,2_x,y_,_3!9,9!-1,1e9,x",
    duplicates: "#1!c!ntk!m,relu,3,1.414,0,0.1!!inf!0.5,1_0.5,-1_2,0!0,1!3,1,128",
    zero: "#1!c!ntk!m,relu,3,0,0,0.1!!inf!0.5,1_1.5,-1!0,1!3,1,128",
    chaotic: "#1!c!ntk!m,erf,100,3,0,0.1!!inf!0.5,1_0.5001,-1_2,0!0,1!3,1,128",
    table: "#1!c!ntk!m,silu,60,3,1,0.1!!inf!0.5,1!0,1!3,1,128",
    line: "#1!l!ntk!r,gelu,20,1.5,0.3,0.5!!e2!-1,1_0,0.5_1,-1!0,1!3,1,128",
    sphere: "#1!s!ntk!m,relu,5,1.414,0,0.1!r,erf,5,1.4,0,0.3!inf!",
    many: `#1!c!ntk!m,relu,50,1.414,0,0.1!!inf!${many}!0,1!3,1,128`,
  })) {
    await visit(hash);
    found.extremes[name] = await finite();
    assert.ok(found.extremes[name].finite, name);
  }
  assert.match(found.extremes.table.sentence, /certified/);
  assert.match(found.extremes.duplicates.sentence, /rank 2 of 3/);
  assert.match(found.extremes.zero.sentence, /zero/);
  assert.deepEqual(browser.errors, []);
  assert.deepEqual(browser.requests, []);
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
