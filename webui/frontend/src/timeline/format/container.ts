/**
 * The form of a timeline file (docs/timeline-format.md): a preamble, a JSON header, blocks that are inflated alone.
 *
 * Guarantees: lengths and checksums are checked before anything is allocated for them; what does not fit is refused
 * with a sentence.
 */

export const PREAMBLE_BYTES = 28;
const MAGIC = 0x4c545046; // "FPTL"
const MAJOR = 1;
const MOST_HEADER_BYTES = 64 << 20;
const MOST_BLOCK_BYTES = 64 << 20;

/** Not a timeline file that can be read here; the message says what is wrong with it. */
export class Unreadable extends Error {}

export interface Preamble {
  headerBytes: number;
  decodedBytes: number;
  crc32: number;
  bodyBytes: number;
}

/** Where a compressed block lies in the body, and how long it is when inflated. */
export interface Block {
  offset: number;
  length: number;
  decoded: number;
  crc32: number;
}

/** The preamble of a file. Throws Unreadable. */
export function readPreamble(data: Uint8Array): Preamble {
  if (data.length < PREAMBLE_BYTES) throw new Unreadable(`${data.length} bytes are too few for a timeline`);
  const view = new DataView(data.buffer, data.byteOffset, PREAMBLE_BYTES);
  if (view.getUint32(0, true) !== MAGIC) throw new Unreadable("not a timeline: it begins with other bytes");
  const major = view.getUint16(4, true);
  if (major !== MAJOR) throw new Unreadable(`a timeline of form ${major}; this page reads ${MAJOR}: upgrade fleetprof`);
  const found = {
    headerBytes: view.getUint32(8, true),
    decodedBytes: view.getUint32(12, true),
    crc32: view.getUint32(16, true),
    bodyBytes: Number(view.getBigUint64(20, true)),
  };
  if (found.headerBytes > MOST_HEADER_BYTES || found.decodedBytes > MOST_HEADER_BYTES)
    throw new Unreadable("a header longer than is allowed");
  if (!Number.isSafeInteger(found.bodyBytes)) throw new Unreadable("a body longer than any file");
  return found;
}

/** The header of a file, from its compressed bytes. Throws Unreadable. */
export async function readHeader(preamble: Preamble, packed: Uint8Array): Promise<unknown> {
  const text = await inflate(packed, preamble.decodedBytes, preamble.crc32, "the header");
  try {
    return JSON.parse(new TextDecoder().decode(text));
  } catch {
    throw new Unreadable("the header is not JSON");
  }
}

/** Says why a block cannot be one of a body of so many bytes; empty where it can. */
export function findBlockProblem(block: Block, bodyBytes: number, expectedBytes: number): string {
  const numbers = [block.offset, block.length, block.decoded, block.crc32];
  if (!numbers.every((value) => Number.isSafeInteger(value) && value >= 0)) return "a number that is none";
  if (block.offset + block.length > bodyBytes) return "it ends behind the file's end";
  if (block.decoded !== expectedBytes) return "its rows are of another length";
  if (block.decoded > MOST_BLOCK_BYTES || block.length > MOST_BLOCK_BYTES) return "it is longer than is allowed";
  return "";
}

/** The bytes of a gzip member that must have this checksum and inflate to this length. Throws Unreadable. */
export async function inflate(packed: Uint8Array, decoded: number, crc: number, what: string): Promise<Uint8Array> {
  if (crc32(packed) !== crc) throw new Unreadable(`${what}: its checksum is wrong`);
  const reader = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const data = new Uint8Array(decoded);
  let at = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (at + value.length > decoded) {
        await reader.cancel();
        throw new Unreadable(`${what}: it holds more than it says`);
      }
      data.set(value, at);
      at += value.length;
    }
  } catch (error) {
    throw error instanceof Unreadable ? error : new Unreadable(`${what}: it cannot be inflated`);
  }
  if (at !== decoded) throw new Unreadable(`${what}: it holds less than it says`);
  return data;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

/** The CRC-32 of gzip. */
export function crc32(data: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of data) value = (TABLE[(value ^ byte) & 0xff] as number) ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}
