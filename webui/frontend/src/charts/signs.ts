// The same second signs on Canvas as in Patterns.tsx.
import { colorOf } from "@/theme/palette";
import { TIME_CLASSES } from "@/theme/classes";

function tile(color: string, background: string, accent: string, sign: string): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = 6;
  canvas.height = 6;
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  context.fillStyle = sign === "hollow" ? background : color;
  context.fillRect(0, 0, 6, 6);
  if (sign === "hatch" || sign === "hollow") {
    context.strokeStyle = sign === "hatch" ? accent : color;
    context.lineWidth = sign === "hatch" ? 2 : 1;
    context.beginPath();
    for (const offset of [-6, 0, 6]) {
      context.moveTo(offset, 6);
      context.lineTo(offset + 6, 0);
    }
    context.stroke();
  }
  context.fillStyle = background;
  if (sign === "lines") context.fillRect(2.5, 0, 1, 6);
  if (sign === "dots") context.fillRect(2, 2, 2, 2);
  return canvas;
}

/** Fills by part, in the order of TIME_CLASSES, in the colours of the theme now. */
export function classFills(context: CanvasRenderingContext2D): (CanvasPattern | string)[] {
  const [background, accent] = [colorOf("--background"), colorOf("--communication")];
  return TIME_CLASSES.map(({ color, sign }) => {
    const resolved = colorOf(color);
    if (sign === "plain" || sign === "letter" || sign === "edge") return resolved;
    return context.createPattern(tile(resolved, background, accent, sign), "repeat") ?? resolved;
  });
}
