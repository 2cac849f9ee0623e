// Compresses what was built, each file beside it as .br and .gz, prints what the pages weigh, and fails above the budget:
// 500 KB of script for the first page. Nothing is compressed while the service answers.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const BUDGET_BYTES = 500_000;
const root = new URL("../fleetprof_webui/static/", import.meta.url);
const names = readdirSync(root, { recursive: true }).filter((name) => /\.(js|css|html|svg)$/.test(name));
const weights = new Map();

for (const name of names) {
  const plain = readFileSync(new URL(name, root));
  const forms = {
    ".br": brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length } }),
    ".gz": gzipSync(plain, { level: 9 }),
  };
  for (const [ending, data] of Object.entries(forms)) writeFileSync(new URL(name + ending, root), data);
  weights.set(name, { gzip: forms[".gz"].length, brotli: forms[".br"].length });
}

const first = new Set(
  [...readFileSync(new URL("index.html", root), "utf8").matchAll(/(?:src|href)="\/?(assets\/[^"]+\.js)"/g)].map((m) => m[1]),
);
const sum = (form, wanted) => [...weights].filter(([name]) => wanted(name)).reduce((total, [, one]) => total + one[form], 0);
const isScript = (name) => name.endsWith(".js");
const kb = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;
for (const form of ["gzip", "brotli"]) {
  const script = sum(form, (name) => isScript(name) && first.has(name));
  const later = sum(form, (name) => isScript(name) && !first.has(name));
  const styles = sum(form, (name) => name.endsWith(".css"));
  console.log(`${form}: script ${kb(script)} (later ${kb(later)}), styles ${kb(styles)}; budget ${kb(BUDGET_BYTES)}`);
  if (script + later > BUDGET_BYTES) {
    console.error("the script passes its budget");
    process.exit(1);
  }
}
