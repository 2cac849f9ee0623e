// A table of any length: a real <table> whose rows beyond the view are spacers, so that 10,000 rows scroll like ten.
// Sorting is the caller's, because most tables keep it in their address and long ones let the service sort.
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, useEffect, useRef } from "react";
import { nextSort } from "./sorting";

export interface Column<Row> {
  id: string;
  header: string;
  cell: (row: Row, index: number) => ReactNode;
  numeric?: boolean;
  /** Width in CSS, for the fixed layout; "auto" takes what is left. */
  width?: string;
  sortable?: boolean;
  explanation?: string;
}

interface Props<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row, index: number) => string | number;
  /** Column, "-" before it for descending. */
  sort?: string;
  onSort?: (sort: string) => void;
  rowHeight?: number;
  /** Height of the scrolled part at most, px; the page scrolls where the table is shorter. */
  mostHeight?: number;
  isSelected?: (row: Row) => boolean;
  onSelect?: (row: Row) => void;
  /** Called when the last row comes near. */
  onEnd?: () => void;
  minWidth?: number;
}

export function DataTable<Row>(props: Props<Row>) {
  const { columns, rows, rowHeight = 28, mostHeight = 560, onEnd } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1);
  const nearEnd = last !== undefined && last.index >= rows.length - 20;
  useEffect(() => {
    if (nearEnd) onEnd?.();
  }, [nearEnd, onEnd, rows.length]);

  const top = items[0]?.start ?? 0;
  const bottom = last ? virtual.getTotalSize() - last.end : 0;
  return (
    <div className="table-scroller" ref={scroller} style={{ maxHeight: mostHeight }} tabIndex={0} role="region" aria-label={props.label}>
      <table aria-rowcount={rows.length + 1} style={{ minWidth: props.minWidth }}>
        <colgroup>
          {columns.map((column) => (
            <col key={column.id} style={{ width: column.width }} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map((column) => (
              <HeaderCell key={column.id} column={column} sort={props.sort} onSort={props.onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {top > 0 && <Spacer height={top} columns={columns.length} />}
          {items.map(({ index }) => {
            const row = rows[index];
            if (row === undefined) return null;
            return (
              <TableRow
                key={props.rowKey(row, index)}
                row={row}
                index={index}
                columns={columns}
                height={rowHeight}
                selected={props.isSelected?.(row) ?? false}
                onSelect={props.onSelect}
              />
            );
          })}
          {bottom > 0 && <Spacer height={bottom} columns={columns.length} />}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps<Row> {
  row: Row;
  index: number;
  columns: readonly Column<Row>[];
  height: number;
  selected: boolean;
  onSelect: ((row: Row) => void) | undefined;
}

// A scroll renders the rows that come into view, not those that stay.
const TableRow = memo(function TableRow<Row>({ row, index, columns, height, selected, onSelect }: RowProps<Row>) {
  return (
    <tr
      aria-rowindex={index + 2}
      data-selected={selected || undefined}
      style={{ height }}
      className={onSelect && "selectable"}
      tabIndex={onSelect && 0}
      onKeyDown={onSelect && ((event) => event.key === "Enter" && event.target === event.currentTarget && onSelect(row))}
      onClick={onSelect && (() => onSelect(row))}
    >
      {columns.map((column) => (
        <td key={column.id} className={column.numeric ? "numeric" : undefined}>
          {column.cell(row, index)}
        </td>
      ))}
    </tr>
  );
}) as <Row>(props: RowProps<Row>) => ReactNode;

function Spacer({ height, columns }: { height: number; columns: number }) {
  return (
    <tr aria-hidden="true" className="spacer">
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}

function HeaderCell<Row>({ column, sort, onSort }: { column: Column<Row>; sort?: string; onSort?: (sort: string) => void }) {
  const direction = sort === column.id ? "ascending" : sort === `-${column.id}` ? "descending" : undefined;
  const next = nextSort(column, sort);
  return (
    <th scope="col" aria-sort={direction} className={column.numeric ? "numeric" : undefined} title={column.explanation}>
      {column.sortable && onSort ? (
        <button type="button" className="sort" onClick={() => onSort(next)}>
          {column.header}
          {direction && <span aria-hidden="true">{direction === "ascending" ? "↑" : "↓"}</span>}
        </button>
      ) : (
        column.header
      )}
    </th>
  );
}
