/** The canvas has as many pixels as the screen, up to two for each of CSS. */
export function size(context: CanvasRenderingContext2D, width: number, height: number): void {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  context.canvas.width = Math.round(width * ratio);
  context.canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
}
