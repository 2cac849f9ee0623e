/** Where the focus is, which decides whose a key is. */

import type { Focus } from "./keyboard";

const CONTROLS = "a, button, input, select, summary, dialog, [role=treegrid], [role=scrollbar], [tabindex]";
const PRESSED = new Set(["button", "checkbox", "radio", "range", "submit", "reset"]);

/** Of the element that a key was pressed on. */
export function focusOf(target: EventTarget | null, picture: Element | null): Focus {
  if (!(target instanceof HTMLElement)) return "page";
  if (picture?.contains(target)) return "picture";
  const isTyped = target instanceof HTMLInputElement && !PRESSED.has(target.type);
  if (isTyped || target.isContentEditable || target.matches("textarea, select")) return "text";
  return target.closest(CONTROLS) ? "control" : "page";
}
