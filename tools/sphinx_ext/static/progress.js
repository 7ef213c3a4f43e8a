// What a reader did, kept in the browser: one JSON text of the form that `python -m d2lmini progress` reads and writes
// (d2lmini/exercises/reader/progress.py, exchange.py). Where the browser keeps nothing it lasts as long as the page.
window.bookProgress = (() => {
  const NAME = "d2lmini:progress",
    NEW = { tries: 0, passed: false, last: "", review: "", ticked: false, chosen: "" };
  const listeners = [];
  let parts = {},
    keeps = true;

  // Returns: what was done, from key to entry. Throws: the text is none of ours.
  function parse(text) {
    const found = JSON.parse(text).parts;
    if (typeof found !== "object" || found === null || Array.isArray(found)) throw new Error("no parts");
    for (const entry of Object.values(found))
      for (const [name, empty] of Object.entries(NEW)) {
        const value = entry[name] ?? empty;
        if (typeof value !== typeof empty || value < 0) throw new Error(`not as it should be: ${name}`);
      }
    return found;
  }
  const write = (indent) => JSON.stringify({ version: 1, parts }, null, indent);

  function load() {
    let text = null;
    try {
      text = localStorage.getItem(NAME);
    } catch {
      keeps = false;
    }
    if (!keeps) return;
    try {
      parts = text === null ? {} : parse(text);
    } catch {
      parts = {};
    }
  }
  function save() {
    try {
      localStorage.setItem(NAME, write());
    } catch {
      keeps = false;
    }
    for (const listener of listeners) listener();
  }

  // What a reader predicted in the chapters, which folds.js keeps. Returns: list of the names it is kept by.
  function predictions() {
    try {
      return Object.keys(localStorage).filter((name) => name.startsWith("d2lmini:predict-"));
    } catch {
      return [];
    }
  }

  // Of two entries what was done in either, as `merged` of progress.py has it.
  function merged(mine, other) {
    const one = { ...NEW, ...mine },
      two = { ...NEW, ...other };
    return {
      ...two,
      ...one,
      tries: Math.max(one.tries, two.tries),
      passed: one.passed || two.passed,
      last: one.tries >= two.tries ? one.last : two.last,
      review: one.review || two.review,
      ticked: one.ticked || two.ticked,
      chosen: one.chosen.length >= two.chosen.length ? one.chosen : two.chosen,
    };
  }

  load();
  addEventListener("storage", (event) => {
    if (event.key !== NAME && event.key !== null) return;
    load(); // another page of the book wrote it
    for (const listener of listeners) listener();
  });
  return {
    keeps: () => keeps,
    of: (key) => ({ ...NEW, ...parts[key] }),
    all: () => Object.keys(parts).map((key) => ({ ...NEW, ...parts[key] })),
    predictions,
    begun: () => Object.keys(parts).length,
    change(key, values) {
      load(); // what another page wrote meanwhile
      parts[key] = { ...NEW, ...parts[key], ...values };
      save();
    },
    forget(key) {
      load();
      if (key === undefined) {
        parts = {};
        for (const name of predictions()) localStorage.removeItem(name);
      } else delete parts[key];
      save();
    },
    text: () => `${write(1)}\n`,
    read(text) {
      const found = parse(text);
      load();
      for (const [key, entry] of Object.entries(found)) parts[key] = merged(parts[key], entry);
      save();
      return Object.keys(found).length;
    },
    listen(listener) {
      listeners.push(listener);
      listener();
    },
  };
})();
