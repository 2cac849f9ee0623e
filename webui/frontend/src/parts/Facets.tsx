// Values to filter by, with the number of rows that have each. One value per facet; the address holds the choice.
import { useState } from "react";
import type { FacetValue } from "@/api/models";
import { formatCount } from "@/units/quantities";
import { middleCut, visibleText } from "@/units/text";
import { Name } from "./Name";

export interface Facet {
  id: string;
  name: string;
  values: readonly FacetValue[];
  chosen: string | undefined;
  /** How a value is said; as it is where this is not there. */
  say?: (value: string) => string;
}

export function Facets({ facets, onChoose }: { facets: readonly Facet[]; onChoose: (id: string, value: string | undefined) => void }) {
  // On a phone they are folded until they are asked for.
  const [isOpen, setIsOpen] = useState(false);
  const words = facets.flatMap((facet) => (facet.chosen === undefined ? [] : [middleCut(visibleText((facet.say ?? String)(facet.chosen)), 30)]));
  return (
    <aside className={isOpen ? "facets" : "facets folded"} aria-label="Filters">
      <button type="button" className="facets-fold" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        {isOpen ? "Hide filters" : `Filters${words.length > 0 ? `: ${words.join(", ")}` : ""}`}
      </button>
      {facets
        .filter((facet) => facet.values.length > 0 || facet.chosen)
        .map((facet) => (
          <fieldset key={facet.id}>
            <legend>{facet.name}</legend>
            <ul>
              {withChosen(facet).map(({ value, count }) => {
                const chosen = facet.chosen === value;
                return (
                  <li key={value}>
                    <button type="button" className="facet" aria-pressed={chosen} onClick={() => onChoose(facet.id, chosen ? undefined : value)}>
                      <Name text={(facet.say ?? String)(value) || "(none)"} most={40} />
                      <span className="quiet">{formatCount(count)}</span>
                    </button>
                  </li>
                );
              })}
            </ul>
          </fieldset>
        ))}
    </aside>
  );
}

// A chosen value without rows stays in sight, else nobody could take it back.
function withChosen({ values, chosen }: Facet): readonly FacetValue[] {
  return chosen === undefined || values.some(({ value }) => value === chosen) ? values : [{ value: chosen, count: 0 }, ...values];
}
