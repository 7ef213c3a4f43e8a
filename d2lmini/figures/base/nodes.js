// New elements, and their attributes.
const SVG = "http://www.w3.org/2000/svg";

/**
 * A new element, the last one in `parent`.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Element} parent
 * @param {Tag} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {unknown} [text]
 */
export function add(parent, tag, attributes = {}, text = undefined) {
  return put(parent, document.createElement(tag), attributes, text);
}

/**
 * A new element of SVG, the last one in `parent`.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Element} parent
 * @param {Tag} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {unknown} [text]
 */
export function draw(parent, tag, attributes = {}, text = undefined) {
  return put(parent, document.createElementNS(SVG, tag), attributes, text);
}

/**
 * @template {Element} Node
 * @param {Element} parent
 * @param {Node} node
 * @param {Record<string, unknown>} attributes
 * @param {unknown} text
 */
function put(parent, node, attributes, text) {
  place(node, attributes);
  if (text !== undefined) node.textContent = String(text);
  parent.append(node);
  return node;
}

/**
 * Sets attributes.
 * @param {Element} node
 * @param {Record<string, unknown>} attributes
 */
export function place(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
}
