// What was given to `fleetprof ui PATH…`: its progress while it is read, then its reports. A single one is gone to at once.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import type { Opened } from "@/api/models";
import { openedQuery } from "@/api/queries";
import { Name } from "@/parts/Name";
import { Loaded } from "@/parts/States";
import { formatDuration } from "@/units/durations";
import { formatCount, plural } from "@/units/quantities";

export function OpenedPage() {
  const query = useQuery(openedQuery);
  const navigate = useNavigate();
  const page = query.data;
  const captures = page?.items.flatMap((item) => item.captures) ?? [];
  const [only] = captures;
  const goes = page?.finished && captures.length === 1 && page.items.every(({ problem }) => !problem);
  useEffect(() => {
    // In place of this page: Back leads to where the reader came from.
    if (goes && only) void navigate({ to: "/reports/$namespace/$uid", params: only, replace: true });
  }, [goes, only, navigate]);
  return (
    <div className="page">
      <title>Opened · fleetprof</title>
      <header className="page-head">
        <h1>Opened</h1>
        {page && <p className="quiet" role="status">{page.finished ? `analyzed in ${formatDuration(page.seconds * 1e9)}` : `reading for ${formatDuration(page.seconds * 1e9)}`}</p>}
      </header>
      <Loaded query={query} what="what you opened">
        {({ items, finished }) => (
          <ul className="opened">
            {items.length === 0 && !finished && <li className="quiet">Looking for traces …</li>}
            {items.map((item) => (
              <li key={item.what}>
                <Row item={item} finished={finished} />
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </div>
  );
}

function Row({ item, finished }: { item: Opened; finished: boolean }) {
  const label = item.what || "Traces";
  return (
    <>
      <h2>
        <Name text={label} most={100} />
      </h2>
      {item.problem && <p role="alert"><Name text={item.problem} most={600} /></p>}
      {item.captures.length > 0 ? (
        <ul>
          {item.captures.map(({ namespace, uid, title }) => (
            <li key={uid}>
              <Link to="/reports/$namespace/$uid" params={{ namespace, uid }}>
                Report of <Name text={title} most={100} />
              </Link>{" "}
              {item.total > 0 && item.captures.length === 1 && <span className="quiet">{plural(item.total, "file")}</span>}
            </li>
          ))}
        </ul>
      ) : (
        !item.problem && !finished && (
          <p>
            <progress aria-label={`Files of ${label} that were read`} max={item.total || undefined} value={item.total ? item.count : undefined} />{" "}
            {item.total > 0 && `${formatCount(item.count)} of ${plural(item.total, "file")}`}{" "}
            <span className="quiet">{item.total > 0 && item.count === item.total ? "putting the report together" : item.source && <Name text={item.source} most={80} />}</span>
          </p>
        )
      )}
    </>
  );
}
