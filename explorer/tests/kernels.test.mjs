import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { install } from "../src/math/activations.js";
import { errors } from "../src/math/check.js";

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
install(read("../src/profiles.json"));

test("kernels and flows are Python's", () => {
  const found = errors(read("golden.json"));
  console.log(JSON.stringify(found));
  assert.ok(found.kernels >= 2000 && found.predictions >= 200);
  assert.ok(found.closed < 1e-12, `closed forms: ${found.closed}`);
  assert.ok(found.profile < 1e-12, `profiles: ${found.profile}`);
  assert.ok(found.table < 1e-9, `tables: ${found.table}`);
  assert.ok(found.measures < 1e-8, `kink and smoothness: ${found.measures}`);
  assert.ok(found.flow < 1e-9, `flows: ${found.flow}`);
});
