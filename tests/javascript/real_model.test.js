// What is said of a real model's tokens, and a text that it has written on.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as said from "../../d2lmini/figures/real_model/text.js";
import { writtenText } from "../../d2lmini/figures/real_model/written.js";

test("tokens of white space have names, and long ones are cut", () => {
  const pieces = ["\n", "\n   ", " a", "  ", `\n${" ".repeat(7)}`, "", "a".repeat(20), "\t x"];
  const names = ["↵", "↵␣␣␣", "␣a", "␣␣", "↵␣×7", "·", `${"a".repeat(13)}…`, "⇥ x"];
  assert.deepEqual(
    pieces.map((piece) => said.tokenName(piece)),
    names,
  );
  assert.equal(said.tokenName("a".repeat(20), 24).length, 20);
  assert.deepEqual(said.namesBefore([" a", "b"]), ["“␣a”", "“b” (itself)"]);
});

test("what is wrong is told in sentences", () => {
  for (const text of ["", " \n "]) assert.match(said.realModelUnread(text), /^The text is empty/);
  assert.equal(said.realModelUnread("a".repeat(40_000)), "");
  assert.match(said.realModelUnread("a".repeat(40_001)), /^The text has 40,001 characters/);
  assert.equal(said.realModelSentence("the text is too long: 9 tokens"), "The text is too long: 9 tokens.");
  assert.equal(said.realModelSentence("It broke."), "It broke.");
});

test("what is off, and why the model has stopped", () => {
  const off = [
    { block: 0, head: 2 },
    { block: 4, head: null },
  ];
  assert.equal(said.offNames(off, ", "), ", with head 1.3, block 5 off");
  assert.equal(said.offNames([], ", "), "");
  assert.match(said.endText("stop", 1), /^The model ended its answer/);
  assert.match(said.endText("count", 40), /limit of 40 tokens/);
  assert.deepEqual([said.endText("count", 1), said.endText("none", 9)], ["", ""]);
  assert.equal(said.headName({ block: 1, head: 0 }), "Block 2, head 1");
  assert.equal(said.megabytes(98_765_432), "99 MB");
});

test("a loss is told with its probability", () => {
  const next = { pieces: [" cat", "\n"], p: [0.5, 0.25] };
  const expected = "Likeliest tokens there: “␣cat” 0.50, “↵” 0.25.";
  assert.equal(
    said.lossText({ piece: " a", nats: Math.log(4), next }),
    `“␣a”: 1.39 nats, probability 0.250. ${expected}`,
  );
  assert.equal(said.lossText({ piece: " a", nats: 9, next }), `“␣a”: 9.00 nats, probability below 0.001. ${expected}`);
  assert.equal(said.lossText({ piece: "a", nats: null, next }), "“a”: the first token has no loss.");
});

const NEXT = { ids: [7, 8], pieces: [" x", " y"], p: [0.6, 0.4], drawn: [1, 0] };

function begun() {
  const text = writtenText();
  text.begin({ ids: [1, 2], pieces: ["<|im_start|>", "Hi"], special: [true, false] });
  text.take({ at: 1, token: 2, text: "", next: NEXT });
  return text;
}

test("a text grows by what is written, and its newest place is where the answer ended", () => {
  const text = begun();
  assert.deepEqual([text.chosen(), text.answer()], [1, ""]);
  text.take({ at: 2, token: 7, text: " x", written: true, next: NEXT });
  text.take({ at: 3, token: 8, text: "", written: true, next: NEXT }); // a part of a character has no text yet
  assert.deepEqual([text.ids, text.tokens[3].name, text.answer()], [[1, 2, 7, 8], " y", " x"]);
  text.take({ at: 4, token: 9, text: "", written: true, next: null });
  assert.deepEqual([text.tokens[4], text.chosen()], [{ name: "<|end|>", text: "", special: true }, 3]);
  text.at = 99;
  assert.equal(text.chosen(), 4);
});

test("another token cuts what follows, and the prompt where it stands in it", () => {
  const text = begun();
  text.take({ at: 2, token: 7, text: " x", written: true, next: NEXT });
  text.at = 1;
  assert.equal(text.goOn(8, " y"), 1);
  assert.deepEqual([text.ids, text.given, text.steps.length, text.answer()], [[1, 2, 8], 2, 2, " y"]);
  text.at = 0;
  text.goOn(5, "z");
  assert.deepEqual([text.ids, text.given], [[1, 5], 1]);
  text.clear();
  assert.deepEqual([text.ids, text.given, text.chosen()], [[], 0, 0]);
});

test("what is known anew of a place keeps how heads look there", () => {
  const text = begun(),
    looks = [[0.5, 0.5]];
  text.know({ at: 1, token: 2, text: "", next: null });
  assert.deepEqual(text.steps[1].looks, []);
  text.take({ at: 1, token: 2, text: "", next: NEXT, looks });
  text.know({ at: 1, token: 2, text: "", next: null });
  assert.deepEqual([text.steps[1].looks, text.steps[1].next], [looks, null]);
});

test("an answer is remembered with its input, and its speed told", () => {
  const text = begun();
  text.take({ at: 2, token: 7, text: " x", written: true, next: NEXT });
  text.remember({ text: "why?" });
  assert.equal(text.remembered({ text: "why?" }), "With all heads and blocks on:  x");
  assert.equal(text.remembered({ text: "who?" }), "");
  assert.equal(text.perSecond(), ""); // one token has no speed
  assert.equal(text.perSecond({ tokens: 11, milliseconds: 500 }), ", 20 per second");
});
