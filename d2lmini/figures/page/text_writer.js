// A text that a model writes on: what it is asked for, what has come, and what is shown of that, at a reader's pace.

export const MOST = 2000; // characters of a text
// how often the page shows what has come, in milliseconds, and how many characters then
export const PACES = {
  slow: { name: "slow", wait: 200, most: 1 },
  reading: { name: "reading", wait: 40, most: 1 },
  fast: { name: "full speed", wait: 16, most: MOST },
  still: { name: "without motion", wait: 1000, most: MOST },
};

/**
 * @typedef {{ at: number, token: number, first: number, logits: Float32Array, weights: Float32Array,
 *   cost: { positions: number, milliseconds: number } | null }} Row  what is known at a character: live/write.js
 */

/**
 * `ask` and `stop` are those of one question to the model; `settings()` what it is asked with, and the pace; `paint()`
 * follows a change, `say` tells of one.
 * @param {{ ask: (options: object, take: (step: { rows: Row[] }) => void) => Promise<unknown>, stop: () => void,
 *   settings: () => { pace: string, cache: boolean }, alive: () => boolean, paint: () => void,
 *   say: (text: string) => void }} page
 */
export function textWriter({ ask, stop, settings, alive, paint, say }) {
  const now = {
    text: /** @type {number[]} */ ([]), // ids of all characters
    given: 0, // so many of them are the prompt
    rows: /** @type {Row[]} */ ([]),
    at: /** @type {number | null} */ (null), // which character is looked at; null: the newest
    left: 0, // how many characters are still to be shown
    spent: [true, false].map((cache) => ({ cache, characters: 0, positions: 0, milliseconds: 0 })),
  };
  let draws = 0, // random numbers that are used up
    queue = /** @type {Row[]} */ ([]), // what was written and is not shown yet
    timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);

  // Asks the model to go on from the text as it is shown. What it was asked before is over.
  function write(/** @type {number} */ count) {
    halt();
    now.left = Math.min(count, MOST - now.text.length);
    const { pace: _, ...set } = settings();
    ask({ ...set, tokens: now.text, count: now.left, draws }, ({ rows }) => {
      for (const row of rows) {
        if (row.cost) queue.push(row);
        else now.rows[row.at] = row;
      }
      showLater();
    }).catch((error) => {
      halt();
      paint();
      say(`The model has stopped: ${error.message}.`);
    });
    paint();
  }

  function halt() {
    stop();
    queue = [];
    now.left = 0;
    clearTimeout(timer);
    timer = undefined;
  }

  function showLater() {
    const { wait, most } = PACES[settings().pace];
    timer ||= setTimeout(show, now.left ? wait : 0, most);
  }

  function show(/** @type {number} */ most) {
    timer = undefined;
    if (!alive()) return halt();
    const [spent] = now.spent.filter(({ cache }) => cache === settings().cache);
    for (const row of queue.splice(0, most)) {
      now.rows[row.at] = row;
      now.text[row.at] = row.token;
      draws++;
      now.left--;
      spent.characters++;
      spent.positions += row.cost?.positions ?? 0;
      spent.milliseconds += row.cost?.milliseconds ?? 0;
    }
    if (queue.length) showLater();
    else if (!now.left && now.rows[now.text.length - 1]) {
      halt();
      if (draws) say(`The text has ${now.text.length} characters, ${now.given} of them the prompt.`);
    }
    paint();
  }

  return {
    now,
    // Begins with a prompt.
    begin(/** @type {number[]} */ ids) {
      Object.assign(now, { text: ids, given: ids.length, rows: [], at: null });
      draws = 0;
      write(0);
    },
    go(/** @type {number} */ count) {
      now.at = null;
      if (now.text.length < MOST) write(count);
      else say(`The text has ${MOST} characters, as many as fit: go back to an earlier one.`);
    },
    pause() {
      halt();
      paint();
      say(`Paused at character ${now.text.length}.`);
    },
    // What was changed holds from the next character on.
    resume() {
      if (now.left) write(now.left);
      else paint();
    },
    // Asks anew for what is known at each character.
    reread() {
      now.rows = [];
      write(now.left);
    },
    // Takes the text back to a character, and puts another after it if one is named. Whether the prompt is shorter.
    back(/** @type {number} */ i, id = /** @type {number | null} */ (null)) {
      const shorter = i + 1 < now.given;
      now.text = [...now.text.slice(0, i + 1), ...(id === null ? [] : [id])];
      now.rows = now.rows.slice(0, i + 1);
      now.given = Math.min(now.given, i + 1);
      return shorter;
    },
  };
}
