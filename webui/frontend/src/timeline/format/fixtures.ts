/** Small files for the tests, written as docs/timeline-format.md says. */

import { crc32, type Block } from "./container";
import type { NodeColumns, RankHeader, Tile } from "./rank";

/** The byte planes of columns of numbers, by their widths in bytes. */
export function planes(columns: [number, number[]][]): Uint8Array {
  const bytes: number[] = [];
  for (const [width, values] of columns)
    for (let plane = 0; plane < width; plane++)
      for (const value of values) bytes.push(Number((BigInt(value) >> BigInt(8 * plane)) & 0xffn));
  return Uint8Array.from(bytes);
}

/** A gzip member that holds up to 65,535 bytes as they are. */
function store(data: Uint8Array): Uint8Array {
  const tail = new DataView(new ArrayBuffer(8));
  tail.setUint32(0, crc32(data), true);
  tail.setUint32(4, data.length, true);
  const length = [data.length & 255, data.length >> 8];
  const head = [31, 139, 8, 0, 0, 0, 0, 0, 0, 255, 1, ...length, ...length.map((byte) => byte ^ 255)];
  return Uint8Array.from([...head, ...data, ...new Uint8Array(tail.buffer)]);
}

/** A file of a header and blocks; the header is made of where the blocks lie. */
export function makeFile(blocks: Uint8Array[], header: (blocks: Block[]) => unknown): Uint8Array {
  const packed = blocks.map((block) => store(block));
  let offset = 0;
  const places = packed.map((data, at) => {
    const block = { offset, length: data.length, decoded: blocks[at]!.length, crc32: crc32(data) };
    offset += data.length;
    return block;
  });
  const text = new TextEncoder().encode(JSON.stringify(header(places)));
  const head = store(text);
  const preamble = new DataView(new ArrayBuffer(28));
  preamble.setUint32(0, 0x4c545046, true);
  preamble.setUint16(4, 1, true);
  preamble.setUint32(8, head.length, true);
  preamble.setUint32(12, text.length, true);
  preamble.setUint32(16, crc32(head), true);
  preamble.setBigUint64(20, BigInt(offset), true);
  return Uint8Array.from([...new Uint8Array(preamble.buffer), ...head, ...packed.flatMap((data) => [...data])]);
}

/** A rank with a stream and a thread of two depths, one tile of three rows, one iteration with one stage. */
export function makeRank(change: (header: RankHeader) => void = () => {}): Uint8Array {
  const tile = planes([
    [1, [0, 1, 2]],
    [2, [0, 1, 1]],
    [4, [50, 0, 10]],
    [4, [30, 100, 40]],
    [4, [36, 0, 0]],
    [1, [1, 0, 0]],
  ]);
  const nodes = planes([
    [4, [-1, 0, 1]],
    [1, [0, 1, 2]],
    [4, [0, 0, 1]],
    [8, [0, 0, 10]],
    [8, [100, 100, 40]],
    [4, [2, 2, 0]],
    [8, [30, 30, 30]],
  ]);
  return makeFile([nodes, tile], ([tree, block]) => {
    const header = makeHeader();
    header.nodes = { block: tree!, count: 3, left_out: 0 };
    header.levels = [
      {
        bucket_ns: 0,
        rows: 3,
        tiles: {
          start_ns: [0],
          offset: [block!.offset],
          length: [block!.length],
          crc32: [block!.crc32],
          rows: [3],
          carried: [0],
          max_duration_ns: [100],
          flags: [2],
        },
      },
    ];
    change(header);
    return header;
  });
}

/** The header of such a rank, without tiles. */
export function makeHeader(): RankHeader {
  return {
    form: "fleetprof-timeline-rank",
    rank: 0,
    kind: "gpu",
    origin_ns: "1790857026000000123",
    time_origin: "unix",
    span_ns: 100,
    rows: 3,
    left_out: 0,
    whole: true,
    classes: ["compute", "communication_exposed", "communication_overlapped", "memory", "data_loading", "host", "optimizer"],
    stages: ["data_loading", "forward", "loss", "backward", "zero_grad", "optimizer", "host", "other"],
    tracks: { kind: ["stream", "thread"], owner: ["0", "77"], name: ["7", "78"], main: 1 },
    lanes: { track: [0, 1, 1], depth: [0, 0, 1] },
    names: { text: ["gemm", "aten::mm"], short: ["", ""], cls: [0, 5], count: [1, 2], total_ns: [30, 140] },
    levels: [],
    iterations: { index: [7], start_ns: [0], duration_ns: [100] },
    stage_pieces: { iteration: [0], stage: [1], start_ns: [0], duration_ns: [100] },
    nodes: { block: { offset: 0, length: 0, decoded: 0, crc32: 0 }, count: 0, left_out: 0 },
  };
}

/** A tile of rows (lane, start, duration, name, count), sorted by lane and start; the first `carried` are carried in. */
export function makeTile(lanes: number, rows: [number, number, number, number, number][], carried = 0): Tile {
  const column = (at: 0 | 1 | 2 | 3 | 4) => rows.map((row) => row[at]);
  const own = column(0).map((lane, row) => (row < carried ? -1 : lane));
  return {
    rows: rows.length,
    carried,
    lane: Uint8Array.from(column(0)),
    start: Float64Array.from(column(1)),
    duration: Float64Array.from(column(2)),
    name: Uint16Array.from(column(3)),
    count: Uint32Array.from(column(4)),
    covered: null,
    launch: null,
    launchLane: null,
    laneBegin: Uint32Array.from({ length: lanes + 1 }, (_, lane) => {
      const first = own.findIndex((one) => one >= lane);
      return first < 0 ? rows.length : first;
    }),
  };
}

/** A tree of (parent, kind, item, start, duration). */
export function makeNodes(nodes: [number, number, number, number, number][]): NodeColumns {
  const column = (at: 0 | 1 | 2 | 3 | 4) => nodes.map((node) => node[at]);
  return {
    parent: Int32Array.from(column(0)),
    kind: Uint8Array.from(column(1)),
    item: Uint32Array.from(column(2)),
    start_ns: Float64Array.from(column(3)),
    duration_ns: Float64Array.from(column(4)),
    below: new Uint32Array(nodes.length),
    device_ns: new Float64Array(nodes.length),
  };
}
