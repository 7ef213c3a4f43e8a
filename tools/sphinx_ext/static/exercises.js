// A page of exercises: choices that answer, ticks for what the page cannot check. tools/sphinx_ext/exercise_pages.py
(() => {
  const progress = window.bookProgress;
  const make = (tag, properties = {}, ...inside) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...inside);
    return node;
  };

  // The options become radio buttons: to select one is no answer, which the button and Enter give.
  function choice(place) {
    const key = place.dataset.part,
      options = [...place.querySelectorAll(":scope > .option")];
    const letterOf = (option) => option.dataset.letter,
      rightOne = options.find((option) => option.dataset.right);
    const form = make("form"),
      fields = make("fieldset", {}, make("legend", { textContent: "Choose one:" }));
    const status = make("span"),
      submit = make("button", { textContent: "Check my choice" }),
      again = make("button", { type: "button", textContent: "Forget my answer" });
    status.setAttribute("role", "status");
    form.append(fields, make("p", { className: "verdict" }, submit, " ", status, " ", again));
    place.append(form);
    const radios = options.map((option) => {
      const text = option.querySelector("p");
      text.id = `${key}-${letterOf(option)}`;
      const radio = make("input", { type: "radio", name: key, value: letterOf(option), required: true });
      radio.setAttribute("aria-labelledby", text.id);
      option.prepend(radio);
      fields.append(option);
      text.addEventListener("click", (event) => {
        if (event.target.closest("a")) return;
        radio.checked = true; // as a label does it, which may hold no paragraph
        radio.focus({ preventScroll: true });
      });
      option.querySelector(".why > summary").textContent = `Explanation of ${letterOf(option)}`;
      return radio;
    });

    let said = "";
    function answer(letter) {
      const before = progress.of(key),
        right = letter === letterOf(rightOne),
        repeated = before.tries > 0 && letter === (said || before.chosen.slice(-1));
      said = letter;
      if (!before.passed && !repeated) {
        const chosen = before.chosen.includes(letter) ? before.chosen : before.chosen + letter;
        progress.change(key, { tries: before.tries + 1, passed: right, last: right ? "passed" : "wrong", chosen });
      }
      options.find((option) => letterOf(option) === letter).querySelector(".why").open = true;
      render();
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      answer(new FormData(form).get(key));
    });
    again.addEventListener("click", () => {
      said = "";
      progress.forget(key);
      form.reset();
      for (const option of options) option.querySelector(".why").open = false;
      radios[0].focus({ preventScroll: true });
    });

    function render() {
      const { chosen, passed, tries } = progress.of(key);
      for (const option of options) {
        const tried = chosen.includes(letterOf(option)),
          seen = passed && (tried || option === rightOne);
        option.classList.toggle("is-right", seen && option === rightOne);
        option.classList.toggle("is-wrong", tried && option !== rightOne);
        option.querySelector(".why").hidden = !(tried || passed);
      }
      again.hidden = !tries;
      const last = said || (passed ? letterOf(rightOne) : chosen.slice(-1));
      let words = "";
      if (last) words = last === letterOf(rightOne) ? `${last} is right.` : `${last} is wrong.`;
      if (passed) words += " All explanations can be opened now.";
      else if (last) words += ` The explanation is below ${last}. Try another one.`;
      if (status.textContent !== words) status.textContent = words;
      const shown = radios.find((radio) => radio.value === last);
      if (shown && !radios.some((radio) => radio.checked)) shown.checked = true;
    }
    progress.listen(render);
  }

  const LABELS = { discussion: "I compared my text with the model answer", identity: "I proved this and checked it" };
  function tick(place) {
    const key = place.dataset.part,
      box = make("input", { type: "checkbox" }),
      also = make("span");
    place.append(make("label", {}, box, ` ${LABELS[place.dataset.kind] ?? "I solved this"}`), " ", also);
    box.addEventListener("change", () => progress.change(key, { ticked: box.checked }));
    progress.listen(() => {
      const { ticked, passed } = progress.of(key);
      box.checked = ticked;
      also.textContent = passed ? "(verified in a notebook)" : "";
    });
  }

  const choices = [...document.querySelectorAll("article .choice")],
    ticks = [...document.querySelectorAll("article .tick")];
  choices.forEach(choice);
  ticks.forEach(tick);
  const tally = make("p", { className: "exercise-tally" });
  document.querySelector("article h1")?.after(tally);
  const count = (places, done) => places.filter((place) => done(progress.of(place.dataset.part))).length;
  progress.listen(() => {
    const said = [];
    if (choices.length) said.push(`Choices answered right: ${count(choices, (e) => e.passed)} of ${choices.length}.`);
    if (ticks.length)
      said.push(`Code and other parts you ticked: ${count(ticks, (e) => e.ticked)} of ${ticks.length}.`);
    tally.textContent = said.join(" ");
    if (!progress.keeps()) tally.textContent += " This browser keeps nothing: it is gone when you leave the page.";
  });
})();
