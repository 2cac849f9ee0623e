// The frame of every page: where one is, where one can go, who one is, and the theme.
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
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
  const content = useRef<HTMLElement>(null);
  const pathname = useRouterState({ select: ({ resolvedLocation }) => resolvedLocation?.pathname });
  const shown = useRef<string | undefined>(undefined);
  // The link that was followed is gone with its page: without this a keyboard begins at the bar again.
  useEffect(() => {
    if (shown.current !== undefined && shown.current !== pathname && document.activeElement === document.body) content.current?.focus({ preventScroll: true });
    shown.current = pathname;
  }, [pathname]);
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
          <Link to="/losses" activeOptions={{ includeSearch: false }}>
            Losses
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
      <main id="content" tabIndex={-1} ref={content}>
        <Outlet />
      </main>
    </>
  );
}
