// A few numbers and sentences that a reader should know at once.
import { Name } from "@/parts/Name";
import type { SectionProps } from "./sections";

export function KeyFigures({ report: { figures, sentences } }: Pick<SectionProps, "report">) {
  return (
    <>
      {figures.length > 0 && (
        <dl className="key-figures">
          {figures.map(({ name, value, context }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
              <dd className="quiet">{context}</dd>
            </div>
          ))}
        </dl>
      )}
      {sentences.length > 0 && (
        <ul className="quiet">
          {sentences.map((sentence) => (
            <li key={sentence}>
              <Name text={sentence} most={600} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
