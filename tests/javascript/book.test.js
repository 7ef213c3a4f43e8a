// The scripts of the book apart from its pages: what is kept, searched, answered and chosen.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { answered, verdict } from "../../tools/sphinx_ext/scripts/parts/choice.js";
import { counted, lacking, read, written } from "../../tools/sphinx_ext/scripts/parts/problem_set.js";
import { isPassed, Progress, parsed } from "../../tools/sphinx_ext/scripts/parts/progress.js";
import { excerpt, Sections } from "../../tools/sphinx_ext/scripts/parts/sections.js";

// ---- progress
const NEW = { tries: 0, passed: false, last: "", review: "", ticked: false, chosen: "" };

// A browser's storage whose names are its own properties; `full`: it takes no more.
class Storage {
  getItem(name) {
    return this[name] ?? null;
  }
  setItem(name, text) {
    if (Object.hasOwn(this, "full")) throw new Error("full");
    this[name] = text;
  }
  removeItem(name) {
    delete this[name];
  }
}
beforeEach(() => {
  Object.defineProperty(globalThis, "localStorage", { value: new Storage(), configurable: true });
});

test("what was done is kept for the next page, and what that did is seen before a change", () => {
  const [one, two] = [new Progress(), new Progress()];
  one.change("a", { tries: 1, passed: true });
  two.change("b", { ticked: true });
  assert.deepEqual(new Progress().of("a"), { ...NEW, tries: 1, passed: true });
  assert.equal(two.count(isPassed), 1);
  assert.equal(two.count(isPassed, ["b", "c"]), 0);
  assert.equal(one.begun(), 1);
  one.renew();
  assert.equal(one.begun(), 2);
});

test("a listener hears of itself and of each change", () => {
  const progress = new Progress(),
    heard = /** @type {number[]} */ ([]);
  progress.listen(() => heard.push(progress.begun()));
  progress.change("a", { ticked: true });
  progress.read('{"parts": {"b": {"tries": 3}, "a": {"passed": true}}}');
  progress.forget("b");
  assert.deepEqual(heard, [0, 1, 2, 1]);
  assert.deepEqual(progress.of("a"), { ...NEW, ticked: true, passed: true });
});

test("where nothing is kept it lasts, and what is kept but damaged is nothing", () => {
  localStorage.setItem("d2lmini:progress", '{"parts": []}');
  const progress = new Progress();
  assert.equal(progress.begun(), 0);
  localStorage.setItem("full", "yes");
  progress.change("a", { ticked: true });
  progress.change("b", { ticked: true });
  assert.deepEqual([progress.keeps(), progress.begun()], [false, 2]);
  Object.defineProperty(globalThis, "localStorage", { get: () => assert.fail("denied"), configurable: true });
  assert.deepEqual([new Progress().keeps(), progress.predictions()], [false, []]);
});

test("a text of something else is refused", () => {
  for (const text of ["null", "{}", '{"parts": null}', '{"parts": {"a": {"tries": -1}}}', '{"parts": {"a": null}}'])
    assert.throws(() => parsed(text), text);
});

// ---- choices
test("an answer counts unless it repeats the last one or comes after the right one", () => {
  const first = { ...NEW, ...answered(NEW, "b", "a", "") };
  assert.deepEqual(first, { ...NEW, tries: 1, last: "wrong", chosen: "b" });
  assert.deepEqual(answered(first, "b", "a", ""), {});
  const second = { ...first, ...answered(first, "c", "a", "b") };
  assert.deepEqual(answered(second, "b", "a", "c"), { tries: 3, passed: false, last: "wrong", chosen: "bc" });
  const third = { ...second, ...answered(second, "a", "a", "c") };
  assert.deepEqual(third, { ...NEW, tries: 3, passed: true, last: "passed", chosen: "bca" });
  assert.deepEqual(answered(third, "b", "a", "a"), {});
  assert.equal(verdict(NEW, "a", ""), "");
  assert.equal(verdict(first, "a", ""), "b is wrong. The explanation is below b. Try another one.");
  assert.equal(verdict(third, "a", ""), "a is right. All explanations can be opened now.");
  assert.equal(verdict(third, "a", "b"), "b is wrong. All explanations can be opened now.");
});

