// Open every page of the built site in a real Chromium without network, as a laptop and as a phone, from the disk.
//
//   node docs/tools/check.mjs build/site [folder for screenshots]
//
// A request to the network, a file that is missing, an error in the console, a formula that KaTeX refuses, a page that is
// wider than the screen, or a link that leads nowhere ends it with a failure.
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { findChromium, launch } from "../../explorer/tests/browser.mjs";

const site = resolve(process.argv[2] ?? "build/site");
const pictures = process.argv[3];
const SHOWN = ["index", "faq", "gallery/index", "gallery/50_smoothness", "ten_minutes", "layers", "accuracy", "migrating", "api/infinite", "explorer", "reproduction"];
const LAPTOP = [1366, 768], PHONE = [390, 844];

function pagesIn(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return name === "assets" ? [] : pagesIn(path);
    return name.endsWith(".html") ? [path] : [];
  });
}

if (!findChromium()) {
  console.error("No Chromium was found. Install one, or name it in WIDELIMIT_CHROMIUM.");
  process.exit(1);
}
if (pictures) mkdirSync(pictures, { recursive: true });

const faults = [], links = [], anchors = new Map();
const browser = await launch({ width: LAPTOP[0], height: LAPTOP[1], still: true });
const look = `(() => {
  const wide = document.documentElement.scrollWidth - window.innerWidth;
  const culprit = wide <= 0 ? "" : [...document.querySelectorAll("body *")]
    .filter((e) => e.getBoundingClientRect().right > window.innerWidth + 1 && !e.closest("pre, .md-typeset__scrollwrap, .katex-display, .md-sidebar"))
    .slice(0, 3).map((e) => e.tagName + "." + e.className).join(" ");
  return { wide, culprit };
})()`;
const read = `(() => ({
  ids: [...document.querySelectorAll("[id]")].map((e) => e.id),
  links: [...document.querySelectorAll("a[href]")].map((a) => a.href),
  formulas: [...document.querySelectorAll(".arithmatex")].filter((e) => !e.querySelector(".katex") || e.querySelector(".katex-error")).map((e) => e.textContent.slice(0, 60)),
  title: document.title,
}))()`;

const pages = pagesIn(site).filter((page) => relative(site, page) !== "404.html").sort(); // that one has absolute paths
try {
  for (const page of pages) {
    const name = relative(site, page).replace(/\.html$/, "");
    browser.errors.length = browser.requests.length = 0;
    await browser.size(...LAPTOP);
    await browser.open(pathToFileURL(page).href);
    const found = await browser.evaluate(read);
    anchors.set(page, new Set(found.ids));
    for (const href of found.links) links.push([page, href]);
    for (const formula of found.formulas) faults.push(`${name}: a formula is not set: ${formula}`);
    if (!found.title) faults.push(`${name}: no title`);
    for (const [kind, size] of [["laptop", LAPTOP], ["phone", PHONE]]) {
      await browser.size(...size);
      await browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
      const { wide, culprit } = await browser.evaluate(look);
      if (wide > 0) faults.push(`${name}: ${wide} pixels too wide on a ${kind} (${culprit})`);
      if (pictures && SHOWN.includes(name)) {
        await new Promise((done) => setTimeout(done, 400));
        writeFileSync(join(pictures, `${name.replaceAll("/", "-")}-${kind}.png`), await browser.screenshot());
      }
    }
    for (const request of browser.requests) faults.push(`${name}: asks the network for ${request}`);
    for (const error of browser.errors) faults.push(`${name}: ${error}`);
  }

  // Offline search finds something.
  browser.errors.length = 0;
  await browser.size(...LAPTOP);
  await browser.open(pathToFileURL(join(site, "index.html")).href);
  await browser.until('document.querySelector(".md-search__button") !== null', "the search", 10);
  await browser.evaluate('document.querySelector(".md-search__button").click()');
  const words = `(() => {
    const all = (root) => [...root.querySelectorAll("*")].map((e) => (e.shadowRoot ? e.shadowRoot.textContent + all(e.shadowRoot) : "")).join(" ");
    return all(document) + document.body.innerText;
  })()`;
  await browser.until('document.activeElement !== document.body', "the field of the search", 10);
  await new Promise((done) => setTimeout(done, 800));
  await browser.call("Input.insertText", { text: "tangent kernel" });
  await browser.until(`/[1-9]\\d* results/.test(${words})`, "results of the search", 15);
  if (pictures) writeFileSync(join(pictures, "search.png"), await browser.screenshot());
  for (const error of browser.errors) faults.push(`search: ${error}`);
} finally {
  await browser.close();
}

const seen = new Set();
for (const [page, href] of links) {
  if (!href.startsWith("file:")) continue;
  const url = new URL(href);
  const target = fileURLToPath(new URL(url.pathname, "file:"));
  const anchor = decodeURIComponent(url.hash.slice(1));
  const key = `${page} ${href}`;
  if (seen.has(key)) continue;
  seen.add(key);
  const here = relative(site, page);
  if (!existsSync(target)) faults.push(`${here}: a link leads nowhere: ${relative(site, target)}`);
  else if (anchor && !anchor.startsWith("__") && anchors.has(target) && !anchors.get(target).has(anchor))
    faults.push(`${here}: no such place: ${relative(site, target)}#${anchor}`);
}
console.log(`${pages.length} pages, ${seen.size} links inside the site, ${faults.length} faults`);
for (const fault of faults) console.error(fault);
process.exit(faults.length ? 1 : 0);
