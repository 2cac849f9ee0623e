// Perfetto's page opens a trace that another window hands to it: the window is opened inside the click, asked until it
// answers, and then given the bytes. Nothing is uploaded; the trace goes from this browser to that one.
const PERFETTO = "https://ui.perfetto.dev";
const ASK_MS = 100;
const GIVE_UP_MS = 30_000;

/** Resolves when the trace that `read` gives was handed over. Rejects with a sentence for people. */
export async function openInPerfetto(read: () => Promise<ArrayBuffer>, title: string, fileName: string): Promise<void> {
  const opened = window.open(PERFETTO);
  if (!opened) throw new Error("The browser did not open a window: allow it for this page, then click again.");
  let buffer: ArrayBuffer;
  try {
    buffer = await read();
  } catch (error) {
    opened.close();
    throw error;
  }
  await untilReady(opened);
  opened.postMessage({ perfetto: { buffer, title, fileName } }, PERFETTO, [buffer]);
}

function untilReady(opened: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => opened.postMessage("PING", PERFETTO), ASK_MS);
    const stop = () => {
      clearInterval(timer);
      clearTimeout(limit);
      window.removeEventListener("message", listen);
    };
    const limit = setTimeout(() => {
      stop();
      reject(new Error("Perfetto did not answer. Download the trace and open it there."));
    }, GIVE_UP_MS);
    const listen = (event: MessageEvent<unknown>) => {
      if (event.origin !== PERFETTO || event.data !== "PONG") return;
      stop();
      resolve();
    };
    window.addEventListener("message", listen);
  });
}