// ---- problem sets
test("an address gives back what it was written of", () => {
  const settings = { had: ["01", "02"], kind: "code", source: "", graded: true, set: ["b", "a"] };
  assert.equal(written(settings), "had=01,02&kind=code&graded=yes&set=b,a");
  assert.deepEqual(read(written(settings)), settings);
  assert.equal(written({ had: [], kind: "", source: "", graded: false, set: [] }), "");
  assert.equal(read("a-heading"), null);
  assert.deepEqual(read("set=a,,b,a")?.set, ["a", "b"]);
});

test("what is said of chosen exercises and of missing chapters", () => {
  const one = { chapters: [], kinds: [], source: "own", graded: true, parts: ["code", "choice"], seconds: 20 };
  assert.equal(counted([]), "Chosen: 0 exercises.");
  assert.equal(counted([one]), "Chosen: 1 exercise with 2 parts (1 code, 1 choice); limits 20 s.");
  assert.equal(counted([one, one]), "Chosen: 2 exercises with 4 parts (2 code, 2 choice); limits 40 s.");
  const needs = (chapter) => ({ "03": ["01", "02"], "02": ["01"] })[chapter] ?? [];
  assert.deepEqual(lacking(["01", "03"], needs), ["Chapter 03 builds on 02: tick these for its exercises."]);
});

// ---- the search
const sections = new Sections({
  entries: [
    ["section", "A rope", "One", "one.html#rope", "It is tied properly. The naïve warm-up comes first."],
    ["section", "Other things", "One", "one.html#other", "A rope, a rope, and once more a rope."],
    ["term", "rope (R)", "Glossary", "one.html#rope", "What one ties."],
    ["name", "d2l.rope", "API", "api.html#rope", ""],
    ["number", "UDL figure 1.2: Ropes", "One", "one.html#f", ""],
    ["number", "UDL 1.2: Knots", "One", "one.html#k", ""],
    ["section", "Third", "One", "one.html#third", "Knots alone.", "1.2"],
  ],
  synonyms: { cord: ["rope"] },
});
const titles = (query) => sections.find(query).map(({ title }) => title);

test("what explains a thing goes before what says it often, and every word has to be there", () => {
  assert.deepEqual(titles("rope"), ["rope (R)", "UDL figure 1.2: Ropes", "A rope", "d2l.rope", "Other things"]);
  assert.deepEqual(titles("cord"), titles("rope"));
  assert.deepEqual(titles("warmup rope"), ["A rope"]);
  assert.deepEqual([titles("operly"), titles("rope zebra"), titles(" - ")], [[], [], []]);
});

test("a number is whole, of a book and of a sort", () => {
  assert.deepEqual(titles("1.2"), ["Third", "UDL 1.2: Knots", "UDL figure 1.2: Ropes"]);
  assert.deepEqual(titles("udl figure 1.2"), ["UDL figure 1.2: Ropes"]);
  assert.deepEqual(sections.numbered("D2L 1.2"), []);
  assert.deepEqual(sections.numbered("1.23"), []);
});

test("an excerpt marks each second piece, and letters with accents are found", () => {
  const [entry] = sections.find("naive");
  assert.deepEqual(excerpt(entry, ["naive", "warm up"]), [
    "It is tied properly. The ",
    "naïve",
    " ",
    "warm-up",
    " comes first.",
  ]);
  assert.deepEqual(
    excerpt({ ...entry, text: "one " + "two ".repeat(99), inText: "" }, ["zebra"])[0].slice(-5),
    "two …",
  );
});

test("an address has the words to mark", () => {
  const [entry] = sections.find("warm-up");
  assert.equal(sections.address(entry, "warm-up"), "one.html?highlight=warmup%20warm#rope");
  assert.equal(sections.address(sections.find("d2l.rope")[0], "rope"), "api.html#rope");
});
