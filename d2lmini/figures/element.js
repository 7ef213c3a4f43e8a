// The element form: a plain object plays the widget model, and the children stay if anything fails.
class PageModel {
  #state;
  #host;
  #handlers = {};
  constructor(state, host) {
    this.#state = state;
    this.#host = host;
  }
  get(key) {
    return this.#state[key];
  }
  set(key, value) {
    this.#state[key] = value;
    for (const handler of this.#handlers["change:" + key] ?? []) handler();
  }
  // what stands beside a figure may follow it: the code of the front page does
  save_changes() {
    this.#host.dispatchEvent(new CustomEvent("d2lmini-change", { detail: this.#state }));
  }
  on(event, handler) {
    this.#handlers[event] ??= [];
    this.#handlers[event].push(handler);
  }
}
if (!customElements.get(TAG)) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  customElements.define(
    TAG,
    class extends HTMLElement {
      connectedCallback() {
        if (this.dataset.ready) return;
        const live = document.createElement("div");
        try {
          figure({ model: new PageModel(JSON.parse(this.dataset.state), this), el: live });
          this.replaceChildren(live);
          this.dataset.ready = "yes";
        } catch (error) {
          this.dataset.ready = "failed";
          console.error(TAG, error);
        }
      }
    },
  );
}
