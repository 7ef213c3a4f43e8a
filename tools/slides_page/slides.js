// Starts the slides once formulas are set, and makes what is too large for its slide smaller.
(() => {
  const ROOM = 720 - 26 - 20; // pixels of a slide
  function fit(slide) {
    const body = slide?.querySelector(".fit");
    if (!body || body.dataset.fitted) return;
    body.dataset.fitted = "yes";
    const room = ROOM - (body.offsetTop || 0),
      width = body.parentElement.clientWidth - 96,
      zoom = Math.min(1, room / body.scrollHeight, width / body.scrollWidth);
    if (zoom < 1) body.style.zoom = zoom.toFixed(3);
  }
  new Promise((done) => addEventListener("load", done))
    .then(() => window.MathJax?.startup?.promise)
    .then(() => Reveal.initialize({ width: 1280, height: 720, margin: 0.02, center: false, hash: true, transition: "none",
      slideNumber: "c/t", viewDistance: 3, plugins: [RevealNotes] }))
    .then(() => {
      fit(Reveal.getCurrentSlide());
      Reveal.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
      document.documentElement.dataset.slides = "ready";
    });
})();
