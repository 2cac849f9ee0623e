// A host by its name, which leads to everything that was captured on it.
import { Link } from "@tanstack/react-router";
import { ALONE } from "@/api/alone";
import { Name } from "./Name";

export function HostLink({ host, most }: { host: string; most: number }) {
  if (ALONE || !host) return <Name text={host || "–"} most={most} />;
  return (
    <Link to="/requests" search={{ host }} className="host" title={`All captures with a rank on ${host}`}>
      <Name text={host} most={most} />
    </Link>
  );
}
