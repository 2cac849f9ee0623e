/** What the pointer does on the canvas: drag pans, Shift and drag measures, the wheel zooms with Ctrl, a click chooses. */

import type { Engine, Hit } from "./engine";
import { GUTTER } from "./draw/picture";
import { MOST_OPEN } from "./state";

const CLICK_PIXELS = 3;

/** Listens on a canvas until the returned function is called. `shown` is told what lies under the pointer. */
export function listen(
  canvas: HTMLCanvasElement,
  engine: Engine,
  shown: (hit: Hit | null, x: number, y: number) => void,
): () => void {
  let drag: { x: number; start: number; marks: boolean; moved: boolean } | null = null;
  const place = (event: MouseEvent): [number, number] => [event.offsetX, event.offsetY];

  const down = (event: PointerEvent) => {
    const [x] = place(event);
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { x, start: engine.timeAt(x), marks: event.shiftKey, moved: false };
  };
  const move = (event: PointerEvent) => {
    const [x, y] = place(event);
    if (!drag) {
      const hit = engine.hit(x, y);
      engine.hover(hit);
      shown(hit, event.clientX, event.clientY);
      return;
    }
    drag.moved ||= Math.abs(x - drag.x) > CLICK_PIXELS;
    if (!drag.moved) return;
    if (drag.marks) {
      const at = engine.timeAt(x);
      engine.change({ mark: [Math.min(drag.start, at), Math.max(drag.start, at)] }, true);
    } else {
      engine.pan((drag.x - x) / engine.view.width);
      drag.x = x;
    }
  };
  const up = (event: PointerEvent) => {
    const [x, y] = place(event);
    if (drag && !drag.moved) click(engine, engine.hit(x, y));
    drag = null;
  };
  const leave = () => {
    engine.hover(null);
    shown(null, 0, 0);
  };
  const wheel = (event: WheelEvent) => {
    const [x] = place(event);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      engine.zoom(1.0025 ** event.deltaY, Math.max(GUTTER, x));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      engine.pan((event.deltaX || event.deltaY) / engine.view.width);
    }
  };
  const twice = (event: MouseEvent) => {
    const hit = engine.hit(...place(event));
    if (hit?.rectangle && hit.scene) {
      const start = hit.rectangle.start + hit.scene.offset;
      engine.fit({ start, end: start + hit.rectangle.duration });
    }
  };
  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("wheel", wheel, { passive: false });
  canvas.addEventListener("dblclick", twice);
  return () => {
    canvas.removeEventListener("pointerdown", down);
    canvas.removeEventListener("pointermove", move);
    canvas.removeEventListener("pointerup", up);
    canvas.removeEventListener("pointerleave", leave);
    canvas.removeEventListener("wheel", wheel);
    canvas.removeEventListener("dblclick", twice);
  };
}

function click(engine: Engine, hit: Hit | null): void {
  if (!hit || hit.rank === null) {
    engine.change({ chosen: null });
    return;
  }
  const { band, rank, scene, rectangle, span } = hit;
  if (band.kind === "rank") {
    toggleRank(engine, rank);
  } else if (band.kind === "lane") {
    engine.change({ chosen: rectangle ? { rank, lane: band.lane, start: rectangle.start } : null });
  } else if (scene && span >= 0) {
    // One click goes down: into the iteration or the stage.
    const spans = band.kind === "stages" ? scene.header.stage_pieces : scene.header.iterations;
    const start = spans.start_ns[span]! + scene.offset;
    engine.fit({ start, end: start + spans.duration_ns[span]! });
  }
}

/** Opens or folds a rank. */
export function toggleRank(engine: Engine, rank: number | undefined): void {
  const { open } = engine.state;
  if (rank === undefined) return;
  if (open.includes(rank)) engine.change({ open: open.filter((one) => one !== rank) });
  else openRank(engine, rank);
}

/** Opens a rank, and folds the one that was opened first where too many are open. */
export function openRank(engine: Engine, rank: number): void {
  const { open, fold } = engine.state;
  engine.change({ open: [...open.filter((one) => one !== rank), rank].slice(-MOST_OPEN), fold: fold === "late" ? "all" : fold });
}
