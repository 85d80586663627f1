import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { compute } from "../src/engine.js";
import { activations, install } from "../src/math/activations.js";
import { layered } from "../src/math/kernel.js";
import { eigh, root } from "../src/math/linalg.js";
import { cleanPoints, decode, encode, newNet, presets, random } from "../src/state.js";
import { Twin } from "../src/twin.js";

install(JSON.parse(readFileSync(new URL("../src/profiles.json", import.meta.url), "utf8")));

test("any address is a state, and a state is its address", () => {
  const { uniform } = random(7);
  const letters = "1!c!ntk!m,relu,3,1.4,0,0.1!!inf!0.5,1_!-e%#\u221e{}<>\"NaN";
  const good = encode(decode(""));
  for (let k = 0; k < 1500; k++) {
    // Garbage, and good addresses with a few letters changed.
    let text = Array.from({ length: 1 + 60 * uniform() }, () => letters[Math.floor(uniform() * letters.length)]).join("");
    if (k % 2) {
      const at = Math.floor(uniform() * good.length);
      text = good.slice(0, at) + text.slice(0, 3) + good.slice(at + 2);
    }
    const state = decode(`#${text}`);
    assert.ok(state.points.flat().every(Number.isFinite), text);
    assert.ok(state.a.depth >= 1 && state.a.depth <= 100 && state.a.w >= 0 && state.a.alpha > 0, text);
    assert.equal(encode(decode(`#${encode(state)}`)), encode(state), text);
  }
});

test("presets are what an address keeps", () => {
  for (const tab of ["circle", "line", "sphere"]) {
    for (const { make } of Object.values(presets)) {
      const state = { ...decode(""), tab, points: make(tab), pair: [0, 0] };
      assert.deepEqual(decode(`#${encode(state)}`).points, state.points);
    }
  }
});

test("a symmetric matrix is its eigenvectors, and a factor's square", () => {
  const { normal } = random(3), n = 40;
  const half = Float64Array.from({ length: n * 12 }, normal);
  const matrix = new Float64Array(n * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) for (let k = 0; k < 12; k++) matrix[i * n + j] += half[i * 12 + k] * half[j * 12 + k];
  const { values, vectors } = eigh(matrix, n);
  const factor = root(matrix, n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      let back = 0, square = 0;
      for (let k = 0; k < n; k++) {
        back += vectors[i * n + k] * values[k] * vectors[j * n + k];
        square += factor[i * n + k] * factor[j * n + k];
      }
      assert.ok(Math.abs(back - matrix[i * n + j]) < 1e-12 * values[n - 1]);
      assert.ok(Math.abs(square - matrix[i * n + j]) < 1e-9 * values[n - 1]);
    }
  }
});

test("a step of a wide network moves its outputs by the tangent kernel", () => {
  const points = [[1, 0], [0.6, 0.8], [-0.5, 0.9]];
  const x = new Float32Array(points.flat());
  for (const net of [newNet({ depth: 2, act: "erf", b: 0.3 }), newNet({ kind: "resnet", depth: 2, alpha: 0.7, act: "gelu" })]) {
    const kernels = layered(net, points, [[0, 0], [1, 0], [2, 0]]);
    for (const lastOnly of [false, true]) {
      const expected = kernels[lastOnly ? "nngp" : "ntk"];
      const mean = [0, 0, 0], seeds = 12, rate = 0.01;
      for (let seed = 0; seed < seeds; seed++) {
        const twin = new Twin(net, 128, 2, seed + 1);
        const before = twin.forward(x, 3);
        twin.step(Float32Array.of(1, 0, 0), 3, rate, lastOnly);
        const after = twin.forward(x, 3);
        for (let i = 0; i < 3; i++) mean[i] += (before[i] - after[i]) / rate / seeds;
      }
      mean.forEach((v, i) => assert.ok(Math.abs(v - expected[i]) < 0.12 * expected[0], `${net.kind} ${lastOnly}: ${v} for ${expected[i]}`));
    }
  }
});

test("every state has a finite picture or a sentence", () => {
  const { uniform } = random(11);
  const pick = (list) => list[Math.floor(uniform() * list.length)];
  const net = () =>
    newNet({
      kind: pick(["mlp", "resnet"]), act: pick([...activations.keys()]), depth: pick([1, 2, 5, 30, 100]),
      w: pick([0, 0.01, 1, 1.414, 3]), b: pick([0, 0, 0.1, 2]), alpha: pick([0.001, 0.1, 2]),
    });
  for (let k = 0; k < 60; k++) {
    const tab = pick(["circle", "line", "sphere"]), n = pick([0, 1, 2, 6]);
    const points = Array.from({ length: n }, () => (tab === "sphere" ? [6 * uniform() - 3, uniform(), uniform()] : [6 * uniform() - 3, uniform()]));
    if (n > 1 && uniform() < 0.3) points[1] = points[0].map((v) => v + pick([0, 1e-4])); // on top of each other, or nearly
    const state = { ...decode(""), tab, points: cleanPoints(tab, points), kind: pick(["ntk", "nngp"]), a: net(), b: net(), time: pick([-Infinity, 0, 8, Infinity]) };
    const found = compute(state, null);
    for (const lane of [found.a, found.b]) {
      if (!lane) assert.ok(found.sentences.length);
      else for (const list of [lane.mean, lane.std, lane.curve, lane.gram, lane.residual, ...lane.draws, [lane.kink]]) assert.ok(list.every(Number.isFinite), JSON.stringify(state));
    }
  }
});
