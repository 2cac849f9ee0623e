// Text from a trace is shown as what it is: characters that cannot be seen, or that turn the text around, are written
// as escapes. HTML is React's to escape; this is for what escaping does not help against, and for Canvas.

// oxlint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The text with control and direction characters as escapes: "\u202E". */
export function visibleText(text: string): string {
  return text.replace(UNSEEN, (found) => `\\u${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
}

/** Shortened in the middle: both ends of a kernel's name tell something. */
export function middleCut(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.ceil((most - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}

/** The first of `texts`, the fullest first, that has at most so many characters; "" where none fits. */
export function firstFitting(texts: readonly string[], most: number): string {
  return texts.find((text) => text.length <= most) ?? "";
}

const WORDS: Record<string, string> = {
  span: "Span",
  compute: "Compute",
  overlapped_communication: "Overlapped communication",
  exposed_communication: "Exposed communication",
  exposed_memory: "Exposed memory operations",
  idle: "Idle",
  unrecorded: "Not recorded",
  iteration: "Iteration time",
  data_loading: "Data loading",
  lateness: "Lateness",
  energy: "Energy",
  iteration_energy: "Energy of an iteration",
  sample_energy: "Energy of a sample",
  memory: "Memory peak",
  launches: "Launches",
};

/** The name of a measure for people: `idle_host` is "Idle: host". */
export function measureName(measure: string): string {
  const known = WORDS[measure];
  if (known) return known;
  for (const prefix of ["idle", "stage"]) {
    if (measure.startsWith(`${prefix}_`)) {
      return `${prefix === "idle" ? "Idle" : "Stage"}: ${measure.slice(prefix.length + 1).replaceAll("_", " ")}`;
    }
  }
  const words = measure.replaceAll("_", " ").replaceAll(".", " · ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Two sentences, of which the first may have no full stop and the second may be empty. */
export function joinSentences(first: string, second: string): string {
  return second ? `${first.replace(/\.$/, "")}. ${second}` : first;
}

/** A sentence of the analyzer's at the beginning of a line. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** "late_stage" is "Late stage". */
export function sentenceCase(name: string): string {
  const words = name.replaceAll("_", " ").replaceAll(/\b(cpu|gpu)\b/g, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}
