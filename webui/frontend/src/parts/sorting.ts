// The order of rows, as an address names it: a column's id, "-" before it for descending.

/** The next order when a header is pressed. Numbers begin with the largest, texts with A. */
export function nextSort(column: { id: string; numeric?: boolean }, sort: string | undefined): string {
  if (sort === column.id) return `-${column.id}`;
  if (sort === `-${column.id}`) return column.id;
  return column.numeric ? `-${column.id}` : column.id;
}

/** Rows sorted by a value; those without one come last in both directions. */
export function sortRows<Row>(rows: readonly Row[], sort: string, value: (row: Row, id: string) => string | number | null | undefined): Row[] {
  const descending = sort.startsWith("-");
  const id = descending ? sort.slice(1) : sort;
  const compare = (left: string | number, right: string | number) =>
    typeof left === "number" && typeof right === "number" ? left - right : String(left).localeCompare(String(right), "en", { numeric: true });
  return rows.toSorted((a, b) => {
    const [left, right] = [value(a, id), value(b, id)];
    if (left == null || right == null) return left == null ? (right == null ? 0 : 1) : -1;
    return descending ? compare(right, left) : compare(left, right);
  });
}
