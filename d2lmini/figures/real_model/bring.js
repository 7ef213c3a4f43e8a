// The way of the real model's pieces into the worker: what has come stays there, until the worker goes.
import { LIVE } from "../page/host.js";
import { bringPieces } from "../page/piece_sources.js";

/**
 * @typedef {import("../page/piece_sources.js").Piece} Piece
 * @typedef {import("../page/piece_sources.js").Source} Source
 */

/**
 * @param {string} name
 * @param {import("../page/piece_sources.js").Store} store
 */
export function realModelPieces(name, store) {
  let manifest = /** @type {{ pieces: Piece[] } | null} */ (null),
    feed = /** @type {Awaited<ReturnType<typeof LIVE.feed>> | null} */ (null);

  return {
    // Whether some of it may be there.
    begun: () => feed !== null,
    forget() {
      feed = null;
    },
    /**
     * Brings what is missing: from the store, else from `sourceOf(pieces)`. Returns a sentence about it.
     * @param {(pieces: Piece[]) => (Source & { wrong?: string }) | null} sourceOf
     * @param {{ keep: () => boolean, signal: AbortSignal, told: (bytes: number) => void, anew: () => void,
     *   last: () => void }} page  `anew()` hears that nothing is there yet, `last()` that all pieces have come
     */
    async bring(sourceOf, { keep, signal, told, anew, last }) {
      const began = performance.now();
      manifest ??= await LIVE.manifest(name).catch(() => {
        throw new Error("its list of pieces cannot be reached; perhaps the network is down, or this book has none");
      });
      const { pieces } = /** @type {{ pieces: Piece[] }} */ (manifest),
        source = sourceOf(pieces);
      if (source?.wrong) throw new Error(source.wrong);
      if (!feed) anew();
      feed ??= await LIVE.feed(manifest);
      const into = feed,
        lacking = await into.missing(),
        done = new Set(pieces.keys());
      for (const i of lacking) done.delete(i);
      const hand = async (i, buffer) => {
        try {
          await into.piece(i, buffer);
        } catch (/** @type {any} */ error) {
          if (!/damaged/.test(error.message)) feed = null; // the worker has gone, and what it had with it
          throw error;
        }
      };
      const { stored, refused } = await bringPieces(pieces, source, { done, hand, store, keep: keep(), signal, told });
      last();
      await into.done();
      const from = stored === lacking.length ? " from this browser" : "",
        not = refused && keep() ? ` This browser did not keep it: ${refused}.` : "";
      return `Loaded${from} in ${((performance.now() - began) / 1000).toFixed(1)} s.${not}`;
    },
  };
}
