/**
 * The tiles that the page has, at most so many bytes of them: the ones not drawn for longest go first.
 *
 * Guarantees: a tile is asked for once while it is under way; one that could not be read is told, not asked for again.
 */

import type { Tile } from "../format/rank";

export const MOST_BYTES = 64 << 20;

export class TileCache {
  readonly #tiles = new Map<string, { tile: Tile; bytes: number }>();
  readonly #most: number;
  #bytes = 0;

  constructor(mostBytes = MOST_BYTES) {
    this.#most = mostBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The tile, which becomes the last to go. */
  get(key: string): Tile | undefined {
    const found = this.#tiles.get(key);
    if (!found) return undefined;
    this.#tiles.delete(key);
    this.#tiles.set(key, found);
    return found.tile;
  }

  set(key: string, tile: Tile): void {
    const bytes = bytesOf(tile);
    this.#bytes += bytes - (this.#tiles.get(key)?.bytes ?? 0);
    this.#tiles.delete(key);
    this.#tiles.set(key, { tile, bytes });
    for (const [oldest, entry] of this.#tiles) {
      if (this.#bytes <= this.#most || oldest === key) break;
      this.#tiles.delete(oldest);
      this.#bytes -= entry.bytes;
    }
  }
}

function bytesOf(tile: Tile): number {
  return Object.values(tile).reduce((sum, value) => sum + (ArrayBuffer.isView(value) ? value.byteLength : 0), 0);
}
