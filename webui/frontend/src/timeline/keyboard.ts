/**
 * What keys do. WASD by their place on the keyboard, so that they lie together on any.
 *
 * Guarantees: a field that is typed into keeps all its keys, a button or a list those that it is worked with.
 */

export type Command =
  | { kind: "pan"; share: number }
  | { kind: "zoom"; factor: number }
  | { kind: "step"; along: -1 | 0 | 1; across: -1 | 0 | 1 }
  | { kind: "search" | "help" | "clear" | "fit" | "mark" | "longest" | "next" | "previous" | "fold" }
  | { kind: "edge"; end: boolean }
  | { kind: "rank"; down: -1 | 1 };

/** Where the focus is: on the picture, nowhere in particular, on a control, in a field of text. */
export type Focus = "picture" | "page" | "control" | "text";

/** What the page says of the keys: each with what it does. */
export const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["W S", "zoom in, zoom out"],
  ["A D", "pan left, pan right"],
  ["← →", "choose the event before, the next one; pan while none is chosen"],
  ["↑ ↓", "choose the nearest event of the row above, below; the first press chooses one in the middle"],
  ["J K", "go to the rank below, above: it opens, and the one before folds"],
  ["O", "fold the rank that is looked at, or open it again"],
  ["Enter, F", "fit the chosen event into the view, or the whole time"],
  ["M", "measure the chosen event, or the time in view: what ran in it is summed below the picture"],
  ["[ ]", "let the measured time begin, end in the middle of the view"],
  ["L", "show only the longest events, or all again"],
  ["/", "search"],
  ["N P", "go to the next event that the search found, to the previous one"],
  ["Escape", "let go of the chosen event, the measured span and the search"],
  ["?", "show these keys"],
];

type Key = Pick<KeyboardEvent, "code" | "key" | "ctrlKey" | "metaKey" | "altKey" | "repeat">;

const PAN = 0.1;
const HELD_PAN = 0.2;

/** Whether a command is meant for the timeline; `everywhere`: also while the picture has not the focus. */
export function isMeant(command: Command, focus: Focus, everywhere: boolean): boolean {
  if (focus === "picture") return true;
  if (!everywhere || focus === "text") return false;
  return focus === "page" || !(command.kind === "step" || command.kind === "fit");
}

/** The command of a key; undefined for all others, which stay the browser's. */
export function commandOf(event: Key): Command | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (event.key === "/") return { kind: "search" };
  if (event.key === "?") return { kind: "help" };
  if (event.key === "[" || event.key === "]") return { kind: "edge", end: event.key === "]" };
  switch (event.code) {
    case "KeyA":
      return { kind: "pan", share: event.repeat ? -HELD_PAN : -PAN };
    case "KeyD":
      return { kind: "pan", share: event.repeat ? HELD_PAN : PAN };
    case "KeyW":
      return { kind: "zoom", factor: event.repeat ? 0.7 : 0.8 };
    case "KeyS":
      return { kind: "zoom", factor: event.repeat ? 1.4 : 1.25 };
    case "ArrowLeft":
      return { kind: "step", along: -1, across: 0 };
    case "ArrowRight":
      return { kind: "step", along: 1, across: 0 };
    case "ArrowUp":
      return { kind: "step", along: 0, across: -1 };
    case "ArrowDown":
      return { kind: "step", along: 0, across: 1 };
    case "Escape":
      return { kind: "clear" };
    case "KeyF":
    case "Enter":
      return { kind: "fit" };
    case "KeyN":
      return { kind: "next" };
    case "KeyP":
      return { kind: "previous" };
    case "KeyJ":
      return { kind: "rank", down: 1 };
    case "KeyK":
      return { kind: "rank", down: -1 };
    case "KeyO":
      return { kind: "fold" };
    case "KeyM":
      return { kind: "mark" };
    case "KeyL":
      return { kind: "longest" };
    default:
      return undefined;
  }
}
