// The page's side: weights in pieces, too large for a script. They come from the book's host, out of files that a
// reader picks, or from the browser's own store; each is checked and handed on. What has come stays.

/**
 * @typedef {{ file: string, bytes: number, sha256: string }} Piece  as the manifest has it
 * @typedef {{ signal: AbortSignal, told: (bytes: number) => void }} Hearing  `told` hears how much of a piece has come
 * @typedef {((piece: Piece, hearing: Hearing) => Promise<ArrayBuffer>) & { spoilt?: (piece: Piece) => void }} Source
 * @typedef {{ get: (piece: Piece) => Promise<ArrayBuffer | undefined>, drop: (piece: Piece) => Promise<unknown>,
 *   put: (piece: Piece, buffer: ArrayBuffer) => Promise<unknown> }} Store
 */

// The browser's own store of pieces, by their checksums; where a page has none, its functions reject.
export function pieceStore(name = "d2lmini-pieces") {
  /**
   * @template Result
   * @param {IDBRequest<Result>} request
   * @returns {Promise<Result>}
   */
  const asked = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
      Object.assign(request, { onblocked: () => reject(new Error("another page of the book has it open")) });
    });
  /**
   * @template Result
   * @param {IDBTransactionMode} mode
   * @param {(pieces: IDBObjectStore) => IDBRequest<Result>} act
   */
  async function within(mode, act) {
    const opening = indexedDB.open(name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("pieces");
    const base = await asked(opening);
    try {
      const work = base.transaction("pieces", mode),
        done = new Promise((resolve, reject) => {
          work.oncomplete = resolve;
          work.onabort = () => reject(work.error ?? new Error("there is no room"));
        });
      done.catch(() => {}); // heard of below, or by `asked`
      const result = await asked(act(work.objectStore("pieces")));
      await done;
      return result;
    } finally {
      base.close();
    }
  }
  // To look makes no store where there is none; an old browser cannot say.
  const there = async () => !indexedDB.databases || (await indexedDB.databases()).some((one) => one.name === name);
  return {
    get: async ({ sha256 }) => ((await there()) ? within("readonly", (pieces) => pieces.get(sha256)) : undefined),
    put: ({ sha256 }, buffer) => within("readwrite", (pieces) => pieces.put(buffer, sha256)),
    drop: async ({ sha256 }) => ((await there()) ? within("readwrite", (pieces) => pieces.delete(sha256)) : undefined),
    forget: async () => asked(indexedDB.deleteDatabase(name)),
    count: async () => ((await there()) ? within("readonly", (pieces) => pieces.count()) : 0),
  };
}

/**
 * From the book's host.
 * @param {string} folder
 * @returns {Source}
 */
export function piecesOfHost(folder) {
  const damaged = new Set(); // files that came damaged: a cache between may hold them
  /** @type {Source} */
  const source = async ({ file, bytes }, { signal, told }) => {
    const broken = (/** @type {string} */ why) => (error) => {
      throw signal.aborted ? error : new Error(why);
    };
    const gone = broken(`${file} cannot be reached; perhaps the network is down`),
      cache = damaged.has(file) ? "reload" : "default",
      response = await fetch(folder + file, { signal, cache }).catch(gone);
    if (!(response.ok && response.body)) {
      damaged.add(file);
      throw new Error(`the server answers ${response.status} for ${file}`);
    }
    const all = new Uint8Array(bytes),
      reader = response.body.getReader();
    let at = 0;
    while (at <= bytes) {
      const { done, value } = await reader.read().catch(broken(`the connection broke in the middle of ${file}`));
      if (done) break;
      if (at + value.length <= bytes) all.set(value, at);
      at += value.length;
      told(Math.min(at, bytes));
    }
    if (at === bytes) return all.buffer;
    damaged.add(file);
    reader.cancel().catch(() => {});
    throw new Error(`${file} has ${at > bytes ? "more than " : ""}${Math.min(at, bytes)} bytes, expected ${bytes}`);
  };
  return Object.assign(source, { spoilt: ({ file }) => damaged.add(file) });
}

