// What a reader does on the pages of the book, and what the page then says: the same script for every browser.
const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const all = (selector) => [...document.querySelectorAll(selector)];
const seen = (node) => node.checkVisibility();
const shown = (selector) => all(selector).filter(seen).length;
const named = (selector, text) => all(selector).find((node) => seen(node) && node.textContent.includes(text));

// What `test` gives once that is true; a turn is 50 ms.
async function until(test, what, turns = 300) {
  for (let i = 0; i < turns; i++) {
    const found = test();
    if (found) return found;
    await wait(50);
  }
  throw new Error(`waited in vain for ${what}`);
}

const VISITS = {
  // figures of a page, alive; formulas set; nothing wider than the screen
  async alive() {
    await until(() => shown("[data-state]") === all("[data-state][data-ready=yes]").filter(seen).length, "figures");
    if (window.MathJax) await window.MathJax.startup.promise;
    return {
      figures: all("[data-ready=yes]").map(({ localName }) => localName),
      wide: document.documentElement.scrollWidth > innerWidth,
    };
  },

  async folds() {
    await until(() => document.documentElement.dataset.folds === "ready", "the script of the folds");
    const open = () => all("article details.fold").map((node) => node.open);
    const counts = [open()];
    document.querySelector("article details.fold > summary").click();
    counts.push(open());
    const switching = document.querySelector("[role=switch]");
    switching.click();
    counts.push(open());
    switching.click();
    dispatchEvent(new Event("beforeprint"));
    await wait(50);
    counts.push(open());
    dispatchEvent(new Event("afterprint"));
    await wait(50);
    counts.push(open());
    return counts;
  },

  async prediction() {
    await until(() => document.documentElement.dataset.folds === "ready", "the script of the folds");
    const place = document.querySelector(".predict-place"),
      before = shown(".predict-answer");
    place.querySelector("input[type=radio]").click();
    named(".predict-place button", "Commit").click();
    const said = await until(() => place.querySelector("[role=status]").textContent.trim(), "what was predicted");
    return { before, said, after: shown(".predict-answer") };
  },

  async choice() {
    const box = document.querySelector(".choice[data-part]");
    box.querySelector(".option input").click();
    [...box.querySelectorAll("button")].find(({ textContent }) => textContent === "Check my choice").click();
    return (await until(() => box.querySelector("[role=status]").textContent.trim(), "the verdict")).split("\n")[0];
  },

  // after `choice`, in the same browser
  async progress() {
    await wait(300);
    return all(".progress-table tbody tr").map(({ textContent }) => textContent.replace(/\s+/g, " ").trim());
  },

  async search(words) {
    const field = document.querySelector("main input[name=q]");
    field.value = words;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await until(() => shown(".book-search a") > 2, "what was found");
    return all(".book-search a").map((node) => node.getAttribute("href"));
  },

  async chooser(keys) {
    for (const key of keys) document.querySelector(`.set-table input[value="${key}"]`).click();
    return (await until(() => seen(all(".set-chosen pre")[0]) && all(".set-chosen pre")[0], "the command")).textContent;
  },

  // the real language model: loaded, and so many tokens written, always the likeliest one
  async write({ prompt, count }) {
    const set = (node, value) => {
      node.value = String(value);
      node.dispatchEvent(new Event("input", { bubbles: true }));
    };
    (await until(() => named("button", "Load "), "the button")).click();
    const field = await until(() => document.querySelector("textarea"), "the model", 2400);
    set(document.querySelector("input[aria-label='length limit']"), count);
    set(field, prompt);
    named("button", "Write").click();
    await wait(100);
    await until(() => named("button", "Write"), "the answer", 1200);
    return all("[role=option]").map(({ textContent }) => textContent);
  },

  async dark() {
    const ground = () => getComputedStyle(document.body).backgroundColor,
      before = ground();
    document.documentElement.dataset.theme = "dark";
    await wait(100);
    const [figure] = all(".d2lmini-figure");
    return [before, ground(), getComputedStyle(figure).getPropertyValue("--blue").trim()];
  },
};

globalThis.visit = async (name, given) => [await VISITS[name](given), globalThis.wrong];
