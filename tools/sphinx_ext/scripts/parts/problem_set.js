// A problem set apart from its form: what fits a course, what is said of the chosen ones, and both in an address.
import { number } from "./text.js";

/**
 * @typedef {{ chapters: string[], kinds: string[], source: string, graded: boolean, parts: string[], seconds: number }}
 * Exercise  with the chapters that it needs, the kinds it is found by, and the kind of each of its parts
 * @typedef {{ had: string[], kind: string, source: string, graded: boolean }} Wanted  empty: whatever it is
 */

export function fits(/** @type {Exercise} */ { chapters, kinds, source, graded }, /** @type {Wanted} */ wanted) {
  return (
    (!wanted.had.length || chapters.every((chapter) => wanted.had.includes(chapter))) &&
    (!wanted.kind || kinds.includes(wanted.kind)) &&
    (!wanted.source || source === wanted.source) &&
    (graded || !wanted.graded)
  );
}

/**
 * Of chapters that build on others which the course has not had: a sentence each.
 * @param {string[]} had
 * @param {(chapter: string) => string[]} needs
 */
export function lacking(had, needs) {
  return had.flatMap((chapter) => {
    const missing = needs(chapter).filter((one) => !had.includes(one));
    return missing.length ? [`Chapter ${chapter} builds on ${missing.join(", ")}: tick these for its exercises.`] : [];
  });
}

// "Chosen: 2 exercises with 3 parts (2 code, 1 choice); limits 20 s."
export function counted(/** @type {Exercise[]} */ chosen) {
  if (!chosen.length) return "Chosen: 0 exercises.";
  const kinds = chosen.flatMap(({ parts }) => parts),
    each = [...new Set(kinds)].map((one) => `${kinds.filter((other) => other === one).length} ${one}`),
    seconds = chosen.reduce((sum, exercise) => sum + exercise.seconds, 0);
  const parts = `${number(kinds.length, "part")} (${each.join(", ")})`;
  return `Chosen: ${number(chosen.length, "exercise")} with ${parts}; limits ${seconds} s.`;
}

// What stands behind the # of an address, without what is not set.
export function written(/** @type {Wanted & { set: string[] }} */ { had, kind, source, graded, set }) {
  const given = Object.entries({ had, kind, source, graded: graded ? "yes" : "", set });
  return given.flatMap(([name, value]) => (value.length ? [`${name}=${value}`] : [])).join("&");
}

// Returns: the settings, null if the text holds none.
export function read(/** @type {string} */ text) {
  const given = new URLSearchParams(text),
    one = (/** @type {string} */ name) => given.get(name) ?? "",
    several = (/** @type {string} */ name) => [...new Set(one(name).split(",").filter(Boolean))];
  if (!["had", "kind", "source", "graded", "set"].some((name) => given.has(name))) return null;
  const wanted = { had: several("had"), kind: one("kind"), source: one("source"), graded: one("graded") === "yes" };
  return { ...wanted, set: several("set") };
}
