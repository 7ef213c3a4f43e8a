// The element form: a plain object plays the widget model, and the children stay if anything fails.
import { framed } from "./frame.js";
// @ts-expect-error: a text, which tools/bundle.mjs puts in
import style from "./style.css";

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

// Makes elements of the name `tag` show a figure: what its module exports, in the frame that all have.
export function show(tag, { render }) {
  if (customElements.get(tag)) return;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  customElements.define(
    tag,
    class extends HTMLElement {
      connectedCallback() {
        if (this.dataset.ready) return;
        const live = document.createElement("div"),
          { title, hint, state = "{}" } = this.dataset;
        try {
          framed(render, title, hint)({ model: new PageModel(JSON.parse(state), this), el: live });
          this.replaceChildren(live);
          this.dataset.ready = "yes";
        } catch (error) {
          this.dataset.ready = "failed";
          console.error(tag, error);
        }
      }
    },
  );
}
