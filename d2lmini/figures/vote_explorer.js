// Samples of one question vote: a square for each, in the row of its answer.
import { add, button, choice, keep, keepAll, place, scroller, stepper } from "./base/index.js";
import { count, rightSteps } from "./numbers/vote_explorer.js";

/**
 * @typedef {{ summands: number[], right: number, samples: import("./numbers/vote_explorer.js").Sample[], wrong: number[],
 *   shares: number[] }} Question
 * @typedef {{ questions: Question[], sizes: number[], shares: number[], question: number, votes: number,
 *   revealed: boolean }} State
 */

const percent = (share) => `${Math.round(100 * share)} %`,
  several = (n, what) => `${n} ${what}${n > 1 ? "s" : ""}`,
  list = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : `${names[0]}`);

// A row of a table, `kind` the element of its cells. Returns: the cells.
function row(parent, name, cells, kind = "td") {
  const line = add(parent, "tr");
  const header = (text, scope) => add(line, text ? "th" : "td", text ? { scope } : {}, text);
  header(name, kind === "th" ? "col" : "row");
  return cells.map((cell) => (kind === "th" ? header(cell, "col") : add(line, "td", {}, cell)));
}

// A row for each answer; what all samples need is kept free, so that nothing below moves.
function tallyTable(box, /** @type {State} */ state) {
  const tally = add(box, "table", { class: "tally", style: "width: 100%", "aria-label": "votes" });

  function answerRow(answer, voters, most, widest) {
    const truth = state.revealed && answer === state.questions[state.question].right,
      name = answer === null ? "none" : (truth ? "✓ " : "") + answer;
    const bold = answer !== null && voters.length === most ? 700 : 400,
      fill = answer === null ? "#8888" : truth ? "var(--orange)" : "var(--blue)";
    const [cell] = row(tally, name, [""]);
    for (const node of cell.parentNode.children)
      node.style.cssText = `border: 0; height: 20px; padding: 0 5px; white-space: nowrap; font-weight: ${bold}`;
    cell.style.width = "99%";
    const line = add(cell, "div", { style: "display: flex; align-items: center" });
    const look =
      `flex: 0 0 auto; width: min(20px, ${88 / widest}%); height: 14px; box-sizing: border-box; ` +
      `padding-right: 2px; background: ${fill}; background-clip: content-box; `;
    for (const k of voters)
      add(line, "span", { "data-sample": k + 1, style: `${look}opacity: ${k === state.votes - 1 ? 1 : 0.65}` });
    add(line, "span", { style: "margin-left: 6px" }, voters.length);
  }
  return (/** @type {ReturnType<typeof count>} */ { ordered, abstained, most, tied }) => {
    const all = count(state.questions[state.question].samples),
      widest = Math.max(all.most, all.abstained.length, 8);
    tally.replaceChildren();
    box.style.minHeight = `${20 * (all.ordered.length + (all.abstained.length ? 1 : 0)) + 8}px`;
    for (const [answer, voters] of ordered) answerRow(answer, voters, most, widest);
    if (abstained.length) answerRow(null, abstained, most, widest);
    place(tally, { "data-tied": tied.join(" "), "data-abstained": abstained.length });
  };
}

// The numbers of the latest sample over those of the right way; the answer is always the last column.
function wayTable(box, /** @type {State} */ state) {
  const label = "what the latest sample writes",
    way = add(scroller(box), "table", { class: "way d2lmini-close", "aria-label": label });
  return () => {
    const { summands, right, samples, wrong } = state.questions[state.question],
      { votes: k, revealed } = state,
      numbers = samples[k - 1];
    const width = Math.max(...samples.map((other) => other?.length ?? 1));
    const last = (steps, end) => [...steps, ...Array(width - 1 - steps.length).fill(""), end];
    way.replaceChildren();
    const names = summands.slice(1).map((x, i) => (i ? `+${x}` : `${summands[0]}+${x}`));
    row(add(way, "thead"), "", last(names.slice(0, width - 1), "answer"), "th");
    const body = add(way, "tbody");
    if (numbers) {
      const cells = row(body, `sample ${k}`, last(numbers.slice(0, -1), numbers.at(-1))),
        at = wrong[k - 1] === numbers.length - 1 ? width - 1 : wrong[k - 1];
      if (revealed && at >= 0) {
        cells[at].textContent = `✗ ${cells[at].textContent}`;
        cells[at].style.fontWeight = 700;
      }
    } else place(row(body, `sample ${k}`, ["no answer could be read"])[0], { colspan: width });
    const steps = last(rightSteps(summands).slice(0, width - 1), right);
    row(
      body,
      "right",
      steps.map((x) => (revealed ? x : x && "?")),
    );
    for (const cell of way.querySelectorAll("th, td")) pad(cell);
  };
}

