// Tries what a reader can set in a figure, the same way in every browser, and writes down what it then says.
const BUSY = ".d2lmini-load [aria-disabled=true], [aria-busy=true]";
const idle = () =>
  document.querySelector(BUSY) === null &&
  ![...document.querySelectorAll(".d2lmini-figure button")].some(({ textContent }) => textContent === "Pause");
const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// Until nothing is loaded or computed, observers had their turn, and nothing has changed for so many milliseconds.
async function settled(quiet) {
  for (let before = null; ; ) {
    await frames();
    while (!idle()) await wait(20);
    await frames();
    const now = quiet ? document.body.textContent : before;
    if (now === before) return;
    before = now;
    await wait(quiet);
  }
}

// What a figure says: its texts in order, and what its controls are set to.
function said(frame) {
  const texts = [],
    walker = document.createTreeWalker(frame, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) texts.push(walker.currentNode.data.trim());
  const set = [...frame.querySelectorAll("input, select, textarea")].map(({ value }) => value);
  return [...texts.filter(Boolean), ...set];
}

const changed = (node) => node.dispatchEvent(new Event("input", { bubbles: true }));
const TRIED = {
  "input[type=range]"(node) {
    const [low, high] = [Number(node.min), Number(node.max)];
    node.value = String(low + 0.3 * (high - low));
    changed(node);
  },
  select(node) {
    if (node.options.length < 2) return;
    node.selectedIndex = 1;
    changed(node);
  },
  "input[type=checkbox]": (node) => node.click(),
  ".d2lmini-controls button": (node) => node.textContent !== "Train" && node.click(), // that has no end
  ".d2lmini-maps button, .d2lmini-tokens button, tbody th button"(node) {
    node.focus();
    if (!document.hasFocus()) node.dispatchEvent(new FocusEvent("focus")); // no window has it: Firefox without a screen
  },
};

// What each figure of a page says at first, and after each of at most `most` controls of a kind was tried;
// `quiet`: milliseconds of which nothing changes once a model has answered.
async function drive({ most = 4, quiet = 0 }) {
  const told = {};
  for (const element of document.querySelectorAll("[data-ready]")) {
    const steps = [],
      note = (what) => steps.push([what, said(element)]);
    for (const node of element.querySelectorAll(".d2lmini-load button")) {
      node.click();
      await settled(quiet);
    }
    await settled(quiet);
    note("at first");
    for (const [kind, act] of Object.entries(TRIED))
      for (const node of [...element.querySelectorAll(kind)].slice(0, most)) {
        if (!node.isConnected || node.closest(".d2lmini-load")) continue;
        act(node);
        await settled(quiet);
        note(`${kind} ${node.getAttribute("aria-label") ?? node.textContent}`);
      }
    told[element.localName] = steps;
  }
  return told;
}

globalThis.drive = drive;
