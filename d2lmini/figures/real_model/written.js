// A text that the real model has written on, and what is known at its places.

/**
 * @typedef {{ name: string, special?: boolean | null, text?: string }} Token
 * @typedef {{ ids: number[], pieces: string[], p: number[], drawn: number[] }} Next
 * @typedef {{ at: number, token: number, text: string, written?: boolean, next: Next | null,
 *   looks?: ArrayLike<number>[] }} Step  what the model tells of a place: live/real_tasks.js
 */

export function writtenText() {
  let whole = { input: "", answer: "" }; // the last answer with all heads on
  const text = {
    ids: /** @type {number[]} */ ([]),
    tokens: /** @type {Token[]} */ ([]),
    given: 0, // so many of them are the prompt
    steps: /** @type {(Step | undefined)[]} */ ([]), // what is known at places: what comes next, how a head looks
    at: /** @type {number | null} */ (null), // the chosen place; null: the newest
    // A prompt that was read.
    begin({ ids, pieces, special }) {
      const tokens = pieces.map((name, i) => ({ name, special: special[i] }));
      Object.assign(text, { ids, tokens, given: ids.length, steps: [] });
    },
    speed: { tokens: 0, began: 0, milliseconds: 0 },
    clear() {
      Object.assign(text, { ids: [], tokens: [], given: 0 });
    },
    // The chosen place. The newest is the one before the token that ended the answer: after it the bars show why.
    chosen() {
      const ended = text.ids.length > text.given && text.tokens.at(-1)?.special,
        newest = text.ids.length - (ended ? 2 : 1);
      return Math.max(0, Math.min(text.at ?? newest, text.ids.length - 1));
    },
    // What the model has written.
    answer: () =>
      text.tokens
        .slice(text.given)
        .filter(({ special }) => !special)
        .map(({ name, text: own = name }) => own)
        .join(""),
    // Keeps the answer to an input, to tell it beside others.
    remember(/** @type {object} */ input) {
      whole = { input: JSON.stringify(input), answer: text.answer() };
    },
    remembered: (/** @type {object} */ input) =>
      whole.input === JSON.stringify(input) ? `With all heads and blocks on: ${whole.answer}` : "",
    // A step of writing, with a token more where it was written.
    take(/** @type {Step} */ step) {
      text.steps[step.at] = step;
      if (!step.written) return;
      const { speed } = text,
        time = performance.now();
      if (!speed.tokens++) speed.began = time;
      speed.milliseconds = time - speed.began;
      text.ids[step.at] = step.token;
      const before = text.steps[step.at - 1]?.next; // of a stop token, and within a character, the text is empty
      const name = step.text || before?.pieces[before.ids.indexOf(step.token)] || (step.next ? "" : "<|end|>");
      text.tokens[step.at] = { name, text: step.text, special: step.next === null };
    },
    // How fast it was written from the last `start()` on.
    start() {
      text.speed = { tokens: 0, began: 0, milliseconds: 0 };
    },
    perSecond({ tokens, milliseconds } = text.speed) {
      return tokens > 1 ? `, ${((1000 * (tokens - 1)) / milliseconds).toFixed(0)} per second` : "";
    },
    // What comes next at a place that was asked about anew.
    know(/** @type {Step} */ step) {
      const before = text.steps[step.at];
      text.steps[step.at] = { ...before, ...step, looks: before?.looks ?? [] };
    },
    // Another token after the chosen place. Returns the place.
    goOn(/** @type {number} */ id, /** @type {string} */ name) {
      const i = text.chosen();
      text.ids = [...text.ids.slice(0, i + 1), id];
      text.tokens = [...text.tokens.slice(0, i + 1), { name, special: false }];
      text.steps = text.steps.slice(0, i + 1);
      text.given = Math.min(text.given, i + 1);
      return i;
    },
  };
  return text;
}
