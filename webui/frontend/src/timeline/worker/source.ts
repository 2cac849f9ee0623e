/**
 * Reads timeline files by ranges, whether in a worker or in a test.
 *
 * Guarantees: a tile is one request of just its bytes; a file's preamble and header come with the first one, and mostly
 * the coarsest tiles with them; a server that ignores ranges is served by what it sent.
 */

import {
  findBlockProblem,
  inflate,
  PREAMBLE_BYTES,
  readHeader,
  readPreamble,
  Unreadable,
  type Block,
} from "../format/container";
import { cellTypes, checkFleetHeader, readFleet, type Fleet } from "../format/fleet";
import { rowBytes } from "../format/planes";
import {
  checkRankHeader,
  NODE_TYPES,
  readNodes,
  readTile,
  tileTypes,
  type NodeColumns,
  type RankHeader,
  type Tile,
} from "../format/rank";

const FIRST_BYTES = 192 << 10;

/** Bytes [from, to) of a file, or more from `from` on; `whole` says that they begin at 0 whatever was asked. */
export type FetchRange = (
  path: string,
  from: number,
  to: number,
  signal?: AbortSignal,
) => Promise<{ data: Uint8Array; whole: boolean }>;

/** Asks a server for ranges. `base` ends with a slash. */
export function rangesOf(base: string): FetchRange {
  return async (path, from, to, signal) => {
    const answer = await fetch(base + path, { headers: { Range: `bytes=${from}-${to - 1}` }, signal: signal ?? null });
    if (!answer.ok) throw new Unreadable(`${path}: the server answered ${answer.status}`);
    return { data: new Uint8Array(await answer.arrayBuffer()), whole: answer.status === 200 };
  };
}

interface OpenFile {
  bodyAt: number;
  bodyBytes: number;
  /** The file's first bytes, as far as they came with its header. */
  first: Uint8Array;
}

/** The files of one capture's timeline. */
export class Source {
  readonly #fetch: FetchRange;
  readonly #ranks = new Map<number, { file: OpenFile; header: RankHeader }>();

  constructor(fetchRange: FetchRange) {
    this.#fetch = fetchRange;
  }

  async fleet(): Promise<Fleet> {
    const { file, value } = await this.#open("fleet.bin");
    const header = checkFleetHeader(value);
    const bytes = header.cell_count * rowBytes(cellTypes(header));
    const { courses, course_count: count = 0 } = header;
    const blocks = await Promise.all([
      this.#block("fleet.bin", file, header.cells, bytes, "the iterations"),
      courses ? this.#block("fleet.bin", file, courses, count, "the courses") : new Uint8Array(),
    ]);
    return readFleet(header, ...blocks);
  }

  async rank(rank: number): Promise<RankHeader> {
    const { file, value } = await this.#open(pathOf(rank));
    const header = checkRankHeader(value);
    this.#ranks.set(rank, { file, header });
    return header;
  }

  /** The header of a rank; fetched where it is not known yet. */
  async header(rank: number): Promise<RankHeader> {
    return this.#ranks.get(rank)?.header ?? this.rank(rank);
  }

  async tile(rank: number, level: number, number: number, signal?: AbortSignal): Promise<Tile> {
    const { file, header } = this.#known(rank);
    const { tiles } = header.levels[level]!;
    const decoded = tiles.rows[number]! * rowBytes(tileTypes(header, level, number));
    const block = {
      offset: tiles.offset[number]!,
      length: tiles.length[number]!,
      crc32: tiles.crc32[number]!,
      decoded,
    };
    const what = `tile ${number} of level ${level}`;
    return readTile(header, level, number, await this.#block(pathOf(rank), file, block, decoded, what, signal));
  }

  async nodes(rank: number): Promise<NodeColumns> {
    const { file, header } = this.#known(rank);
    const decoded = header.nodes.count * rowBytes(NODE_TYPES);
    return readNodes(header, await this.#block(pathOf(rank), file, header.nodes.block, decoded, "the tree"));
  }

  #known(rank: number): { file: OpenFile; header: RankHeader } {
    const known = this.#ranks.get(rank);
    if (!known) throw new Unreadable(`rank ${rank} has not been opened`);
    return known;
  }

  async #open(path: string): Promise<{ file: OpenFile; value: unknown }> {
    let { data } = await this.#fetch(path, 0, FIRST_BYTES);
    const preamble = readPreamble(data);
    const bodyAt = PREAMBLE_BYTES + preamble.headerBytes;
    if (data.length < bodyAt) {
      const rest = await this.#fetch(path, data.length, bodyAt);
      const from = rest.whole ? data.length : 0;
      const joined = new Uint8Array(bodyAt);
      joined.set(data);
      joined.set(rest.data.subarray(from, from + bodyAt - data.length), data.length);
      data = joined;
    }
    const value = await readHeader(preamble, data.subarray(PREAMBLE_BYTES, bodyAt));
    return { file: { bodyAt, bodyBytes: preamble.bodyBytes, first: data }, value };
  }

  async #block(
    path: string,
    file: OpenFile,
    block: Block,
    decoded: number,
    what: string,
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    const problem = findBlockProblem(block, file.bodyBytes, decoded);
    if (problem) throw new Unreadable(`${what}: ${problem}`);
    const from = file.bodyAt + block.offset;
    const to = from + block.length;
    let packed = file.first.subarray(from, to);
    if (packed.length < block.length) {
      const answer = await this.#fetch(path, from, to, signal);
      packed = answer.whole ? answer.data.subarray(from, to) : answer.data.subarray(0, block.length);
    }
    return inflate(packed, decoded, block.crc32, what);
  }
}

function pathOf(rank: number): string {
  return `rank-${rank}.bin`;
}
