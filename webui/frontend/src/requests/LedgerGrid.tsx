// A cell per rank: how far each is, at one look. SVG, and Canvas above 2,000 ranks. The table below has the same lines.
import { useCallback, useState } from "react";
import type { LedgerColumns } from "@/api/models";
import { useDrawing, useWidth } from "@/charts/canvas";
import { CANVAS_ABOVE } from "@/charts/layout";
import { colorOf } from "@/theme/palette";
import { useTheme } from "@/theme/theme";
import { plural } from "@/units/quantities";
import { countStates, LEDGER_STATES, stateOf } from "./ledgerStates";

interface Props {
  ledger: LedgerColumns;
  selected: number | undefined;
  onSelect: (line: number) => void;
}

export function LedgerGrid({ ledger, selected, onSelect }: Props) {
  const [place, width] = useWidth<HTMLDivElement>();
  const [hovered, setHovered] = useState<number>();
  const theme = useTheme();
  const states = ledger.state;
  const size = states.length <= 64 ? 28 : states.length <= 600 ? 18 : 10;
  const perRow = Math.max(1, Math.floor(width / size));
  const height = Math.ceil(states.length / perRow) * size;
  const onCanvas = states.length > CANVAS_ABOVE;
  const draw = useCallback(
    (context: CanvasRenderingContext2D) => {
      context.clearRect(0, 0, width, height);
      const colors = new Map(LEDGER_STATES.map(({ id, color }) => [id, colorOf(color)]));
      states.forEach((id, line) => {
        const [x, y] = [(line % perRow) * size, Math.floor(line / perRow) * size];
        const box = size - 2;
        const color = colors.get(id) ?? "gray";
        context.fillStyle = color;
        context.strokeStyle = color;
        const filled = box * stateOf(id).filled;
        context.strokeRect(x + 0.5, y + 0.5, box - 1, box - 1);
        context.fillRect(x, y + box - filled, box, filled);
      });
    },
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- the theme decides what the colours are
    [states, width, height, perRow, size, theme],
  );
  const canvas = useDrawing(onCanvas ? width : 0, height, draw);
  const lineAt = (event: React.PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    const line = Math.floor((event.clientY - box.top) / size) * perRow + Math.floor((event.clientX - box.left) / size);
    return line >= 0 && line < states.length ? line : undefined;
  };
  const summary = countStates(states)
    .map(({ state, count }) => `${plural(count, "rank")} ${state.name}`)
    .join(", ");
  const at = (line: number) => ({ left: (line % perRow) * size, top: Math.floor(line / perRow) * size, width: size - 2, height: size - 2 });
  return (
    <div className="ledger-grid">
      <div
        ref={place}
        style={{ height }}
        className="ledger-cells"
        onPointerMove={(event) => setHovered(lineAt(event))}
        onPointerLeave={() => setHovered(undefined)}
        onPointerDown={(event) => {
          const line = lineAt(event);
          if (line !== undefined) onSelect(line);
        }}
      >
        {width > 0 &&
          (onCanvas ? (
            <canvas ref={canvas} style={{ width, height }} role="img" aria-label={summary} data-renderer="canvas" />
          ) : (
            <svg width={width} height={height} role="img" aria-label={summary} data-renderer="svg">
              {states.map((id, line) => {
                const { left, top } = at(line);
                return <Cell key={`${ledger.rank[line]}-${ledger.process_id[line]}`} id={id} x={left} y={top} size={size - 2} rank={ledger.rank[line] ?? 0} />;
              })}
            </svg>
          ))}
        {selected !== undefined && selected < states.length && <div className="cell-mark" style={at(selected)} />}
        {hovered !== undefined && hovered < states.length && (
          <div className="cell-hover" style={at(hovered)}>
            <output className="hover-note" data-side={(hovered % perRow) * size > width / 2 ? "left" : "right"}>
              rank {ledger.rank[hovered]}: {stateOf(states[hovered] ?? "").name}
              {ledger.reason[hovered] && ` (${ledger.reason[hovered]})`}
            </output>
          </div>
        )}
      </div>
      <p className="quiet" role="status">
        {summary}
      </p>
    </div>
  );
}

function Cell({ id, x, y, size, rank }: { id: string; x: number; y: number; size: number; rank: number }) {
  const { color, filled } = stateOf(id);
  const paint = `var(${color})`;
  return (
    <g data-state={id}>
      <rect x={x + 0.5} y={y + 0.5} width={size - 1} height={size - 1} fill="none" stroke={paint} />
      <rect x={x} y={y + size * (1 - filled)} width={size} height={size * filled} fill={paint} />
      {id === "FAILED" && <path d={`M${x + 3} ${y + 3}l${size - 6} ${size - 6}M${x + size - 3} ${y + 3}l${6 - size} ${size - 6}`} className="cross" />}
      {size >= 24 && id !== "FAILED" && (
        <text x={x + size / 2} y={y + size / 2} className={filled > 0.5 ? "cell-number on-fill" : "cell-number"}>
          {rank}
        </text>
      )}
    </g>
  );
}
