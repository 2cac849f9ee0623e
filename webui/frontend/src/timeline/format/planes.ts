/** Columns from byte planes: the lowest bytes of all rows first. Every column becomes numbers that JavaScript holds. */

export type ColumnType = "u1" | "u2" | "u4" | "u8" | "i4" | "i8";
export type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array | Int32Array;

const WIDTHS: Record<ColumnType, number> = { u1: 1, u2: 2, u4: 4, u8: 8, i4: 4, i8: 8 };

/** Bytes of one row in columns of these types. */
export function rowBytes(types: Record<string, ColumnType>): number {
  return Object.values(types).reduce((sum, type) => sum + WIDTHS[type], 0);
}

/** The columns of `rows` rows; `data` has just as many bytes. */
export function readPlanes(data: Uint8Array, rows: number, types: Record<string, ColumnType>): Record<string, Column> {
  const columns: Record<string, Column> = {};
  let at = 0;
  for (const [name, type] of Object.entries(types)) {
    const width = WIDTHS[type];
    columns[name] = readColumn(data.subarray(at, at + rows * width), rows, type);
    at += rows * width;
  }
  return columns;
}

function readColumn(planes: Uint8Array, rows: number, type: ColumnType): Column {
  if (type === "u1") return planes.slice();
  if (type === "u2") return Uint16Array.from({ length: rows }, (_, row) => planes[row]! | (planes[rows + row]! << 8));
  const low = readWord(planes, rows);
  if (type === "u4") return low;
  if (type === "i4") return new Int32Array(low.buffer);
  const high = readWord(planes.subarray(rows * 4), rows);
  const signed = type === "i8" ? new Int32Array(high.buffer) : high;
  return Float64Array.from({ length: rows }, (_, row) => signed[row]! * 4294967296 + low[row]!);
}

function readWord(planes: Uint8Array, rows: number): Uint32Array {
  const words = new Uint32Array(rows);
  for (let row = 0; row < rows; row++)
    words[row] =
      planes[row]! | (planes[rows + row]! << 8) | (planes[2 * rows + row]! << 16) | (planes[3 * rows + row]! << 24);
  return words;
}
