// What a reader did, for the scripts of exercises and of the page on progress.
import { PROGRESS, Progress } from "./parts/progress.js";
import { OURS } from "./parts/storage.js";

window.bookProgress = new Progress();
addEventListener("storage", ({ key }) => {
  if (key === OURS + PROGRESS || key === null) window.bookProgress.renew(); // null: all was cleared
});
