// What pages and notebooks load is made here, of modules, and committed: who builds the book needs no Node.
//
//   node tools/bundle.mjs            writes it, and tells which files it has changed
//   node tools/bundle.mjs --check    only tells
//
// d2lmini/figures/built       of the modules of figures:
//   base.js                   what all figures share, as the global d2lminiBase: once a page
//   NAME.js                   a figure, as d2lminiFigure, over that global
//   runtime.js                the models' runtime, as d2lminiRuntime: a worker is made of its text
//   base.css                  the style of all figures, for a widget; diagram.css, that of diagrams
// tools/sphinx_ext/built      of those in tools/sphinx_ext/scripts, but for its parts/, which they share:
//   static/NAME.js            a file of the book
//   inline/NAME.js            the text of a script in a page
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

process.chdir(join(dirname(fileURLToPath(import.meta.url)), ".."));
const FIGURES = "d2lmini/figures",
  SHARED = join(FIGURES, "base", "index.js"),
  BOOK = "tools/sphinx_ext",
  BUILT = [join(FIGURES, "built"), join(BOOK, "built", "static"), join(BOOK, "built", "inline")];
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

async function made(entry, options = {}) {
  const { outputFiles } = await build({ ...settings, entryPoints: [entry], ...options });
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

const names = (folder) => readdirSync(folder).filter((name) => /\.(js|css)$/.test(name));

// Modules that export a figure: `export default { render }`.
function figures(folder = FIGURES) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((one) => {
    const path = join(folder, one.name);
    if (one.isDirectory()) return one.name === "built" ? [] : figures(path);
    return one.name.endsWith(".js") && /^export default /m.test(readFileSync(path, "utf8")) ? [path] : [];
  });
}

async function all() {
  const [figuresBuilt, served, inline] = BUILT,
    css = await made(join(FIGURES, "base", "style.css")),
    base = { globalName: "d2lminiBase", plugins: [styleAsText(css)] },
    runtime = { globalName: "d2lminiRuntime" },
    figure = { globalName: "d2lminiFigure", plugins: [sharedInThePage] };
  const found = {
    [join(figuresBuilt, "base.css")]: css,
    [join(figuresBuilt, "diagram.css")]: await made(join(FIGURES, "diagrams", "diagram.css")),
    [join(figuresBuilt, "base.js")]: await made(SHARED, base),
    [join(figuresBuilt, "runtime.js")]: await made(join(FIGURES, "live", "worker.js"), runtime),
  };
  for (const path of figures()) found[join(figuresBuilt, basename(path))] = await made(path, figure);
  for (const [from, to] of Object.entries({ scripts: served, "scripts/inline": inline }))
    for (const name of names(join(BOOK, from))) found[join(to, name)] = await made(join(BOOK, from, name));
  return found;
}

for (const folder of BUILT) mkdirSync(folder, { recursive: true });
const wanted = await all(),
  there = BUILT.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
const wrong = Object.keys(wanted).filter((path) => {
  return !there.includes(path) || readFileSync(path, "utf8") !== wanted[path];
});
const left = there.filter((path) => !(path in wanted));
for (const path of [...wrong, ...left]) console.log(path);
if (!process.argv.includes("--check")) {
  for (const path of wrong) writeFileSync(path, wanted[path]);
  for (const path of left) rmSync(path);
}
