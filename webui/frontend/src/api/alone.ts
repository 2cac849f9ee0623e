// A report by itself: report.html has its slices inside, and no service behind it.

/** What lies beside the file: by source of a rank the way to its trace, and commands for what does not. */
export interface Beside {
  links: Readonly<Record<string, string>>;
  fetch: string;
  perfetto: string;
}

const inside = (name: string) => (typeof document === "undefined" ? null : document.querySelector(`script[data-slice="${name}"]`));

/** Whether this page is such a file: then nothing leads to other pages. */
export const ALONE = inside("overview") !== null;

/** A document of the file, of its gzip in base64. */
export async function readInside<Data>(name: string): Promise<Data> {
  const bytes = Uint8Array.from(atob(inside(name)?.textContent ?? ""), (letter) => letter.charCodeAt(0));
  return (await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json()) as Data;
}
