// Words in an attribute, and numbers in a sentence.

export const words = (/** @type {string | undefined} */ text) => (text ?? "").split(" ").filter(Boolean);
export const number = (/** @type {number} */ many, /** @type {string} */ one) =>
  `${many} ${one}${many === 1 ? "" : "s"}`;
