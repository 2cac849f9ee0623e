// What can be changed: sliders over what was predicted, and over batch sizes with throughput and memory as bars that follow.
import { useId } from "react";
import { formatBytes, formatCount } from "@/units/quantities";
import { threeDigits } from "@/units/durations";
import { type BatchLines, sizeNear, throughputAt, valueAt } from "./lines";

interface RangeProps {
  label: string;
  min: number;
  max: number;
  step: number | "any";
  value: number;
  said: string;
  /** Drawn as a bar, in this colour. */
  color?: string;
  onChange: (value: number) => void;
  /** By an arrow key, where a step of the slider is no step of what it stands for. */
  onStep?: (by: 1 | -1) => void;
}

const STEPS: Readonly<Record<string, 1 | -1>> = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };

function Range({ label, min, max, step, value, said, color, onChange, onStep }: RangeProps) {
  const id = useId();
  const share = max > min ? ((value - min) / (max - min)) * 100 : 100;
  return (
    <div className="whatif-row">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="range"
        className={color && "whatif-bar"}
        style={color ? ({ "--at": `${share}%`, "--color": `var(${color})` } as React.CSSProperties) : undefined}
        min={min}
        max={max}
        step={step}
        value={value}
        aria-valuetext={said}
        onChange={(event) => onChange(Number(event.target.value))}
        onKeyDown={(event) => {
          const by = STEPS[event.key];
          if (!by || !onStep) return;
          event.preventDefault();
          onStep(by);
        }}
      />
      <output htmlFor={id}>{said}</output>
    </div>
  );
}

/** One change that has an answer at some values, `now` among them. */
export function Steps({ label, values, chosen, now, say, onChange }: { label: string; values: readonly string[]; chosen: string | undefined; now: string; say: (value: string) => string; onChange: (value: string | undefined) => void }) {
  const steps = [...new Set([...values, now])].toSorted((a, b) => Number.parseFloat(a) - Number.parseFloat(b));
  const at = Math.max(0, steps.indexOf(chosen ?? now));
  return <Range label={label} min={0} max={steps.length - 1} step={1} value={at} said={`${say(steps[at]!)}${steps[at] === now ? ", as now" : ""}`} onChange={(next) => onChange(steps[next] === now ? undefined : steps[next])} />;
}

/** Batch size, throughput and memory: each may be dragged, the other two follow. */
export function BatchBars({ lines, size, now, onChange }: { lines: BatchLines; size: number; now: number; onChange: (size: number | undefined) => void }) {
  const set = (next: number) => onChange(next === now ? undefined : next);
  const throughput = (at: number) => throughputAt(lines, at);
  const memory = lines.memory;
  const held = (at: number) => (memory ? valueAt(memory, at).value : 0);
  return (
    <>
      <Range label="Batch size" min={lines.least} max={lines.most} step={1} value={size} said={`${formatCount(size)} samples on each rank${size === now ? ", as now" : ""}`} onChange={set} />
      {bar("Throughput", throughput, "--compute", (value) => `${threeDigits(value)} samples/s on each rank`)}
      {memory && bar("Memory", held, "--memory", (value) => `${formatBytes(value)} at the peak`)}
    </>
  );

  function bar(label: string, measure: (size: number) => number, color: string, say: (value: number) => string) {
    const ends = [measure(lines.least), measure(lines.most)];
    return <Range label={label} min={Math.min(...ends)} max={Math.max(...ends)} step="any" value={measure(size)} said={say(measure(size))} color={color} onChange={(wanted) => set(sizeNear(lines, measure, wanted))} onStep={(by) => set(Math.min(lines.most, Math.max(lines.least, size + by)))} />;
  }
}
