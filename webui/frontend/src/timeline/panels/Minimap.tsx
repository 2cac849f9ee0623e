/** The minimap: where in the whole time the view is. It is a scroll bar, for the pointer, the keyboard and screen readers. */

import { useEffect, useRef, type KeyboardEvent } from "react";
import { formatDuration } from "@/units/durations";
import { MINIMAP_HEIGHT } from "../draw/minimap";
import { GUTTER } from "../draw/picture";
import type { Engine } from "../engine";
import type { TimelineState } from "../state";

interface Props {
  engine: Engine | null;
  state: TimelineState;
  wholeNs: number;
}

const STEPS: Record<string, number> = { ArrowLeft: -0.25, ArrowRight: 0.25, PageUp: -1, PageDown: 1, Home: -Infinity, End: Infinity };

export function Minimap({ engine, state, wholeNs }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d", { alpha: false });
    if (!element || !context || !engine) return undefined;
    engine.showOverview(context);
    return listen(element, engine);
  }, [engine]);
  const [start, end] = state.end > state.start ? [state.start, state.end] : [0, wholeNs];
  const press = (event: KeyboardEvent) => {
    const share = STEPS[event.key];
    if (share === undefined || !engine) return;
    event.preventDefault();
    engine.pan(share);
  };
  return (
    <canvas
      ref={canvas}
      className="timeline-minimap"
      style={{ height: MINIMAP_HEIGHT }}
      role="scrollbar"
      aria-label="Part of the whole time that is in view"
      aria-controls="timeline-picture"
      aria-orientation="horizontal"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(Math.min(100, Math.max(0, ((start + end) / 2 / wholeNs) * 100)))}
      aria-valuetext={`${formatDuration(Math.max(0, start))} to ${formatDuration(Math.min(wholeNs, end))} of ${formatDuration(wholeNs)}`}
      tabIndex={0}
      onKeyDown={press}
    />
  );
}

/** Drag moves the view; a press beside it brings it there. */
function listen(canvas: HTMLCanvasElement, engine: Engine): () => void {
  let hold: number | null = null;
  const go = (x: number) => engine.center(engine.overviewTimeAt(x - GUTTER));
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const [left, right] = engine.overviewWindow();
    const middle = (left + right) / 2;
    hold = event.offsetX >= left && event.offsetX <= right ? event.offsetX - middle : 0;
    if (hold === 0) go(event.offsetX);
  };
  const move = (event: PointerEvent) => hold !== null && go(event.offsetX - hold);
  const up = () => {
    hold = null;
  };
  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  return () => {
    canvas.removeEventListener("pointerdown", down);
    canvas.removeEventListener("pointermove", move);
    canvas.removeEventListener("pointerup", up);
  };
}
