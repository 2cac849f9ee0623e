// The way from a job to the form of its capture.
import { Link } from "@tanstack/react-router";
import { KINDS } from "./captureForm";

interface Props {
  namespace: string;
  kind: string;
  name: string;
  /** The uid of its last capture, which is asked for again where the form does not know the kind. */
  last?: string;
  small?: boolean;
}

export function CaptureLink({ namespace, kind, name, last, small = false }: Props) {
  if (!(kind in KINDS) && last === undefined) return null;
  const filled = kind in KINDS ? { job: `${namespace}/${kind}/${name}` } : { repeat: `${namespace}/${last}` };
  return (
    <Link to="/requests" search={{ capture: "new", ...filled }} className={small ? "button small" : "button"} aria-label={`Capture ${name}`}>
      Capture
    </Link>
  );
}
