// The weights of the real model: where they come from, how far they are, and what went wrong.
import { add, button, place, tick } from "../base/index.js";
import { LIVE } from "../page/host.js";
import { announcer } from "../page/model_box.js";
import { pieceStore, piecesOfFiles, piecesOfHost } from "../page/piece_sources.js";
import { realModelPieces } from "./bring.js";
import { megabytes } from "./text.js";

export const REAL_MODEL = "smollm2";

// `told` is {title, bytes, memory, missing}, `missing` why this book has none, or "". `ready()` is called each time the
// model has come. Returns {lost}: `lost(why)` offers to load it again.
export function realModelLoad(parent, told, ready) {
  const root = document.documentElement.dataset.content_root,
    folder = new URL(`${root}_static/real_model/`, location.href),
    local = location.protocol === "file:",
    host = local ? null : piecesOfHost(folder.href), // from file:// a page may fetch nothing
    store = pieceStore(),
    model = realModelPieces(REAL_MODEL, store);
  let stopping = /** @type {AbortController | null} */ (null), // while it loads
    keeps = true;

  const line = add(parent, "div", { class: "d2lmini-controls", style: "gap: 8px 16px; margin-bottom: 4px" });
  const press = () => (stopping ? stopping.abort() : load(() => host)),
    loading = button(line, `Load ${megabytes(told.bytes)}`, press);
  const about = add(line, "span");
  const bar = add(parent, "progress", {
    max: told.bytes,
    value: 0,
    "aria-label": "loaded",
    style: "width: 100%; height: 10px; display: none; accent-color: var(--blue)",
  });
  const say = announcer(parent);
  const more = add(parent, "details", local ? { open: "" } : {});
  const summary = add(more, "summary", { style: "min-height: 24px" });
  const keeping = tick(more, { label: "keep what is loaded in this browser", value: keeps }, (value) => {
    keeps = value;
  });
  const keepingLine = /** @type {HTMLElement} */ (keeping.parentElement);
  const forget = button(more, "Forget what is kept", forgetAll, { style: "display: none; margin: 4px 0" });
  const { picking, picked } = filePicker(more, told.pieces, folder, local, (files) => {
    if (files.length && !stopping) load((pieces) => piecesOfFiles(files, pieces));
  });
  offer();
  if (told.missing) {
    say(told.missing);
    for (const node of [line, more]) node.style.display = "none";
  } else if (LIVE.has(REAL_MODEL)) come("");
  else lookInStore();

  // What there is to press and to pick, before the model is here.
  function offer() {
    for (const node of [loading, picking, keepingLine, more]) node.style.display = "";
    summary.textContent = local ? "Load from files" : "Load from files, or keep the model in this browser";
    about.textContent = `${told.title}. It uses ${megabytes(told.memory)} of memory.`;
  }

  // What the browser has kept is offered.
  async function lookInStore() {
    const count = await store.count().catch(() => 0);
    forget.style.display = count ? "" : "none";
    if (stopping || LIVE.has(REAL_MODEL)) return;
    const whole = count >= told.pieces;
    loading.style.display = local && !whole ? "none" : "";
    loading.textContent = `Load ${megabytes(told.bytes)}${whole ? " from this browser" : ""}`;
    if (count && !whole) about.textContent += ` ${count} of its ${told.pieces} pieces are kept in this browser.`;
  }

  async function forgetAll() {
    const why = await store.forget().then(
      () => "The model's files are deleted from this browser.",
      (error) => `This browser's store could not be emptied: ${error.message}.`,
    );
    await lookInStore();
    say(why);
    (forget.style.display ? picked : forget).focus();
  }

  function show(bytes) {
    if (!parent.isConnected) stopping?.abort(); // the figure was reset
    bar.value = bytes;
    place(bar, { "aria-valuetext": `${megabytes(bytes)} of ${megabytes(told.bytes)}` });
    about.textContent = `${megabytes(bytes)} of ${megabytes(told.bytes)}`;
  }

  // `sourceOf(pieces)`: where they come from that the store has not got.
  async function load(sourceOf) {
    stopping = new AbortController();
    const { signal } = stopping;
    loading.textContent = "Stop";
    loading.style.display = bar.style.display = "";
    place(picked, { disabled: "" });
    say("Loading …");
    let why = "";
    try {
      why = await model.bring(sourceOf, {
        keep: () => keeps,
        signal,
        told: show,
        anew: () => {
          bar.value = 0;
        },
        last: () => {
          about.textContent = "one moment …";
        },
      });
    } catch (error) {
      failed(error, signal.aborted);
    }
    stopping = null;
    picked.removeAttribute("disabled");
    await lookInStore();
    if (why) come(why);
  }

  function failed(error, stopped) {
    const there =
      model.begun() && bar.value
        ? ` ${megabytes(bar.value)} of ${megabytes(told.bytes)} are here; the next attempt loads the rest.`
        : "";
    if (error.memory) {
      model.forget();
      bar.style.display = "none";
      say("This machine has too little memory for the model. Close other pages, or read the recorded answers below.");
    } else say(`${stopped ? "Stopped." : `The model is not loaded: ${error.message}.`}${there}`);
    offer();
  }

  function come(why) {
    model.forget();
    loading.textContent = "";
    loading.style.display = bar.style.display = "none";
    picking.style.display = keepingLine.style.display = "none";
    more.open = false;
    more.style.display = forget.style.display;
    summary.textContent = "Kept in this browser";
    about.textContent = `${told.title} is ready. ${why}`;
    say("");
    ready();
  }

  return {
    lost(why) {
      offer();
      say(`${why} Your texts are still here; load the model again to go on.`);
      lookInStore();
    },
  };
}

// Where files are picked, `took(files)`. Returns the line and its field.
function filePicker(parent, count, folder, local, took) {
  const picking = add(parent, "label", { style: "display: block; margin: 4px 0" });
  const path = local ? decodeURIComponent(folder.pathname) : folder.href;
  add(
    picking,
    "span",
    { style: "display: block" },
    (local ? "This page is open from a file, so it can read only what you pick. " : "") +
      `Choose all ${count} files smollm2_….bin at once. They are in ${path}`,
  );
  const style = "min-height: 28px; max-width: 100%",
    picked = add(picking, "input", { type: "file", multiple: "", accept: ".bin", style });
  picked.addEventListener("change", () => {
    const files = [...(picked.files ?? [])];
    picked.value = ""; // the same files may be picked again
    took(files);
  });
  return { picking, picked };
}
