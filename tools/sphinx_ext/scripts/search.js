// The search page: what the sections of the book (sections.js) have of what was typed, and where each word stands.
import { add } from "../../../d2lmini/figures/base/nodes.js";
import { all, one } from "./parts/page.js";
import { excerpt, Sections } from "./parts/sections.js";
import { number } from "./parts/text.js";

const MOST = 40;
const NAMES = { term: "", section: "", exercise: "Exercise", name: "Package" };
const BOOKS = { d2l: "Dive into Deep Learning", udl: "Understanding Deep Learning" };
const HINT = "Try a term, D2L 11.3, or UDL problem 12.5.";
const sections = new Sections(window.bookSections);

// Which book a number is of; a section of this one has its number where a number was asked for.
function bookOf(/** @type {import("./parts/sections.js").Entry} */ entry, /** @type {boolean} */ asNumber) {
  if (entry.kind === "number") return BOOKS[entry.inTitle.split(" ")[0]];
  return asNumber && entry.number ? `This book, ${entry.number}` : NAMES[entry.kind];
}

function show(/** @type {string} */ query) {
  const place = one(document, "#search-results");
  place.replaceChildren();
  const told = add(place, "p", { role: "status" }, HINT);
  if (!query.trim()) return;
  const found = sections.find(query);
  const more = found.length > MOST ? `, of which these are the first ${MOST}` : "";
  told.textContent = found.length
    ? `${number(found.length, "place")} for “${query}”${more}.`
    : `Nothing in the book has all the words of “${query}”. Try fewer words, or another spelling.`;
  const asNumber = sections.numbered(query).length > 0,
    phrases = sections.asked(query).flat();
  const list = add(place, "ol", { class: "book-search" });
  for (const entry of found.slice(0, MOST)) {
    const item = add(list, "li");
    add(item, "a", { href: sections.address(entry, query) }, entry.title);
    item.append(" ");
    const page = entry.page === entry.title ? "" : entry.page;
    add(item, "small", {}, [bookOf(entry, asNumber), page].filter(Boolean).join(" · "));
    if (!entry.text || entry.kind === "name") continue;
    const line = add(item, "p");
    excerpt(entry, phrases).forEach((piece, i) => {
      if (i % 2) add(line, "mark", {}, piece);
      else line.append(piece);
    });
  }
}

const query = new URLSearchParams(location.search).get("q") ?? "";
for (const input of all(document, "main input[name=q]", HTMLInputElement)) {
  input.value = query;
  input.addEventListener("input", () => show(input.value));
}
show(query);
