// Where the words of two sentences stand.

/**
 * The middle of each word along its list, and how long the lists are: each word has its room, and the shorter list is
 * spread to the length of the longer one; `before` is what precedes both.
 * @param {number[][]} rooms
 * @param {number} before
 */
export function spread(rooms, before) {
  const totals = rooms.map((side) => side.reduce((a, b) => a + b, 0)),
    longest = Math.max(...totals);
  const middles = rooms.map((side, k) => {
    const gap = (longest - totals[k]) / side.length;
    let end = before;
    return side.map((own) => {
      end += own + gap;
      return end - (own + gap) / 2;
    });
  });
  return { middles, length: longest + before + 4 };
}
