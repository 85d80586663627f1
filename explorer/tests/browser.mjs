// A real Chromium over the DevTools protocol, through a pipe: no port, no package.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/** Where a Chromium is, or null. WIDELIMIT_CHROMIUM names another one. */
export function findChromium() {
  if (process.env.WIDELIMIT_CHROMIUM) return process.env.WIDELIMIT_CHROMIUM;
  for (const folder of (process.env.PATH ?? "").split(":")) {
    for (const name of NAMES) if (existsSync(join(folder, name))) return join(folder, name);
  }
  return null;
}

/** Start it, without network: every host resolves to nothing, and requests are counted. */
export async function launch({ width = 1366, height = 768, scale = 1, mobile = false, dark = false, still = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "widelimit-explorer-"));
  const child = spawn(
    findChromium(),
    ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", `--user-data-dir=${folder}`,
      "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
      "--host-resolver-rules=MAP * ~NOTFOUND", `--window-size=${width},${height}`, "about:blank"],
    { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true }, // the leader of a group, which close() ends
  );
  const [, , , input, output] = child.stdio;
  let next = 0, rest = "";
  const waiting = new Map();
  const listeners = [];
  output.setEncoding("utf8");
  output.on("data", (text) => {
    const parts = (rest + text).split("\0");
    rest = parts.pop();
    for (const part of parts) {
      const message = JSON.parse(part);
      const who = waiting.get(message.id);
      if (who) {
        waiting.delete(message.id);
        if (message.error) who.fail(new Error(`${who.method}: ${message.error.message}`));
        else who.done(message.result);
      } else listeners.forEach((f) => f(message));
    }
  });
  const send = (method, params = {}, sessionId = undefined) =>
    new Promise((done, fail) => {
      const id = ++next;
      waiting.set(id, { done, fail, method });
      input.write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    });
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const call = (method, params) => send(method, params, sessionId);
  const requests = [], errors = [];
  listeners.push(({ method, params }) => {
    if (method === "Network.requestWillBeSent" && !/^(file|data|blob|about):/.test(params.request.url)) requests.push(params.request.url);
    if (method === "Runtime.exceptionThrown") errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) errors.push(params.args.map((a) => a.value ?? a.description).join(" "));
    if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) errors.push(`${params.entry.text} ${params.entry.url ?? ""}`);
  });
  await Promise.all([call("Page.enable"), call("Runtime.enable"), call("Network.enable"), call("Log.enable")]);
  await call("Network.emulateNetworkConditions", { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 });
  const size = (w, h) => call("Emulation.setDeviceMetricsOverride", { width: w, height: h, deviceScaleFactor: scale, mobile });
  await size(width, height);
  await call("Emulation.setEmulatedMedia", {
    features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }, { name: "prefers-reduced-motion", value: still ? "reduce" : "no-preference" }],
  });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  const browser = {
    call, evaluate, requests, errors, size,
    async open(url) {
      const loaded = new Promise((done) => {
        const seen = ({ method }) => {
          if (method !== "Page.loadEventFired") return;
          listeners.splice(listeners.indexOf(seen), 1);
          done();
        };
        listeners.push(seen);
      });
      await call("Page.navigate", { url });
      await loaded;
    },
    async until(expression, what = expression, seconds = 30) {
      const end = Date.now() + 1000 * seconds;
      while (!(await evaluate(expression))) {
        if (Date.now() > end) throw new Error(`waited ${seconds} s for ${what}`);
        await new Promise((r) => setTimeout(r, 40));
      }
    },
    settled: () => browser.until("window.widelimit && widelimit.settled()", "the page to settle"),
    async mouse(type, x, y, buttons = 0, clickCount = 1) {
      await call("Input.dispatchMouseEvent", { type, x, y, button: buttons || type === "mouseReleased" ? "left" : "none", buttons, clickCount });
    },
    async click(x, y) {
      await browser.mouse("mousePressed", x, y, 1);
      await browser.mouse("mouseReleased", x, y);
    },
    async screenshot(whole = false) {
      const { data } = await call("Page.captureScreenshot", { format: "png", captureBeyondViewport: whole });
      return Buffer.from(data, "base64");
    },
    async close() {
      await Promise.race([send("Browser.close").catch(() => {}), new Promise((r) => setTimeout(r, 2000))]);
      try {
        process.kill(-child.pid, "SIGKILL"); // its helpers too: they write into the folder
      } catch {} // all gone
      await new Promise((r) => (child.exitCode !== null || child.signalCode ? r() : child.once("exit", r)));
      for (let attempt = 0; attempt < 20; attempt++) {
        try {
          rmSync(folder, { recursive: true, force: true });
          break;
        } catch {
          await new Promise((r) => setTimeout(r, 100)); // a helper that is still dying
        }
      }
    },
  };
  return browser;
}
