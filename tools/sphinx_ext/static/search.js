// The search page: ranks the sections of the book (sections.js) for what was typed, and shows where each word stands.
(() => {
  const MOST = 40;
  const NAMES = { term: "", section: "", exercise: "Exercise", name: "Package" };
  const BOOKS = { d2l: "Dive into Deep Learning", udl: "Understanding Deep Learning" };
  const SORTS = ["section", "problem", "equation", "figure"]; // of numbers, the first is shown first
  const HINT = "Try a term, D2L 11.3, or UDL problem 12.5.";
  const WORTH = { term: 30, number: 24, section: 12, exercise: 5, name: 4 };
  const low = (text) =>
    text
      .normalize("NFD")
      .replace(/[\u0300-\u036f]/g, "")
      .toLowerCase();
  const bare = (text) => low(text).replace(/[-‐‑–]/g, " "); // a hyphen and a space are alike
  const wordsOf = (text) => bare(text).match(/[\p{L}\p{N}]+(?:[.'][\p{L}\p{N}]+)*/gu) ?? [];
  const { entries, synonyms } = window.bookSections;
  const all = entries.map(([kind, title, page, address, text, number]) => ({
    kind,
    title,
    page,
    address,
    text,
    number,
    inTitle: bare(title),
    inText: bare(text),
    name: bare(kind === "name" ? title.split(".").pop() : title.split(" (")[0]),
  }));

  // How a joined word may be written: "warmup" as itself and as "warm up", by the hyphens of the book.
  const joined = (words) => words.join("").replaceAll(" ", "");
  const written = new Map();
  const says = (phrase, ...ways) => {
    const key = joined([phrase]);
    written.set(key, [...new Set([...(written.get(key) ?? [key]), phrase, ...ways])]);
  };
  for (const { 1: title, 4: text } of entries)
    for (const [term] of low(`${title} ${text}`).matchAll(/\p{L}+(?:-\p{L}+)*/gu)) says(bare(term));
  for (const [word, phrases] of Object.entries(synonyms)) says(bare(word), ...phrases.map(bare));

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
  const forms = (word) => written.get(word) ?? [word];

  // The words of a query, each as its forms; two that the book also writes as one, or with a hyphen, are one.
  function asked(query) {
    const found = [];
    for (const word of wordsOf(query)) {
      const last = found.at(-1) ?? [];
      const both = last.length ? joined([last[0], word]) : "";
      if (written.has(both))
        found.splice(-1, 1, [...new Set([...forms(both), ...last.map((form) => `${form} ${word}`)])]);
      else found.push(forms(word));
    }
    return found;
  }

  function score(entry, words, phrase) {
    let total = 0;
    for (const word of words) {
      let best = 0;
      for (const form of word) {
        const title = count(form, entry.inTitle);
        const [whole, part] = entry.kind === "name" ? [20, 8] : [60, 25]; // what explains a thing goes first
        best = Math.max(best, (entry.name === form && whole) + (title && part) + 2 * count(form, entry.inText));
      }
      if (!best) return 0; // every word has to be there
      total += best;
    }
    if (words.length > 1 && count(phrase, entry.inTitle)) total += 40;
    else if (words.length > 1 && count(phrase, entry.inText)) total += 12;
    return total + WORTH[entry.kind];
  }

  const sortOf = (entry) => SORTS.find((sort) => entry.inTitle.split(":")[0].includes(sort)) ?? "section";

  // "11.3", "UDL 12.5": whole numbers, of this book or of the two others.
  function numbered(query) {
    const read = bare(query.trim()).match(
      /^(?:(d2l|udl)\s*)?(?:(equation|figure|problem|section)\s*)?(\d\d?(?:\.\d+)+)$/,
    );
    if (!read) return null;
    const [, book, sort, number] = read;
    const own = all.filter((entry) => entry.number === number && !book && (!sort || sort === "section"));
    const theirs = all.filter((entry) => {
      if (entry.kind !== "number") return false;
      const [label] = entry.inTitle.split(":");
      return label.endsWith(` ${number}`) && (!book || label.startsWith(book)) && (!sort || sortOf(entry) === sort);
    });
    return [...own, ...theirs.sort((a, b) => SORTS.indexOf(sortOf(a)) - SORTS.indexOf(sortOf(b)))];
  }

  function find(query) {
    const exact = numbered(query);
    if (exact?.length) return exact;
    if (!wordsOf(query).length) return [];
    const found = ranked(asked(query), query);
    return found.length ? found : ranked(wordsOf(query).map(forms), query);
  }

  function ranked(words, query) {
    const phrase = bare(query.trim());
    return all
      .map((entry) => ({ entry, points: score(entry, words, phrase) }))
      .filter(({ points }) => points)
      .sort((a, b) => b.points - a.points)
      .map(({ entry }) => entry);
  }

  // The text around the first word that was found, with all of them marked.
  function excerpt(entry, words) {
    const node = document.createElement("p");
    const looked = words.flat();
    const [first = [0]] = places(entry.inText, looked);
    const same = entry.inText.length === entry.text.length; // else accents were dropped, and places are others
    const start = same ? first[0] - 60 : 0;
    const from = start > 0 ? entry.text.indexOf(" ", start) + 1 : 0; // from a word
    const rest = entry.text.slice(from);
    const piece = rest.length > 220 ? rest.slice(0, rest.lastIndexOf(" ", 220)) : rest; // to a word
    const plain = bare(piece);
    let at = 0;
    const marks = plain.length === piece.length ? places(plain, looked) : [];
    node.append(from ? "… " : "");
    for (const [start, end] of marks) {
      node.append(piece.slice(at, start));
      node.append(Object.assign(document.createElement("mark"), { textContent: piece.slice(start, end) }));
      at = end;
    }
    node.append(piece.slice(at), piece === rest ? "" : " …");
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
    const parts = (form) => (form.includes(" ") ? form.split(" ").filter((word) => word.length > 3) : form);
    const marked = new Set(asked(query).flat().flatMap(parts));
    return `${page}?highlight=${encodeURIComponent([...marked].join(" "))}#${place}`;
  }

  // Which book a number is of; a section of this one has its number where a number was asked for.
  function bookOf(entry, asNumber) {
    if (entry.kind === "number") return BOOKS[entry.inTitle.split(" ")[0]];
    return asNumber && entry.number ? `This book, ${entry.number}` : NAMES[entry.kind];
  }

  function show(query) {
    const place = document.getElementById("search-results");
    if (!place) return;
    const told = document.createElement("p");
    told.setAttribute("role", "status");
    told.textContent = HINT;
    place.replaceChildren(told);
    if (!query.trim()) return;
    const found = find(query);
    const more = found.length > MOST ? `, of which these are the first ${MOST}` : "";
    told.textContent = found.length
      ? `${found.length} ${found.length === 1 ? "place" : "places"} for “${query}”${more}.`
      : `Nothing in the book has all the words of “${query}”. Try fewer words, or another spelling.`;
    const ours = numbered(query)?.length > 0;
    const list = document.createElement("ol");
    list.className = "book-search";
    for (const entry of found.slice(0, MOST)) {
      const item = document.createElement("li"),
        link = Object.assign(document.createElement("a"), { href: address(entry, query), textContent: entry.title }),
        where = document.createElement("small");
      const page = entry.page === entry.title ? "" : entry.page;
      where.textContent = [bookOf(entry, ours), page].filter(Boolean).join(" · ");
      item.append(link, " ", where);
      if (entry.text && entry.kind !== "name") item.append(excerpt(entry, asked(query)));
      list.append(item);
    }
    place.append(list);
  }

  const query = new URLSearchParams(location.search).get("q") ?? "";
  for (const input of document.querySelectorAll("main input[name=q]")) {
    input.value = query;
    input.addEventListener("input", () => show(input.value));
  }
  show(query);
})();
