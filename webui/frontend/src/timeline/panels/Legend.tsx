/** What the colours and their second signs mean, drawn as the picture draws them. */

import { useEffect, useRef } from "react";
import { useTheme } from "@/theme/theme";
import { EVENT_CLASSES } from "../draw/classes";
import { readColors } from "../draw/fills";
import { paintBox } from "../draw/painter";

const WIDTH = 24;
const HEIGHT = 14;
const SCALE = 2;

export function Legend() {
  const theme = useTheme();
  return (
    <ul className="legend timeline-legend" aria-label="Colours">
      {EVENT_CLASSES.map(({ id, name, explanation }) => (
        <li key={id} title={explanation}>
          <Swatch key={theme} id={id} />
          {name}
        </li>
      ))}
    </ul>
  );
}

function Swatch({ id }: { id: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    context.setTransform(SCALE, 0, 0, SCALE, 0, 0);
    context.clearRect(0, 0, WIDTH, HEIGHT);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    paintBox(context, readColors(context), id, 0, 0, WIDTH, HEIGHT, 1);
  }, [id]);
  return <canvas ref={canvas} width={WIDTH * SCALE} height={HEIGHT * SCALE} aria-hidden="true" />;
}
