// The state of a request: a form and a word, so that colour is not the only sign.
export function StateMark({ state, finished }: { state: string; finished: boolean }) {
  const tone = !finished ? "running" : state === "Complete" ? "good" : state === "PartiallyCaptured" || state === "Cancelled" ? "part" : "bad";
  const sign = { running: "◐", good: "●", part: "◒", bad: "✕" }[tone];
  return (
    <span className={`state state-${tone}`}>
      <span aria-hidden="true">{sign}</span> {state}
    </span>
  );
}
