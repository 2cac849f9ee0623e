// Dark or light: the reader's choice, else the system's. Pages ask by `useTheme`; print is always light (palette.css).
import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark";
export type Choice = Theme | "system";

const KEY = "fleetprof.theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function readChoice(): Choice {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}

let choice: Choice = readChoice();

function apply(): void {
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  for (const listener of listeners) listener();
}

export function chooseTheme(next: Choice): void {
  choice = next;
  try {
    if (next === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
  } catch {
    // A browser that keeps nothing forgets the choice with the page.
  }
  apply();
}

export function startTheme(): void {
  dark.addEventListener("change", apply);
  apply();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** What is shown now. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, () => (choice === "system" ? (dark.matches ? "dark" : "light") : choice));
}

export function useThemeChoice(): Choice {
  return useSyncExternalStore(subscribe, () => choice);
}
