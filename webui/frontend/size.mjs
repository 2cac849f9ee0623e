// Prints what the pages weigh, compressed, and fails above the budget: 500 KB of script for the first page.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const BUDGET_BYTES = 500_000;
const root = new URL("../fleetprof_webui/static/", import.meta.url);
const compressed = (name) => gzipSync(readFileSync(new URL(name, root)), { level: 9 }).length;
const first = new Set(
  [...readFileSync(new URL("index.html", root), "utf8").matchAll(/(?:src|href)="\/?(assets\/[^"]+\.js)"/g)].map((m) => m[1]),
);

let script = 0;
let later = 0;
let style = 0;
for (const name of readdirSync(new URL("assets/", root))) {
  const path = `assets/${name}`;
  if (name.endsWith(".js") && first.has(path)) script += compressed(path);
  else if (name.endsWith(".js")) later += compressed(path);
  if (name.endsWith(".css")) style += compressed(path);
}
const kb = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;
console.log(`compressed: script ${kb(script)} (later ${kb(later)}), styles ${kb(style)}; budget ${kb(BUDGET_BYTES)}`);
if (script + later > BUDGET_BYTES) {
  console.error("the script passes its budget");
  process.exit(1);
}
