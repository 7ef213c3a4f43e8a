// Starts the slides once formulas are set, and makes what is on each as large as its room allows.
(() => {
  const { Reveal, RevealNotes } = window;
  const MOST = { picture: 1.8, predict: 1, title: 1 }, // how many times larger than its own size
    OTHER = 1.3, // texts, tables, code
    LEAST = 0.3,
    [WIDTH, HEIGHT, BELOW] = [1280, 720, 24]; // pixels of a slide
  // The largest zoom at which all is on the slide; it is set.
  function largest(slide, body) {
    const bottom = () => body.getBoundingClientRect().bottom - slide.getBoundingClientRect().top;
    const room = Reveal.isPrintView() ? HEIGHT - 4 * BELOW : (HEIGHT - BELOW) * Reveal.getScale(); // print is wider
    const drawn = body.querySelector("[data-state], svg, img") || slide.dataset.kind !== "picture";
    let zoom = (drawn && MOST[slide.dataset.kind]) || OTHER;
    body.style.zoom = zoom;
    while (zoom > LEAST && (bottom() > room || body.scrollWidth > body.clientWidth + 1)) body.style.zoom = zoom -= 0.04;
    return zoom;
  }
  const area = (node) => node.getBoundingClientRect().width * node.getBoundingClientRect().height;
  const seen = (body) => Math.max(...[...body.querySelectorAll("svg, img, table")].map(area));
  function fit(slide) {
    const body = slide?.querySelector(".fit");
    if (!body) return;
    body.classList.remove("beside");
    if (largest(slide, body) >= 1 || slide.dataset.kind !== "picture") return;
    const below = seen(body);
    body.classList.add("beside"); // its caption
    largest(slide, body);
    if (seen(body) > below) return;
    body.classList.remove("beside");
    largest(slide, body);
  }
  function show(slide) {
    fit(slide);
    // a figure that comes alive has another size than its picture
    for (const node of slide.querySelectorAll("[data-state]:not([data-ready])"))
      new MutationObserver((_, self) => {
        self.disconnect();
        fit(slide);
      }).observe(node, { attributes: true });
  }
  new Promise((done) => addEventListener("load", done))
    .then(() => window.MathJax?.startup?.promise)
    .then(() =>
      Reveal.initialize({
        width: WIDTH,
        height: HEIGHT,
        margin: 0.02,
        center: false,
        hash: true,
        transition: "none",
        slideNumber: "c/t",
        viewDistance: 3,
        pdfMaxPagesPerSlide: 1,
        plugins: [RevealNotes],
      }),
    )
    .then(() => {
      for (const slide of Reveal.isPrintView() ? Reveal.getSlides() : [Reveal.getCurrentSlide()]) show(slide);
      Reveal.on("slidechanged", ({ currentSlide }) => show(currentSlide));
      document.documentElement.dataset.slides = "ready";
    });
})();
