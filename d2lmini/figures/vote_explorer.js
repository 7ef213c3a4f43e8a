// Samples of one question vote: a square for each, in the row of its answer.
import { add, button, choice, keep, place, scroller, stepper } from "./base/index.js";

function render({ model, el }) {
  const questions = model.get("questions"),
    sizes = model.get("sizes"),
    shares = model.get("shares");
  const now = Object.fromEntries(["question", "votes", "revealed"].map((key) => [key, model.get(key)]));
  const change = (changes) => {
    for (const [key, value] of Object.entries(changes))
      if (now[key] !== value) {
        now[key] = value;
        keep(model, key, value);
      }
    paint();
  };
  const text = ({ summands }) => summands.join(" + "),
    percent = (share) => `${Math.round(100 * share)} %`,
    several = (n, what) => `${n} ${what}${n > 1 ? "s" : ""}`;
  const list = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : `${names[0]}`);

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  choice(choosing, { label: "question", options: { ...questions.map(text) }, value: now.question }, (n) => {
    const { length } = questions[n].samples;
    walk.end(length);
    Object.assign(now, { question: Number(n), revealed: false });
    for (const key of ["question", "revealed"]) keep(model, key, now[key]);
    walk.go(Math.min(now.votes, length));
  });
  const reveal = button(choosing, "", () => change({ revealed: !now.revealed }));
  const walking = add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 12px" });
  const { length } = questions[now.question].samples;
  const walk = stepper(walking, { label: "samples", min: 1, max: length, value: now.votes }, (votes) =>
    change({ votes }),
  );
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 3em; margin-bottom: 6px",
  });
  const panels = add(el, "div", { class: "d2lmini-panels" });
  const left = add(panels, "div"),
    right = add(panels, "div", { style: "flex-grow: 2" });
  const tally = add(left, "table", { class: "tally", style: "width: 100%", "aria-label": "votes" });
  const way = add(scroller(right), "table", {
    class: "way d2lmini-close",
    "aria-label": "what the latest sample writes",
  });
  add(right, "p", { class: "d2lmini-said" }, "How often a vote is right:");
  const often = add(right, "table", { class: "often", "aria-label": "how often a vote is right" });

  // As Vote of decoding/votes.py: the commonest first, of several the one that came up first; null does not count.
  function count(answers) {
    const votes = new Map();
    answers.forEach((answer, k) => votes.set(answer, [...(votes.get(answer) ?? []), k]));
    const abstained = votes.get(null) ?? [];
    votes.delete(null);
    const ordered = [...votes].sort((a, b) => b[1].length - a[1].length),
      most = ordered[0]?.[1].length ?? 0;
    return { ordered, abstained, most, tied: ordered.filter((pair) => pair[1].length === most).map(([name]) => name) };
  }

  function row(parent, name, cells, kind = "td") {
    const line = add(parent, "tr");
    const header = (text, scope) => add(line, text ? "th" : "td", text ? { scope } : {}, text);
    header(name, kind === "th" ? "col" : "row");
    return cells.map((cell) => (kind === "th" ? header(cell, "col") : add(line, "td", {}, cell)));
  }

  function paint() {
    const card = questions[now.question],
      { revealed, votes: n } = now,
      samples = card.samples.slice(0, n),
      vote = count(samples.map((numbers) => numbers?.at(-1) ?? null));
    reveal.textContent = revealed ? "hide the right answer" : "show the right answer";
    paintTally(card, vote);
    often.replaceChildren();
    row(add(often, "thead"), "votes of", sizes, "th");
    const under = add(often, "tbody");
    row(
      under,
      "this question",
      card.shares.map((share) => (revealed ? percent(share) : "?")),
    );
    if (questions.length > 1) row(under, `all ${questions.length} questions`, shares.map(percent));
    paintWay(card, n - 1);

    const silent = vote.abstained.length
        ? ` No answer could be read in ${several(vote.abstained.length, "sample")}.`
        : "",
      begin = `${several(n, "sample")} of ${card.samples.length} voted.`;
    if (!vote.most) note.textContent = `${begin}${silent}`;
    else {
      const won = vote.tied.includes(card.right),
        tied = vote.tied.length > 1;
      const leads = tied
        ? `${list(vote.tied)} are tied with ${several(vote.most, "vote")} each, and a lot decides.`
        : `${vote.tied[0]} leads with ${several(vote.most, "vote")}.`;
      const truth = !revealed
        ? "Is the vote right?"
        : `The right answer is ${card.right}, so ` +
          (!won
            ? "the vote is wrong."
            : tied
              ? `the vote is right once in ${vote.tied.length} lots.`
              : "the vote is right.");
      note.textContent = `${begin} ${leads}${silent} ${truth}`;
    }
    place(tally, { "data-tied": vote.tied.join(" "), "data-abstained": vote.abstained.length });
  }

  // A row for each answer; what all samples need is kept free, so that nothing below moves.
  function paintTally(card, { ordered, abstained, most }) {
    tally.replaceChildren();
    const all = new Set(card.samples.map((numbers) => numbers?.at(-1) ?? null)),
      lines = abstained.length ? [...ordered, [null, abstained]] : ordered,
      widest = Math.max(
        ...card.samples.map((one, _, samples) => samples.filter((x) => x?.at(-1) === one?.at(-1)).length),
        8,
      );
    left.style.minHeight = `${20 * all.size + 8}px`;
    for (const [answer, voters] of lines) {
      const truth = now.revealed && answer === card.right,
        name = answer === null ? "none" : (truth ? "✓ " : "") + answer;
      const bold = answer !== null && voters.length === most ? 700 : 400,
        fill = answer === null ? "#8888" : truth ? "var(--orange)" : "var(--blue)";
      const [cell] = row(tally, name, [""]);
      for (const node of cell.parentNode.children)
        node.style.cssText = `border: 0; height: 20px; padding: 0 5px; white-space: nowrap; font-weight: ${bold}`;
      cell.style.width = "99%";
      const line = add(cell, "div", { style: "display: flex; align-items: center" });
      for (const k of voters)
        add(line, "span", {
          "data-sample": k + 1,
          style:
            `flex: 0 0 auto; width: min(20px, ${88 / widest}%); height: 14px; box-sizing: border-box; ` +
            `padding-right: 2px; background: ${fill}; background-clip: content-box; ` +
            `opacity: ${k === now.votes - 1 ? 1 : 0.65}`,
        });
      add(line, "span", { style: "margin-left: 6px" }, voters.length);
    }
  }

  // The numbers of one sample over those of the right way; the answer is always the last column.
  function paintWay(card, k) {
    const { summands, right: answer } = card,
      numbers = card.samples[k],
      wrong = card.wrong[k],
      width = Math.max(...card.samples.map((other) => other?.length ?? 1));
    const last = (steps, end) => [...steps, ...Array(width - 1 - steps.length).fill(""), end];
    way.replaceChildren();
    const names = summands.slice(1).map((x, i) => (i ? `+${x}` : `${summands[0]}+${x}`));
    row(add(way, "thead"), "", last(names.slice(0, width - 1), "answer"), "th");
    const body = add(way, "tbody");
    if (numbers) {
      const at = wrong === numbers.length - 1 ? width - 1 : wrong;
      row(body, `sample ${k + 1}`, last(numbers.slice(0, -1), numbers.at(-1))).forEach((cell, i) => {
        if (!now.revealed || i !== at) return;
        cell.textContent = `✗ ${cell.textContent}`;
        cell.style.fontWeight = 700;
      });
    } else place(row(body, `sample ${k + 1}`, ["no answer could be read"])[0], { colspan: width });
    let sum = summands[0];
    const sums = summands.slice(1).map((x) => (sum += x));
    row(
      body,
      "right",
      last(sums.slice(0, Math.min(sums.length, width) - 1), answer).map((x) => (now.revealed ? x : x && "?")),
    );
    for (const cell of right.querySelectorAll("th, td")) cell.style.cssText += "padding: 2px 4px; white-space: nowrap";
  }
  paint();
}

export default { render };
