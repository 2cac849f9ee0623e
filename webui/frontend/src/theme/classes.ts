// Where time goes, in the order in which bars stack it, each with its colour and second sign. The parts of one rank add
// up to its span: overlapped communication is the hatched part of compute, and idle time is divided by cause.

import { IDLE_CAUSES } from "../api/idleCauses";

export type Sign = "plain" | "edge" | "hatch" | "lines" | "dots" | "letter" | "hollow";

export interface TimeClass {
  id: string;
  name: string;
  /** The custom property of palette.css. */
  color: string;
  sign: Sign;
  letter: string;
  explanation: string;
}

export const TIME_CLASSES: readonly TimeClass[] = [
  { id: "compute", name: "Compute", color: "--compute", sign: "plain", letter: "", explanation: "compute without communication beside it" },
  { id: "overlapped_communication", name: "Overlapped communication", color: "--compute", sign: "hatch", letter: "", explanation: "communication while compute ran; a part of compute" },
  { id: "exposed_communication", name: "Exposed communication", color: "--communication", sign: "edge", letter: "", explanation: "communication without compute: waiting for other ranks included" },
  { id: "exposed_memory", name: "Exposed memory", color: "--memory", sign: "lines", letter: "", explanation: "copies and sets without compute and without communication" },
  { id: "idle_data_loading", name: "Idle: data loading", color: "--data-loading", sign: "dots", letter: "", explanation: "the host waited for the next batch" },
  { id: "idle_host", name: "Idle: host", color: "--host", sign: "letter", letter: "H", explanation: "Python, operators, launches and synchronisation of the host" },
  { id: "idle_optimizer", name: "Idle: optimizer", color: "--optimizer", sign: "letter", letter: "O", explanation: "the host was in Optimizer.step or zero_grad" },
  { id: "idle_other", name: "Idle: other", color: "--idle", sign: "hollow", letter: "", explanation: "waiting for other work or an event, or not known" },
  { id: "idle_host_only", name: "Idle: no operator", color: "--idle", sign: "hollow", letter: "", explanation: "a rank without a device: no operator and no collective ran; the stages say what the host did" },
  { id: "unrecorded", name: "Not recorded", color: "--line", sign: "lines", letter: "", explanation: "work was launched that is not in the trace: no idle time" },
];

/** The class of time that draws each stage of a training loop, wherever it is drawn. */
export const STAGE_CLASSES: Readonly<Record<string, string>> = {
  data_loading: "data_loading",
  forward: "compute",
  loss: "compute",
  backward: "compute",
  zero_grad: "optimizer",
  optimizer: "optimizer",
  host: "host",
  other: "idle",
};

/** The color of what a finding is about: the class of time that would shrink. */
export function colorOfFinding(measure: string, part: string): string {
  const cause = /idle_ns\.(\w+)/.exec(measure)?.[1] ?? "";
  const shown = (IDLE_CAUSES as Record<string, string>)[cause];
  const id = shown ? `idle_${shown}` : PART_CLASSES[part];
  return TIME_CLASSES.find((one) => one.id === id)?.color ?? "--compute";
}

const PART_CLASSES: Readonly<Record<string, string>> = {
  idle: "idle_other",
  host: "idle_host",
  communication: "exposed_communication",
  copies: "exposed_memory",
  cores: "idle_host",
  ranks: "exposed_communication",
};

/** The parts as figures: compute whole, as in the report, with what of it ran beside communication after it. */
export function figuresOf(parts: readonly number[]): number[] {
  return parts.map((part, index) => (index === 0 ? part + (parts[1] ?? 0) : part));
}

export const figureName = ({ id, name }: TimeClass) => (id === "overlapped_communication" ? "of it beside communication" : name);

export type Parts = Record<string, number>;
type Measure = (name: string) => number | null | undefined;

/** The parts of one rank or total, ns, in the order of TIME_CLASSES; they add up to `span`. */
export function partsOf(measure: Measure): number[] {
  const at = (name: string) => Math.max(0, measure(name) ?? 0);
  const overlapped = Math.min(at("overlapped_communication"), at("compute"));
  const idle = at("idle");
  const shownAs = (shown: string) =>
    Object.entries(IDLE_CAUSES).reduce((sum, [cause, as]) => (as === shown ? sum + at(`idle_${cause}`) : sum), 0);
  const [loading, host, optimizer] = [shownAs("data_loading"), shownAs("host"), shownAs("optimizer")];
  const rest = Math.max(0, idle - loading - host - optimizer);
  // Only devices have causes: a host is idle when it runs no operator.
  const causesAreKnown = Object.keys(IDLE_CAUSES).some((name) => measure(`idle_${name}`) != null);
  return [
    at("compute") - overlapped,
    overlapped,
    at("exposed_communication"),
    at("exposed_memory"),
    loading,
    host,
    optimizer,
    causesAreKnown ? rest : 0,
    causesAreKnown ? 0 : rest,
    at("unrecorded"),
  ];
}
