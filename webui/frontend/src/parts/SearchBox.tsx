// A text filter: the address follows after a short pause, and "/" puts the cursor here.
import { useEffect, useRef, useState } from "react";

const PAUSE_MS = 250;

export function SearchBox({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  const [shown, setShown] = useState(value);
  const input = useRef<HTMLInputElement>(null);
  if (value !== shown) {
    setShown(value);
    setText(value);
  }
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onChange(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, value, onChange]);
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key !== "/" || event.ctrlKey || event.metaKey || target.closest("input, textarea, select, [contenteditable]")) return;
      event.preventDefault();
      input.current?.focus();
    };
    window.addEventListener("keydown", focus);
    return () => window.removeEventListener("keydown", focus);
  }, []);
  return <input ref={input} type="search" aria-label={label} placeholder={`${label}  /`} value={text} maxLength={200} onChange={(event) => setText(event.target.value)} />;
}
