// The search page: ranks the sections of the book (sections.js) for what was typed, and shows where each word stands.
(() => {
  const MOST = 40;
  const NAMES = { term: "Glossary", number: "In the books", section: "", exercise: "Exercise", name: "Package" };
  const WORTH = { term: 30, number: 24, section: 12, exercise: 5, name: 4 };
  const bare = (text) =>
    text
      .normalize("NFD")
      .replace(/[\u0300-\u036f]/g, "")
      .toLowerCase();
  const wordsOf = (text) => bare(text).match(/[\p{L}\p{N}]+(?:[.'-][\p{L}\p{N}]+)*/gu) ?? [];
  const { entries, synonyms } = window.bookSections;
  const all = entries.map(([kind, title, page, address, text]) => ({
    kind,
    title,
    page,
    address,
    text,
    inTitle: bare(title),
    inText: bare(text),
  }));

  // A phrase begins at the beginning of a word: "rope" is not in "properly".
  function count(phrase, text) {
    let found = 0;
    for (let at = text.indexOf(phrase); at >= 0; at = text.indexOf(phrase, at + phrase.length)) {
      if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1])) found += 1;
      if (found === 5) break;
    }
    return found;
  }

  // What a word may be written as; the first is the word itself.
  const forms = (word) => [word, ...(synonyms[word] ?? []).map(bare)];

  function score(entry, words, phrase) {
    let total = 0;
    for (const word of words) {
      let best = 0;
      for (const form of forms(word)) {
        const title = count(form, entry.inTitle);
        const exact = entry.inTitle === form || entry.inTitle.split(" (")[0] === form;
        best = Math.max(best, (exact ? 60 : 0) + (title ? 25 : 0) + 2 * count(form, entry.inText));
      }
      if (!best) return 0; // every word has to be there
      total += best;
    }
    if (words.length > 1 && count(phrase, entry.inTitle)) total += 40;
    else if (words.length > 1 && count(phrase, entry.inText)) total += 12;
    return total + WORTH[entry.kind];
  }

  // "11.3", "UDL 12.5": numbers are those of the books, whole.
  function numbered(query) {
    const asked = bare(query).match(/^(?:(d2l|udl)\s*)?(?:(equation|figure|problem|section)\s*)?(\d\d(?:\.\d+)+)$/);
    if (!asked) return null;
    const [, book, sort, number] = asked;
    return all.filter((entry) => {
      if (entry.kind !== "number") return false;
      const [label] = entry.inTitle.split(":");
      return (
        label.endsWith(` ${number}`) &&
        (!book || label.startsWith(book)) &&
        (!sort || sort === "section" || label.includes(sort))
      );
    });
  }

  function find(query) {
    const exact = numbered(query);
    if (exact?.length) return exact;
    const words = wordsOf(query),
      phrase = bare(query.trim());
    if (!words.length) return [];
    return all
      .map((entry) => ({ entry, points: score(entry, words, phrase) }))
      .filter(({ points }) => points)
      .sort((a, b) => b.points - a.points)
      .map(({ entry }) => entry);
  }

  // The text around the first word that was found, with all of them marked.
  function excerpt(entry, words) {
    const node = document.createElement("p");
    const looked = words.flatMap(forms);
    const starts = looked.map((form) => entry.inText.indexOf(form)).filter((at) => at >= 0);
    const same = entry.inText.length === entry.text.length; // else accents were dropped, and places are others
    const from = same && starts.length ? Math.max(0, Math.min(...starts) - 60) : 0;
    const piece = entry.text.slice(from, from + 220);
    const low = bare(piece);
    let at = 0;
    const marks = low.length === piece.length ? places(low, looked) : [];
    node.append(from ? "… " : "");
    for (const [start, end] of marks) {
      node.append(piece.slice(at, start));
      node.append(Object.assign(document.createElement("mark"), { textContent: piece.slice(start, end) }));
      at = end;
    }
    node.append(piece.slice(at), from + 220 < entry.text.length ? " …" : "");
    return node;
  }

  function places(text, looked) {
    const found = [];
    for (const form of looked)
      for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length))
        if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1])) found.push([at, at + form.length]);
    found.sort((a, b) => a[0] - b[0]);
    return found.filter(([start], i) => i === 0 || start >= found[i - 1][1]);
  }

  // The page that is opened marks the words, and opens the fold that one of them is in.
  function address({ kind, address: where }, query) {
    if (kind === "number" || kind === "name") return where;
    const [page, place] = where.split("#");
    return `${page}?highlight=${encodeURIComponent([...new Set(wordsOf(query).flatMap(forms))].join(" "))}#${place}`;
  }

  function show(query) {
    const place = document.getElementById("search-results");
    if (!place) return;
    place.replaceChildren();
    if (!query.trim()) return;
    const found = find(query);
    const told = document.createElement("p");
    told.setAttribute("role", "status");
    const more = found.length > MOST ? `, of which these are the first ${MOST}` : "";
    told.textContent = found.length
      ? `${found.length} ${found.length === 1 ? "place" : "places"} for “${query}”${more}.`
      : `Nothing in the book has all the words of “${query}”. Try fewer, or another.`;
    const list = document.createElement("ol");
    list.className = "book-search";
    for (const entry of found.slice(0, MOST)) {
      const item = document.createElement("li"),
        link = Object.assign(document.createElement("a"), { href: address(entry, query), textContent: entry.title }),
        where = document.createElement("small");
      where.textContent = [NAMES[entry.kind], entry.page === entry.title ? "" : entry.page].filter(Boolean).join(" · ");
      item.append(link, " ", where);
      if (entry.text && entry.kind !== "name") item.append(excerpt(entry, wordsOf(query)));
      list.append(item);
    }
    place.append(told, list);
  }

  const query = new URLSearchParams(location.search).get("q") ?? "";
  for (const input of document.querySelectorAll("main input[name=q]")) {
    input.value = query;
    input.addEventListener("input", () => show(input.value));
  }
  show(query);
})();
