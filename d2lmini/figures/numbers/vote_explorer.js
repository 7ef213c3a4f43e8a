// Samples of one question vote.

/**
 * The numbers of a sample, running sums and at the end the answer; null where none could be read.
 * @typedef {number[] | null} Sample
 */

/**
 * As `majority_vote` counts: answers with the samples of each, the commonest first, of equals the one that came up first;
 * `abstained` have none. `tied` are those with the `most` votes.
 * @param {Sample[]} samples
 */
export function count(samples) {
  const votes = /** @type {Map<number, number[]>} */ (new Map()),
    abstained = /** @type {number[]} */ ([]);
  samples.forEach((numbers, k) => {
    const answer = numbers?.at(-1);
    if (answer === undefined) abstained.push(k);
    else votes.set(answer, [...(votes.get(answer) ?? []), k]);
  });
  const ordered = [...votes].sort((a, b) => b[1].length - a[1].length),
    most = ordered[0]?.[1].length ?? 0;
  return { ordered, abstained, most, tied: ordered.filter(([, of]) => of.length === most).map(([answer]) => answer) };
}

/**
 * The right way to a sum, the sum itself left out: after the second number, the third, ...
 * @param {number[]} summands
 */
export function rightSteps([first, ...others]) {
  let sum = first;
  return others.slice(0, -1).map((number) => {
    sum += number;
    return sum;
  });
}
