// What a page holds when a script comes to it.

/**
 * All elements of a kind that a selector finds.
 * @template {Element} [Kind=HTMLElement]
 * @param {ParentNode} parent
 * @param {string} selector
 * @param {new () => Kind} [kind]
 */
export function all(parent, selector, kind = /** @type {any} */ (HTMLElement)) {
  return [...parent.querySelectorAll(selector)].filter(/** @returns {node is Kind} */ (node) => node instanceof kind);
}

/**
 * The first of them, where there is one.
 * @template {Element} [Kind=HTMLElement]
 * @param {ParentNode} parent
 * @param {string} selector
 * @param {new () => Kind} [kind]
 */
export function one(parent, selector, kind) {
  return all(parent, selector, kind)[0];
}
