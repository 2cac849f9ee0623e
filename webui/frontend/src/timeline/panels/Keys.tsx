/** The list of keys, which "?" opens; and whether they work while the picture has not the focus. */

import { useEffect, useRef } from "react";
import { KEYS } from "../keyboard";

interface Props {
  open: boolean;
  everywhere: boolean;
  onClose: () => void;
  onEverywhere: (everywhere: boolean) => void;
}

export function Keys({ open, everywhere, onClose, onEverywhere }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} className="timeline-keys" aria-labelledby="timeline-keys-title" onClose={onClose}>
      <h2 id="timeline-keys-title">Keys of the timeline</h2>
      <table>
        <tbody>
          {KEYS.map(([keys, what]) => (
            <tr key={keys}>
              <th scope="row">
                <kbd>{keys}</kbd>
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>Pointer: drag to pan, Ctrl and wheel to zoom, Shift and drag to measure; click a rank to open it, an iteration or a stage to fit it, an event to choose it.</p>
      <p>In the list below the picture: arrows, Home and End; Enter shows the line in the picture.</p>
      <label>
        <input type="checkbox" checked={everywhere} onChange={(event) => onEverywhere(event.target.checked)} /> Keys work anywhere on
        this page, not only while the picture has the focus
      </label>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

const STORED = "fleetprof.timeline.keys";

/** What this browser chose. */
export function readEverywhere(): boolean {
  try {
    return localStorage.getItem(STORED) !== "picture";
  } catch {
    return true;
  }
}

export function storeEverywhere(everywhere: boolean): void {
  try {
    if (everywhere) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, "picture");
  } catch {
    // A browser that keeps nothing forgets the choice with the page.
  }
}
