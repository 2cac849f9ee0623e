// All ranks side by side, a column each: the one that differs stands out of a thousand. Canvas above 2,000 marks.
import { useCallback, useMemo, useState } from "react";
import { TIME_CLASSES } from "@/theme/classes";
import { useTheme } from "@/theme/theme";
import { useDrawing, useWidth } from "./canvas";
import { CANVAS_ABOVE, type Mark, stack } from "./layout";
import { fillOf } from "./Patterns";
import { classFills } from "./signs";

const HEIGHT = 150;

interface Props {
  /** Parts of each rank, in the order of TIME_CLASSES. */
  rows: readonly (readonly number[])[];
  label: string;
  selected: number | undefined;
  describe: (row: number) => string;
  onSelect: (row: number) => void;
}

export function Skyline(props: Props) {
  const [place, width] = useWidth<HTMLDivElement>();
  const [hovered, setHovered] = useState<number>();
  const marks = useMemo(() => stack(props.rows), [props.rows]);
  const column = props.rows.length > 0 ? width / props.rows.length : 0;
  const rowAt = (event: React.PointerEvent) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    return Math.min(props.rows.length - 1, Math.max(0, Math.floor(x / column)));
  };
  const Drawing = marks.length > CANVAS_ABOVE ? CanvasColumns : SvgColumns;
  return (
    <div
      ref={place}
      className="skyline"
      onPointerMove={(event) => setHovered(rowAt(event))}
      onPointerLeave={() => setHovered(undefined)}
      onPointerDown={(event) => props.onSelect(rowAt(event))}
    >
      {width > 0 && <Drawing marks={marks} column={column} width={width} label={props.label} />}
      {props.selected !== undefined && <div className="column-mark" style={{ left: props.selected * column, width: Math.max(2, column) }} />}
      {hovered !== undefined && (
        <div className="column-hover" style={{ left: hovered * column, width: Math.max(1, column) }}>
          <output className="hover-note" data-side={hovered * column > width / 2 ? "left" : "right"}>
            {props.describe(hovered)}
          </output>
        </div>
      )}
    </div>
  );
}

interface Drawn {
  marks: readonly Mark[];
  column: number;
  width: number;
  label: string;
}

function boxOf({ row, from, to }: Mark, column: number) {
  const gap = column > 4 ? 1 : 0;
  return { x: row * column, y: HEIGHT * (1 - to), width: Math.max(0.5, column - gap), height: Math.max(0.5, HEIGHT * (to - from)) };
}

function SvgColumns({ marks, column, width, label }: Drawn) {
  return (
    <svg width={width} height={HEIGHT} role="img" aria-label={label} data-renderer="svg">
      {marks.map((mark) => (
        <rect key={`${mark.row}-${mark.part}`} {...boxOf(mark, column)} fill={fillOf(TIME_CLASSES[mark.part]?.id ?? "")} />
      ))}
    </svg>
  );
}

function CanvasColumns({ marks, column, width, label }: Drawn) {
  const theme = useTheme();
  const draw = useCallback(
    (context: CanvasRenderingContext2D) => {
      context.clearRect(0, 0, width, HEIGHT);
      const fills = classFills(context);
      for (const mark of marks) {
        const box = boxOf(mark, column);
        context.fillStyle = fills[mark.part] ?? "transparent";
        context.fillRect(box.x, box.y, box.width, box.height);
      }
    },
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- the theme decides what the fills are
    [marks, column, width, theme],
  );
  const canvas = useDrawing(width, HEIGHT, draw);
  return <canvas ref={canvas} style={{ width, height: HEIGHT }} role="img" aria-label={label} data-renderer="canvas" />;
}
