// One measure over ranks and iterations. The longer side lies along the page; columns beyond its pixels are folded to
// their worst. What is worse lies at the end of the scale that is far from the background. Values stand in the hover, and
// in the table of the same numbers.
import { useCallback, useMemo, useState } from "react";
import { heatColor } from "@/theme/palette";
import { useTheme } from "@/theme/theme";
import { formatMeasure } from "@/units/quantities";
import { useDrawing, useWidth } from "./canvas";
import { CANVAS_ABOVE, clipLimits, foldColumns, isFarAbove, scalePosition } from "./layout";

interface Props {
  /** `values[row][column]`, null where there is none. */
  values: readonly (readonly (number | null)[])[];
  rowName: (row: number) => string;
  columnName: (column: number) => string;
  rowsAre: string;
  unit: string;
  label: string;
  onSelect?: (row: number, column: number) => void;
}

const GUTTER = 64;
/** Rows and columns of each arrow; the first press enters at the first cell. */
const STEPS: Record<string, readonly [down: number, right: number]> = {
  ArrowDown: [1, 0],
  ArrowUp: [-1, 0],
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1],
};

export function HeatMap({ values, rowName, columnName, rowsAre, unit, label, onSelect }: Props) {
  const [place, whole] = useWidth<HTMLDivElement>();
  const theme = useTheme();
  const width = Math.max(0, whole - GUTTER);
  const [hovered, setHovered] = useState<{ row: number; column: number }>();
  const limits = useMemo(() => clipLimits(values.flat()), [values]);
  const folded = useMemo(() => foldColumns(values, width), [values, width]);
  const rowHeight = Math.max(3, Math.min(24, Math.floor(360 / Math.max(1, values.length))));
  const height = rowHeight * values.length;
  const columns = folded.starts.length;
  const columnWidth = columns > 0 ? Math.min(110, width / columns) : 0;
  const drawn = columns * columnWidth;

  const cells = useMemo(
    () =>
      folded.values.flatMap((row, rowIndex) =>
        row.flatMap((value, column) => {
          if (value === null) return [];
          const gap = columnWidth >= 5 && rowHeight >= 5 ? 1 : 0;
          const { at, clipped } = scalePosition(value, limits);
          return [{ x: column * columnWidth, y: rowIndex * rowHeight, width: columnWidth - gap, height: rowHeight - gap, at, clipped }];
        }),
      ),
    [folded, columnWidth, rowHeight, limits],
  );

  const draw = useCallback(
    (context: CanvasRenderingContext2D) => {
      context.clearRect(0, 0, drawn, height);
      for (const cell of cells) {
        context.fillStyle = heatColor(cell.at, theme);
        context.fillRect(cell.x, cell.y, cell.width, cell.height);
      }
    },
    [cells, drawn, height, theme],
  );
  const onCanvas = cells.length > CANVAS_ABOVE;
  // Worst cells of each column that the scale cannot show.
  const far = folded.starts.flatMap((_, column) => (folded.values.some((row) => isFarAbove(row[column] ?? Number.NEGATIVE_INFINITY, limits)) ? [column] : []));
  const canvas = useDrawing(onCanvas ? drawn : 0, height, draw);

  const cellAt = (event: React.PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) / rowHeight);
    const column = Math.floor((event.clientX - box.left) / columnWidth);
    return row >= 0 && row < values.length && column >= 0 && column < columns ? { row, column } : undefined;
  };
  const press = (event: React.KeyboardEvent) => {
    const at = hovered ?? { row: 0, column: 0 };
    if (event.key === "Enter") onSelect?.(at.row, columnOf(at.column));
    else if (!(event.key in STEPS)) return;
    else {
      const [down, right] = hovered ? (STEPS[event.key] ?? [0, 0]) : [0, 0];
      const within = (next: number, count: number) => Math.min(count - 1, Math.max(0, next));
      setHovered({ row: within(at.row + down, values.length), column: within(at.column + right, columns) });
    }
    event.preventDefault();
  };
  const columnOf = (column: number) => folded.starts[column] ?? 0;
  const hoveredValue = hovered && folded.values[hovered.row]?.[hovered.column];
  const everyRow = Math.max(1, Math.ceil(13 / rowHeight));
  const everyColumn = Math.max(1, Math.ceil(36 / Math.max(1, columnWidth)));
  return (
    <div ref={place} className="heat-map">
      {width > 0 && (
        <>
          <div className="heat-rows" style={{ width: GUTTER }} aria-hidden="true">
            {values.map((_, row) => row % everyRow === 0 && (
              // oxlint-disable-next-line react/no-array-index-key
              <span key={row} style={{ top: row * rowHeight, height: rowHeight, lineHeight: `${rowHeight}px` }}>
                {rowName(row)}
              </span>
            ))}
          </div>
          <svg className="heat-far" width={drawn} height="9" role="img" aria-label={far.length > 0 ? `far above the scale: ${far.slice(0, 16).map((column) => columnName(columnOf(column))).join(", ")}` : "no cell is far above the scale"}>
            {far.map((column) => (
              <path key={column} transform={`translate(${(column + 0.5) * columnWidth} 0)`} d="M-4.5 0H4.5L0 8Z">
                <title>{`${rowsAre === "rank" ? "iteration" : "rank"} ${columnName(columnOf(column))}: far above the scale`}</title>
              </path>
            ))}
          </svg>
          {/* Its role is one that works with keys; the rule knows no such role. */}
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
          <div
            className="heat-cells"
            style={{ height, width: drawn }}
            tabIndex={0}
            role="application"
            aria-label={`${label}: arrows go from cell to cell${onSelect ? ", Enter chooses one" : ""}`}
            onKeyDown={press}
            onBlur={() => setHovered(undefined)}
            onPointerMove={(event) => setHovered(cellAt(event))}
            onPointerLeave={() => setHovered(undefined)}
            onPointerDown={(event) => {
              const cell = cellAt(event);
              if (cell) onSelect?.(cell.row, columnOf(cell.column));
            }}
          >
            {onCanvas ? (
              <canvas ref={canvas} style={{ width: drawn, height }} role="img" aria-label={label} data-renderer="canvas" />
            ) : (
              <svg width={drawn} height={height} role="img" aria-label={label} data-renderer="svg">
                {cells.map(({ at, clipped, ...box }) => (
                  <rect key={`${box.x} ${box.y}`} {...box} fill={heatColor(at, theme)} className={clipped ? "clipped" : undefined} />
                ))}
              </svg>
            )}
            {hovered && (
              <div className="cell-hover" style={{ left: hovered.column * columnWidth, top: hovered.row * rowHeight, width: columnWidth, height: rowHeight }}>
                <output className="hover-note" data-side={hovered.column * columnWidth > drawn / 2 ? "left" : "right"}>
                  {rowsAre === "rank" ? `rank ${rowName(hovered.row)}, iteration ${columnName(columnOf(hovered.column))}` : `iteration ${rowName(hovered.row)}, rank ${columnName(columnOf(hovered.column))}`}
                  : <strong>{formatMeasure(hoveredValue, unit)}</strong>
                </output>
              </div>
            )}
          </div>
          <div className="heat-columns" style={{ marginLeft: GUTTER, width: drawn }} aria-hidden="true">
            {folded.starts.map((start, column) => column % everyColumn === 0 && (
              <span key={start} style={{ left: column * columnWidth }}>
                {columnName(start)}
              </span>
            ))}
          </div>
          <Scale limits={limits} unit={unit} theme={theme} />
        </>
      )}
    </div>
  );
}

function Scale({ limits, unit, theme }: { limits: readonly [number, number]; unit: string; theme: "light" | "dark" }) {
  const steps = 24;
  return (
    <div className="heat-scale">
      <span>{formatMeasure(limits[0], unit)}</span>
      <svg width={steps * 6} height="10" aria-hidden="true">
        {Array.from({ length: steps }, (_, step) => (
          // oxlint-disable-next-line react/no-array-index-key
          <rect key={step} x={step * 6} width="6.5" height="10" fill={heatColor(step / (steps - 1), theme)} />
        ))}
      </svg>
      <span>{formatMeasure(limits[1], unit)}</span>
      <span className="quiet">1st to 99th percentile</span>
    </div>
  );
}
