// What pages and notebooks load is made here, of the modules in d2lmini/figures: figures/built, which is committed.
//
//   node tools/bundle.mjs            writes it, and tells which files it has changed
//   node tools/bundle.mjs --check    only tells
//
// base.js      what all figures share, as the global d2lminiBase: once a page
// NAME.js      a figure, as d2lminiFigure, over that global
// runtime.js   the models' runtime, as d2lminiRuntime: a worker is made of its text
// base.css     the style of all figures, for a widget; diagram.css, that of diagrams
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const FIGURES = join(dirname(fileURLToPath(import.meta.url)), "..", "d2lmini", "figures"),
  BUILT = join(FIGURES, "built"),
  SHARED = join(FIGURES, "base", "index.js");
const settings = {
  bundle: true,
  charset: "utf8",
  format: "iife",
  legalComments: "none",
  minify: true,
  target: "es2022",
  tsconfig: fileURLToPath(new URL("jsconfig.json", import.meta.url)), // its "strict" goes into what is made
  write: false,
};

async function style(...path) {
  const { outputFiles } = await build({ ...settings, entryPoints: [join(FIGURES, ...path)] });
  return outputFiles[0].text;
}

const styleAsText = (text) => ({
  name: "style as text",
  setup: (of) => of.onLoad({ filter: /style\.css$/ }, () => ({ contents: text, loader: "text" })),
});

// a figure's own script finds what is shared in the page
const sharedInThePage = {
  name: "shared in the page",
  setup(of) {
    of.onResolve({ filter: /\/base\/\w+\.js$/ }, () => ({ path: SHARED, namespace: "page" }));
    of.onLoad({ filter: /./, namespace: "page" }, () => ({ contents: "module.exports = d2lminiBase;" }));
  },
};

async function script(entry, globalName, plugins = []) {
  const { outputFiles } = await build({ ...settings, entryPoints: [entry], globalName, plugins });
  return outputFiles[0].text;
}

// Modules that export a figure: `export default { render }`.
function figures(folder = FIGURES) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((one) => {
    const path = join(folder, one.name);
    if (one.isDirectory()) return one.name === "built" ? [] : figures(path);
    return one.name.endsWith(".js") && /^export default /m.test(readFileSync(path, "utf8")) ? [path] : [];
  });
}

const css = await style("base", "style.css");
const made = {
  "base.css": css,
  "diagram.css": await style("diagrams", "diagram.css"),
  "base.js": await script(SHARED, "d2lminiBase", [styleAsText(css)]),
  "runtime.js": await script(join(FIGURES, "live", "worker.js"), "d2lminiRuntime"),
};
for (const path of figures()) made[basename(path)] = await script(path, "d2lminiFigure", [sharedInThePage]);

const there = existsSync(BUILT) ? readdirSync(BUILT) : [];
const wrong = Object.keys(made).filter((name) => {
  return !there.includes(name) || readFileSync(join(BUILT, name), "utf8") !== made[name];
});
const left = there.filter((name) => !(name in made));
for (const name of [...wrong, ...left]) console.log(`d2lmini/figures/built/${name}`);
if (!process.argv.includes("--check")) {
  mkdirSync(BUILT, { recursive: true });
  for (const name of wrong) writeFileSync(join(BUILT, name), made[name]);
  for (const name of left) rmSync(join(BUILT, name));
}
