// Where the browser denies storage: one in memory for the theme's scripts, none for ours.
import { OURS } from "../parts/storage.js";

try {
  localStorage.length;
} catch (denied) {
  const kept = new Map();
  const theirs = (/** @type {string} */ name) => {
    if (name.startsWith(OURS)) throw denied;
    return name;
  };
  Object.defineProperty(window, "localStorage", {
    value: {
      getItem: (/** @type {string} */ name) => kept.get(theirs(name)) ?? null,
      setItem: (/** @type {string} */ name, /** @type {unknown} */ value) => kept.set(theirs(name), value),
      removeItem: (/** @type {string} */ name) => kept.delete(theirs(name)),
    },
  });
}
