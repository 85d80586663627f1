// Builds the page: everything in one file, the same bytes every time.
//   node build.mjs          writes the file that the wheel ships
//   node build.mjs FILE     writes another one
import { build } from "esbuild";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? `${here}/../src/widelimit/explorer/page.html`);
const FONTS = ["Main-Regular", "Math-Italic", "Size1-Regular", "Size2-Regular", "Size3-Regular", "Size4-Regular"];

const bundle = async (entry, plugins = []) => {
  const { outputFiles } = await build({
    absWorkingDir: here, entryPoints: [entry], bundle: true, write: false, minify: true, format: "iife", target: "es2022",
    charset: "utf8", legalComments: "none", loader: { ".json": "json" }, plugins,
  });
  return outputFiles[0].text;
};

const worker = await bundle("src/worker.js");
const script = await bundle("src/main.js", [
  {
    name: "worker-source",
    setup(b) {
      b.onResolve({ filter: /^worker-source$/ }, () => ({ path: "worker-source", namespace: "made" }));
      b.onLoad({ filter: /.*/, namespace: "made" }, () => ({ contents: worker, loader: "text" }));
    },
  },
]);

const katex = `${here}/node_modules/katex/dist`;
const fonts = readFileSync(`${katex}/katex.min.css`, "utf8").replace(/@font-face\{[^}]*\}/g, (face) => {
  const name = /fonts\/KaTeX_([\w-]+)\.woff2/.exec(face)?.[1];
  if (!FONTS.includes(name)) return "";
  const data = readFileSync(`${katex}/fonts/KaTeX_${name}.woff2`).toString("base64");
  return face.replace(/src:[^}]*/, `src:url(data:font/woff2;base64,${data}) format("woff2")`);
});
const style = (await build({ stdin: { contents: readFileSync(`${here}/src/style.css`, "utf8"), loader: "css" }, minify: true, write: false })).outputFiles[0].text;

const licence = readFileSync(`${here}/node_modules/katex/LICENSE`, "utf8").trim();
const page = readFileSync(`${here}/src/index.html`, "utf8")
  .replace("<!--LICENCE-->", () => `<!--\nThis page contains KaTeX and its fonts (katex.org):\n\n${licence}\n-->`)
  .replace("/*STYLE*/", () => fonts + style.trim())
  .replace("/*SCRIPT*/", () => script.trim().replaceAll("</script", "<\\/script"));
mkdirSync(dirname(target), { recursive: true });
writeFileSync(target, page);
console.log(`${target}: ${(page.length / 1000).toFixed(0)} kB`);
