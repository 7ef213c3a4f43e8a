// Corpus BLEU: runs of one to four words that translations share with one reference each.
const LONGEST_RUN = 4;

// Lower-cased words between spaces.
const wordsOf = (/** @type {string} */ text) => text.toLowerCase().split(/\s+/u).filter(Boolean);

/** @param {string[]} words @param {number} size */
function runsOf(words, size) {
  const counts = /** @type {Map<string, number>} */ (new Map());
  for (let i = 0; i + size <= words.length; i++) {
    const run = words.slice(i, i + size).join(" ");
    counts.set(run, (counts.get(run) ?? 0) + 1);
  }
  return counts;
}

// From 0 to 100, as sacrebleu with `lowercase=True` and `tokenize="none"`: where no run of a size is right, it counts
// half, then a quarter, of one ("exp").
/** @param {string[]} translations @param {string[]} references */
export function corpusBleu(translations, references) {
  const right = Array(LONGEST_RUN).fill(0),
    all = Array(LONGEST_RUN).fill(0);
  let written = 0,
    wanted = 0;
  translations.forEach((translation, i) => {
    const own = wordsOf(translation),
      reference = wordsOf(references[i]);
    written += own.length;
    wanted += reference.length;
    for (let n = 1; n <= LONGEST_RUN; n++) {
      const there = runsOf(reference, n);
      for (const [run, count] of runsOf(own, n)) {
        all[n - 1] += count;
        right[n - 1] += Math.min(count, there.get(run) ?? 0);
      }
    }
  });
  if (!right[0] || all.includes(0)) return 0;
  let zeros = 0;
  const logs = right.map((count, n) => Math.log((count || 2 ** -++zeros) / all[n]));
  const brevity = written < wanted ? Math.exp(1 - wanted / written) : 1;
  return 100 * brevity * Math.exp(logs.reduce((a, b) => a + b) / LONGEST_RUN);
}