/**
 * Out of files that a reader picked: the pieces by their names, or one file with all of them one after the other.
 * `wrong` is what there is to say of them, or "".
 * @param {File[]} files
 * @param {Piece[]} pieces
 * @returns {Source & { wrong: string }}
 */
export function piecesOfFiles(files, pieces) {
  const named = new Map(Array.from(files, (one) => [one.name, one])),
    total = pieces.reduce((sum, { bytes }) => sum + bytes, 0),
    whole = files.length === 1 && files[0].size === total ? files[0] : null;
  const missing = whole ? [] : pieces.filter(({ file }) => !named.has(file)).map(({ file }) => file);
  /** @type {Source} */
  const source = async (piece, { told }) => {
    const at = pieces.slice(0, pieces.indexOf(piece)).reduce((sum, { bytes }) => sum + bytes, 0);
    const found = whole ? whole.slice(at, at + piece.bytes) : /** @type {File} */ (named.get(piece.file));
    if (found.size !== piece.bytes) throw new Error(`${piece.file} has ${found.size} bytes, expected ${piece.bytes}`);
    const buffer = await found.arrayBuffer().catch(() => {
      throw new Error(`${piece.file} cannot be read`);
    });
    told(piece.bytes);
    return buffer;
  };
  const few = `${missing.slice(0, 3).join(", ")}${missing.length > 3 ? ` and ${missing.length - 3} more` : ""}`;
  const none = missing.length === pieces.length ? "none of these files is a piece of the model, expected" : "missing:";
  return Object.assign(source, { wrong: missing.length ? `${none} ${few}` : "" });
}

/** @type {Source} */
const nowhere = async ({ file }) => {
  throw new Error(`the browser's store has not got ${file}`);
};

/**
 * Whether a piece is what it was when it was made; true where a page may not compute it: over http from elsewhere.
 * @param {Piece} piece
 * @param {ArrayBuffer} buffer
 */
export async function pieceIntact({ bytes, sha256 }, buffer) {
  if (buffer.byteLength !== bytes) return false;
  if (!globalThis.crypto?.subtle) return true;
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", buffer));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("") === sha256;
}

/**
 * Brings the pieces that `done`, a set of indices, lacks, and hands each on by `hand(i, buffer)`, which may take the
 * buffer away. The store is asked first, then `source`, null for none. `keep`: what comes is stored. `told(bytes)`
 * hears how much is there. A promise of {stored, refused}: how many came from the store, why it took no more, or "".
 * @param {Piece[]} pieces
 * @param {Source | null} source
 * @param {{ done: Set<number>, hand: (i: number, buffer: ArrayBuffer) => Promise<unknown>, store: Store,
 *   keep?: boolean, signal: AbortSignal, told?: (bytes: number) => void }} settings
 */
export async function bringPieces(pieces, source, { done, hand, store, keep = false, signal, told = () => {} }) {
  const there = () => pieces.reduce((sum, { bytes }, i) => sum + (done.has(i) ? bytes : 0), 0);
  const bring = source ?? nowhere;
  let refused = "",
    stored = 0;
  for (const [i, piece] of pieces.entries()) {
    if (done.has(i)) continue;
    signal.throwIfAborted();
    const spoilt = () => {
      source?.spoilt?.(piece);
      return store.drop(piece).catch(() => {});
    };
    const own = await store.get(piece).catch(() => undefined),
      found = own && (await pieceIntact(piece, own));
    if (own && !found) await spoilt();
    const before = there();
    const buffer = found ? own : await bring(piece, { signal, told: (bytes) => told(before + bytes) });
    signal.throwIfAborted();
    if (!found && !(await pieceIntact(piece, buffer))) {
      await spoilt();
      throw new Error(`${piece.file} is damaged: its SHA-256 is not the one that it was made with`);
    }
    if (!found && keep && !refused)
      await store.put(piece, buffer).catch((error) => {
        refused = error?.message || "there is no room";
      });
    await hand(i, buffer).catch(async (error) => {
      await spoilt();
      throw error;
    });
    stored += found ? 1 : 0;
    done.add(i);
    told(there());
  }
  return { stored, refused };
}
