// The frame of every page: where one is, where one can go, who one is, and the theme.
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet } from "@tanstack/react-router";
import { whoamiQuery } from "@/api/queries";
import { type Choice, chooseTheme, useThemeChoice } from "@/theme/theme";
import { Patterns } from "@/charts/Patterns";

const THEMES: readonly [Choice, string][] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export function Shell() {
  const choice = useThemeChoice();
  const person = useQuery(whoamiQuery);
  return (
    <>
      <a href="#content" className="skip">
        To the content
      </a>
      <header className="bar">
        <Link to="/fleet" className="brand">
          fleetprof
        </Link>
        <nav aria-label="Pages">
          <Link to="/fleet" activeOptions={{ includeSearch: false }}>
            Fleet
          </Link>
          <Link to="/requests" activeOptions={{ includeSearch: false }}>
            Requests
          </Link>
          <Link to="/policies">Policies</Link>
        </nav>
        <div className="bar-end">
          {person.data && (
            <Link to="/whoami" className="quiet" title="Who am I">
              {person.data.name}
            </Link>
          )}
          <select aria-label="Theme" value={choice} onChange={(event) => chooseTheme(event.target.value as Choice)}>
            {THEMES.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </div>
      </header>
      <Patterns />
      <main id="content" tabIndex={-1}>
        <Outlet />
      </main>
    </>
  );
}
