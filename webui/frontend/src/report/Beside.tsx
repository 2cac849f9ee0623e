// Traces beside report.html, and the commands for those that are elsewhere.
import { useQuery } from "@tanstack/react-query";
import { besideQuery } from "@/api/queries";
import { CopyButton } from "@/parts/CopyButton";
import { Name } from "@/parts/Name";
import { Section } from "@/parts/Section";

export function BesideSection() {
  const { data } = useQuery(besideQuery);
  const links = Object.entries(data?.links ?? {});
  return (
    <Section id="downloads" title="Traces">
      {links.length > 0 && (
        <ul>
          {links.map(([source, href]) => (
            <li key={source}>
              <a href={href}>
                <Name text={source} most={80} code />
              </a>
            </li>
          ))}
        </ul>
      )}
      {data?.fetch && <Command text={data.fetch} what="Fetches the traces, which do not lie beside this page; each opens at ui.perfetto.dev:" />}
      {data?.perfetto && <Command text={data.perfetto} what="Writes the slowest iteration of the ranks that matter as one trace for ui.perfetto.dev:" />}
      <p className="quiet">All numbers are in report.json.</p>
    </Section>
  );
}

function Command({ text, what }: { text: string; what: string }) {
  return (
    <p className="row">
      <span>{what}</span> <code>{text}</code> <CopyButton text={text} label="Copy the command" />
    </p>
  );
}
