// A trace of a report in Perfetto.
import { path } from "@/api/client";
import { openInPerfetto } from "@/parts/perfetto";

/** Resolves when the trace was handed over. Rejects with a sentence for people. */
export function openTrace(namespace: string, uid: string, file: string, title: string): Promise<void> {
  const read = async () => {
    const response = await fetch(`${filePath(namespace, uid, file)}?through=service`, { credentials: "same-origin" });
    if (!response.ok) throw new Error(`The trace could not be read (${response.status}).`);
    return response.arrayBuffer();
  };
  return openInPerfetto(read, title, file.split("/").at(-1)!);
}

/** The address of a file of a report; each part of its name is escaped. */
export function filePath(namespace: string, uid: string, file: string): string {
  return path("reports", namespace, uid, "files", ...file.split("/"));
}
