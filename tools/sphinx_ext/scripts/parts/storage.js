// What the browser keeps for the book. Where it denies that, what a page knows lasts until it is left.
export const OURS = "d2lmini:"; // each of our names begins so

// Returns: what is kept; null: nothing; undefined: the browser keeps nothing at all.
export function recall(/** @type {string} */ name) {
  try {
    return localStorage.getItem(OURS + name);
  } catch {
    return undefined;
  }
}

// Returns: bool, whether the browser does it. `text`: "" is not to be kept.
export function keep(/** @type {string} */ name, /** @type {string} */ text) {
  try {
    if (text) localStorage.setItem(OURS + name, text);
    else localStorage.removeItem(OURS + name);
    return true;
  } catch {
    return false;
  }
}

// The names that begin so, under which something is kept.
export function kept(/** @type {string} */ beginning) {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(OURS + beginning));
    return names.map((name) => name.slice(OURS.length));
  } catch {
    return [];
  }
}
