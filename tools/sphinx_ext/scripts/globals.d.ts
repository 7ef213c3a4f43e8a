// What scripts leave in a page for others: ours, those of the theme and of reveal.js.
import type { Progress } from "./parts/progress.js";
import type { Found } from "./parts/sections.js";

declare global {
  interface Window {
    awaitPrediction: (answer: HTMLElement, name: string) => void;
    bookProgress: Progress;
    bookSections: Found;
    MathJax?: { startup?: { promise?: Promise<void> } };
    Reveal: any;
    RevealNotes: any;
  }
}
