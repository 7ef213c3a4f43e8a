// Words in an attribute, and numbers in a sentence.

export const words = (/** @type {string | undefined} */ text) => (text ?? "").split(" ").filter(Boolean);

/**
 * @param {number} many
 * @param {string} one
 */
export const number = (many, one) => `${many} ${one}${many === 1 ? "" : "s"}`;
