// The playground's settings in the address of the page, and what can be copied of them.
import { add, button } from "../base/index.js";
import { addressOf, settingsOf } from "../live/playground_settings.js";

const ADDRESS_WAIT = 300; // milliseconds: a browser refuses more than some changes a second

/**
 * @typedef {import("../live/playground_settings.js").Settings} Settings
 * @typedef {{ settings: Settings, said: string, challenge: string | null }} Opened
 */

// `taken({settings, said, challenge})` follows an address that the reader opens; `said` is what to tell of it. Returns
// {read, write}: `read()` does as if it was opened now.
/** @param {HTMLElement} el @param {(opened: Opened) => void} taken */
export function playgroundAddress(el, taken) {
  let challenge = /** @type {string | null} */ (null),
    timer = 0,
    written = /** @type {string | null} */ (null);

  function read(address = location.href) {
    const text = new URL(address).hash.slice(1);
    if (!text.includes("=") || text === written) return false; // a heading of the page, or its own
    const parts = new URLSearchParams(text);
    challenge = parts.get("challenge");
    parts.delete("challenge");
    const { settings, unknown } = settingsOf(parts.toString());
    const short = unknown.slice(0, 4).map((part) => (part.length > 40 ? `${part.slice(0, 39)}…` : part));
    const said = [];
    if (unknown.length)
      said.push(`Left out, it is no setting of the playground: ${short.join(", ")}${unknown.length > 4 ? " …" : ""}.`);
    taken({ settings, challenge, said: said.join(" ") });
    return true;
  }

  /** @param {Settings} settings */
  function now(settings) {
    const parts = new URLSearchParams(addressOf(settings));
    if (challenge) parts.set("challenge", challenge);
    return parts.toString();
  }

  /** @param {Settings} settings */
  function write(settings) {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (!el.isConnected) return;
      written = now(settings);
      history.replaceState(history.state, "", written ? `#${written}` : location.pathname + location.search);
    }, ADDRESS_WAIT);
  }

  addEventListener("hashchange", function heard({ newURL }) {
    if (!el.isConnected) removeEventListener("hashchange", heard);
    else read(newURL); // `write` may have come in between
  });
  return {
    read,
    write,
    link: (/** @type {Settings} */ settings) => `${location.href.split("#")[0]}#${now(settings)}`,
  };
}

// Buttons that copy a text, {label: () => text}; where the page may not, the text stands in a field.
/**
 * @param {HTMLElement} parent @param {HTMLElement} below @param {Record<string, () => string>} texts
 * @param {(text: string) => void} say
 */
export function playgroundCopies(parent, below, texts, say) {
  const field = add(below, "textarea", {
    rows: 4,
    readonly: "",
    "aria-label": "to be copied from here",
    style: "display: none; width: 100%; font-family: ui-monospace, monospace",
  });
  for (const [label, text] of Object.entries(texts))
    button(parent, label, async () => {
      const copied = text();
      try {
        await navigator.clipboard.writeText(copied);
        field.style.display = "none";
        say("Copied.");
      } catch {
        field.value = copied;
        field.style.display = "";
        field.focus();
        field.select();
        say("Copy it from the field.");
      }
    });
}
