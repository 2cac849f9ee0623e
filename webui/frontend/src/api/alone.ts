// A report by itself: report.html has its slices inside, and no service behind it.

/** Traces beside the file, by source of a rank, and commands for those that are elsewhere. */
export interface Beside {
  links: Readonly<Record<string, string>>;
  fetch: string;
  perfetto: string;
}

const inside = (name: string) => (typeof document === "undefined" ? null : document.querySelector(`script[data-slice="${name}"]`));

/** True where this page is such a file: nothing leads to other pages then. */
export const ALONE = inside("overview") !== null;

/** A document of the file, of its gzip in base64. */
export async function readInside<Data>(name: string): Promise<Data> {
  const bytes = Uint8Array.from(atob(inside(name)?.textContent ?? ""), (letter) => letter.charCodeAt(0));
  return (await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json()) as Data;
}
