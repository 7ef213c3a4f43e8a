// Samples of one question are drawn, and their answers vote.
function render({ model, el }) {
  const questions = model.get("questions"),
    sizes = model.get("sizes"),
    shares = model.get("shares");
  const now = Object.fromEntries(
    ["question", "votes", "start", "drawn", "guess", "revealed"].map((key) => [key, model.get(key)]),
  );
  const change = (changes) => {
    for (const [key, value] of Object.entries(changes))
      if (now[key] !== value) {
        now[key] = value;
        keep(model, key, value);
      }
    paint();
  };
  const text = ({ summands }) => summands.join(" + "),
    percent = (share) => `${Math.round(100 * share)}%`;
  const list = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : `${names[0]}`);

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  choice(choosing, { label: "question", options: { ...questions.map(text) }, value: now.question }, (n) =>
    change({ question: Number(n), start: 0, drawn: 0, guess: "", revealed: false }),
  );
  choice(
    choosing,
    { label: "samples that vote", options: Object.fromEntries(sizes.map((n) => [n, n])), value: now.votes },
    (n) => change({ votes: Number(n), start: 0, drawn: 0, guess: "", revealed: false }),
  );
  const asking = add(el, "div", { class: "d2lmini-controls", role: "group", "aria-label": "your guess" });
  const question = add(asking, "span");
  const guesses = ["yes", "no"].map((word) =>
    button(asking, word, () => {
      if (now.drawn < now.votes && !now.revealed) change({ guess: now.guess === word ? "" : word });
    }),
  );
  const acting = add(el, "div", { class: "d2lmini-controls" });
  const one = button(acting, "draw one", () => change({ drawn: Math.min(now.votes, now.drawn + 1) }));
  const all = button(acting, "draw all", () => change({ drawn: now.votes }));
  const reveal = button(acting, "reveal", () => change({ revealed: !now.revealed }));
  const again = button(acting, "other samples", () => {
    const next = now.start + now.votes,
      more = next + now.votes <= questions[now.question].samples.length;
    change({ start: more ? next : 0, drawn: 0, guess: "", revealed: false });
  });
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 3em; margin-bottom: 6px",
  });
  const panels = add(el, "div", { class: "d2lmini-panels" });
  const left = add(panels, "div"),
    right = add(panels, "div");
  add(left, "b", {}, "What was drawn");
  const box = scroller(left);
  place(box, { style: "max-height: 17rem; overflow-y: auto", role: "group", "aria-label": "samples drawn" });
  const chains = add(box, "table", { class: "chains", style: "white-space: nowrap" });
  add(right, "b", {}, "What they vote for");
  const tally = add(right, "table", { class: "tally", style: "width: 100%; white-space: nowrap" });
  const about = add(el, "div");
  const often = add(scroller(el), "table", { class: "often", "aria-label": "how often a vote is right" });
  add(
    el,
    "div",
    { class: "d2lmini-key" },
    "Once revealed: ✓ and orange mark the right answer, ✗ the first wrong number of a sample.",
  );

  // As Vote of decoding/votes.py: the commonest first, of several the one that came up first; null does not count.
  function count(answers) {
    const votes = new Map();
    for (const answer of answers) if (answer !== null) votes.set(answer, (votes.get(answer) ?? 0) + 1);
    const ordered = [...votes].sort((a, b) => b[1] - a[1]);
    return {
      ordered,
      tied: ordered.filter((pair) => pair[1] === ordered[0][1]).map(([answer]) => answer),
      abstained: answers.filter((answer) => answer === null).length,
    };
  }

  function row(parent, name, cells) {
    const line = add(parent, "tr");
    add(line, "th", { scope: "row" }, name);
    return cells.map((cell) => add(line, "td", {}, cell));
  }

  function paint() {
    const card = questions[now.question],
      n = now.votes,
      { summands } = card,
      { start, drawn, revealed } = now;
    const samples = card.samples.slice(start, start + drawn),
      width = Math.max(...card.samples.map((numbers) => numbers?.length ?? 1));
    const done = drawn === n,
      vote = count(samples.map((numbers) => numbers?.at(-1) ?? null)),
      won = vote.tied.includes(card.right);
    question.textContent = n > 1 ? `Will the majority of ${n} be right?` : "Will the sample be right?";
    guesses.forEach((node) =>
      place(node, { "aria-pressed": now.guess === node.textContent, "aria-disabled": done || revealed }),
    );
    for (const node of [one, all]) place(node, { "aria-disabled": done });
    place(again, { "aria-label": `other samples: the next ${n} of ${card.samples.length}` });
    again.style.display = 2 * n > card.samples.length ? "none" : "";
    reveal.textContent = revealed ? "hide" : "reveal";

    chains.replaceChildren();
    const head = add(add(chains, "thead"), "tr");
    add(head, "th", { scope: "col" }, "sample");
    for (let i = 0; i < width - 1; i++) {
      add(
        head,
        "th",
        { scope: "col" },
        i >= summands.length - 1 ? "" : i ? `+ ${summands[i + 1]}` : `${summands[0]} + ${summands[1]}`,
      );
    }
    add(head, "th", { scope: "col" }, "answer");
    const body = add(chains, "tbody");
    samples.forEach((numbers, k) => {
      const wrong = card.wrong[start + k];
      if (!numbers) {
        place(row(body, start + k + 1, ["no answer"])[0], { colspan: width });
        return;
      }
      const cells = [...numbers.slice(0, -1), ...Array(width - numbers.length).fill(""), numbers.at(-1)];
      const at = wrong === numbers.length - 1 ? width - 1 : wrong;
      row(
        body,
        start + k + 1,
        cells.map((number, i) => (revealed && i === at ? `✗ ${number}` : number)),
      ).forEach((cell, i) => {
        if (revealed && i === at) cell.style.fontWeight = 700;
      });
    });

    tally.replaceChildren();
    const bars = vote.abstained ? [...vote.ordered, [null, vote.abstained]] : vote.ordered;
    for (const [answer, votes] of bars) {
      const truth = revealed && answer === card.right;
      const line = row(tally, answer === null ? "no answer" : (truth ? "✓ " : "") + answer, ["", votes]);
      for (const cell of line[0].parentNode.children) cell.style.border = 0;
      place(line[0], { style: "border: 0; width: 75%" });
      const fill = answer === null ? "#8888" : truth ? "var(--orange)" : "var(--blue)";
      add(line[0], "div", { style: `height: 14px; width: ${(100 * votes) / n}%; background: ${fill}` });
    }
    left.style.visibility = right.style.visibility = drawn ? "" : "hidden";

    often.replaceChildren();
    about.textContent = revealed
      ? "How often a vote of n is right, over the groups of n of the recorded samples; a tie is decided by lot:"
      : "";
    if (revealed) {
      const top = add(add(often, "thead"), "tr");
      for (const name of ["n", ...sizes]) add(top, "th", { scope: "col" }, name);
      const under = add(often, "tbody");
      row(under, "this question", card.shares.map(percent));
      if (questions.length > 1) row(under, `all ${questions.length} questions`, shares.map(percent));
    }

    const said = [];
    if (!drawn) said.push(`${text(card)} = ? Guess if you like, then draw.`);
    else {
      const most = vote.ordered[0]?.[1],
        without = vote.abstained ? ` ${vote.abstained} without an answer.` : "";
      said.push(
        `${drawn} of ${n} drawn. ` +
          (!most
            ? "No answer could be read."
            : vote.tied.length > 1
              ? `A tie: ${list(vote.tied)} have ${most} each, a lot decides.${without}`
              : `${vote.tied[0]} leads with ${most} of ${drawn}.${without}`),
      );
    }
    if (revealed) {
      said.push(`Right is ${card.right}.`);
      if (done) {
        const ends = !won ? "wrong" : vote.tied.length > 1 ? `right once in ${vote.tied.length} lots` : "right";
        said.push(`The vote is ${ends}.`);
        if (now.guess && (!won || vote.tied.length === 1))
          said.push(`You guessed ${now.guess}: ${(now.guess === "yes") === won ? "well guessed" : "not so"}.`);
      }
    }
    note.textContent = said.join(" ");
    place(tally, { "data-tied": vote.tied.join(" "), "data-abstained": vote.abstained });
  }
  paint();
}

export default { render };
