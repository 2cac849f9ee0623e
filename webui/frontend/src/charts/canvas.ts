// A canvas that is as sharp as the screen and drawn anew when its size or what it shows changes.
import { type RefCallback, type RefObject, useCallback, useEffect, useRef, useState } from "react";

/** Width of an element in CSS pixels, 0 before it is laid out; and the element. */
export function useWidth<E extends HTMLElement>(): [RefCallback<E>, number, E | null] {
  const [width, setWidth] = useState(0);
  const [here, setHere] = useState<E | null>(null);
  // A callback: the element may come long after its component does.
  const place = useCallback((element: E | null) => {
    setHere(element);
    if (!element) return;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(element);
    return () => {
      observer.disconnect();
      setHere(null);
    };
  }, []);
  return [place, width, here];
}

/** Draws in CSS pixels; `draw` changes when anything that it shows does. */
export function useDrawing(width: number, height: number, draw: (context: CanvasRenderingContext2D) => void): RefObject<HTMLCanvasElement | null> {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || width < 1) return;
    const frame = requestAnimationFrame(() => {
      const ratio = window.devicePixelRatio || 1;
      element.width = Math.round(width * ratio);
      element.height = Math.round(height * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      draw(context);
    });
    return () => cancelAnimationFrame(frame);
  }, [width, height, draw]);
  return canvas;
}
