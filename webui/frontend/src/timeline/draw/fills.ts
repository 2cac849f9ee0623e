/** Colours and second signs of the classes on Canvas, as the theme resolves them now. */

import { colorOf } from "@/theme/palette";

export type Fill = { color: string; solid: string; pattern: CanvasPattern | null; letter: string; edge: boolean; text: string };

const PROPERTIES: Record<string, string> = {
  compute: "--compute",
  communication_exposed: "--communication",
  communication_overlapped: "--communication",
  memory: "--memory",
  data_loading: "--data-loading",
  host: "--host",
  optimizer: "--optimizer",
  idle: "--idle",
  unrecorded: "--line",
};
const SIGNS: Record<string, "hatch" | "lines" | "dots" | "hollow"> = {
  communication_overlapped: "hatch",
  memory: "lines",
  unrecorded: "lines",
  data_loading: "dots",
  idle: "hollow",
};
const LETTERS: Record<string, string> = { host: "H", optimizer: "O" };

export interface Colors {
  background: string;
  surface: string;
  line: string;
  text: string;
  quiet: string;
  link: string;
  fill: (cls: string) => Fill;
}

/** The colours of the theme now. */
export function readColors(context: CanvasRenderingContext2D): Colors {
  const background = colorOf("--background") || "#ffffff";
  const fills = new Map<string, Fill>();
  const fill = (cls: string): Fill => {
    let found = fills.get(cls);
    if (!found) fills.set(cls, (found = makeFill(context, cls, background)));
    return found;
  };
  return {
    background,
    surface: colorOf("--surface") || background,
    line: colorOf("--line") || "#cccccc",
    text: colorOf("--text") || "#000000",
    quiet: colorOf("--text-quiet") || "#555555",
    link: colorOf("--link") || "#0b5fc1",
    fill,
  };
}

function makeFill(context: CanvasRenderingContext2D, cls: string, background: string): Fill {
  const solid = colorOf(PROPERTIES[cls] ?? "--idle") || "#888888";
  const sign = SIGNS[cls];
  // What the host does on its way to the device is drawn faint with a firm border, or it would outshout the device.
  const color = cls === "host" ? `color-mix(in srgb, ${solid} 22%, ${background})` : cls === "idle" ? background : solid;
  return {
    color,
    solid,
    pattern: sign ? makePattern(context, sign, solid, background) : null,
    letter: LETTERS[cls] ?? "",
    edge: cls === "communication_exposed",
    text: cls === "host" || cls === "idle" ? colorOf("--text") : readableOn(solid),
  };
}

function makePattern(
  context: CanvasRenderingContext2D,
  sign: "hatch" | "lines" | "dots" | "hollow",
  color: string,
  background: string,
): CanvasPattern | null {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 8;
  const tile = canvas.getContext("2d");
  if (!tile) return null;
  tile.fillStyle = sign === "hollow" ? background : color;
  tile.fillRect(0, 0, 8, 8);
  tile.strokeStyle = tile.fillStyle = sign === "hollow" ? color : background;
  if (sign === "hatch" || sign === "hollow") {
    tile.lineWidth = sign === "hatch" ? 2 : 0.6;
    tile.beginPath();
    for (const offset of [-8, 0, 8]) {
      tile.moveTo(offset, 8);
      tile.lineTo(offset + 8, 0);
    }
    tile.stroke();
  }
  if (sign === "lines") tile.fillRect(5, 0, 1, 8);
  if (sign === "dots") tile.fillRect(3, 3, 2, 2);
  return context.createPattern(canvas, "repeat");
}

/** Black or white, whichever contrasts more with `rgb(r, g, b)`. */
export function readableOn(color: string): string {
  const hex = /^#(..)(..)(..)$/.exec(color);
  const numbers = hex ? hex.slice(1).map((two) => Number.parseInt(two, 16)) : color.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0];
  const [red = 0, green = 0, blue = 0] = numbers.map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? "#000000" : "#ffffff";
}
