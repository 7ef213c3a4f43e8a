// The page 404.html is shown in any folder of the book: its links are named from the folder of the book.
const root = location.pathname.replace(/((?:chapters|exercises|_sources|_static|_images)\/.*|[^/]*)$/, "");
for (const link of document.links) link.setAttribute("href", root + link.getAttribute("href"));
document.forms[0].setAttribute("action", root + "search.html");