const pad = (cell) => {
  cell.style.cssText += "padding: 2px 4px; white-space: nowrap";
};

// How often votes of several sizes are right.
function shareTable(box, /** @type {State} */ state) {
  add(box, "p", { class: "d2lmini-said" }, "How often a vote is right:");
  const often = add(box, "table", { class: "often", "aria-label": "how often a vote is right" });
  return () => {
    const { questions, question, revealed, sizes, shares } = state,
      own = questions[question].shares.map((share) => (revealed ? percent(share) : "?"));
    often.replaceChildren();
    row(add(often, "thead"), "votes of", sizes, "th");
    const body = add(often, "tbody");
    row(body, "this question", own);
    if (questions.length > 1) row(body, `all ${questions.length} questions`, shares.map(percent));
    for (const cell of often.querySelectorAll("th, td")) pad(cell);
  };
}

function say(/** @type {State} */ { questions, question, votes, revealed }, { abstained, most, tied }) {
  const { samples, right } = questions[question],
    begin = `${several(votes, "sample")} of ${samples.length} voted.`,
    silent = abstained.length ? ` No answer could be read in ${several(abstained.length, "sample")}.` : "";
  if (!most) return `${begin}${silent}`;
  const even = tied.length > 1;
  const leads = even
    ? `${list(tied)} are tied with ${several(most, "vote")} each, and a lot decides.`
    : `${tied[0]} leads with ${several(most, "vote")}.`;
  const verdict = !tied.includes(right)
    ? "the vote is wrong."
    : even
      ? `the vote is right once in ${tied.length} lots.`
      : "the vote is right.";
  const truth = revealed ? `The right answer is ${right}, so ${verdict}` : "Is the vote right?";
  return `${begin} ${leads}${silent} ${truth}`;
}

function render({ model, el }) {
  const keys = ["questions", "sizes", "shares", "question", "votes", "revealed"],
    [questions, sizes, shares, question, votes, revealed] = keys.map((key) => model.get(key));
  /** @type {State} */
  const state = { questions, sizes, shares, question, votes, revealed };
  const change = (changes) => {
    keepAll(model, state, changes);
    paint();
  };

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  const texts = questions.map(({ summands }) => summands.join(" + "));
  choice(choosing, { label: "question", options: { ...texts }, value: question }, (n) => {
    const { length } = questions[n].samples;
    walk.end(length);
    Object.assign(state, { question: Number(n), revealed: false });
    for (const key of ["question", "revealed"]) keep(model, key, state[key]);
    walk.go(Math.min(state.votes, length));
  });
  const reveal = button(choosing, "", () => change({ revealed: !state.revealed }));
  const walking = add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 12px" }),
    steps = { label: "samples", min: 1, max: questions[question].samples.length, value: votes };
  const walk = stepper(walking, steps, (n) => change({ votes: n }));
  const high = "min-height: 3em; margin-bottom: 6px",
    note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: high });
  const panels = add(el, "div", { class: "d2lmini-panels" });
  const left = add(panels, "div"),
    right = add(panels, "div", { style: "flex-grow: 2" });
  const paintTally = tallyTable(left, state),
    paintWay = wayTable(right, state),
    paintShares = shareTable(right, state);

  function paint() {
    const vote = count(questions[state.question].samples.slice(0, state.votes));
    reveal.textContent = state.revealed ? "hide the right answer" : "show the right answer";
    paintTally(vote);
    paintWay();
    paintShares();
    note.textContent = say(state, vote);
  }
  paint();
}

export default { render };
