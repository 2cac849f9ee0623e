/** What keys do. WASD by their place on the keyboard, so that they lie together on any; only while the timeline has focus. */

export type Command =
  | { kind: "pan"; share: number }
  | { kind: "zoom"; factor: number }
  | { kind: "step"; along: -1 | 0 | 1; across: -1 | 0 | 1 }
  | { kind: "search" | "clear" | "fit" | "mark" | "longest" | "next" | "previous" };

type Key = Pick<KeyboardEvent, "code" | "key" | "ctrlKey" | "metaKey" | "altKey" | "repeat">;

const PAN = 0.1;
const HELD_PAN = 0.2;

/** The command of a key; undefined for all others, which stay the browser's. */
export function commandOf(event: Key): Command | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (event.key === "/") return { kind: "search" };
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
    case "KeyM":
      return { kind: "mark" };
    case "KeyL":
      return { kind: "longest" };
    default:
      return undefined;
  }
}
