// What a page shows while it waits, where there is nothing, and where something went wrong: each says what to do.
import type { ReactNode } from "react";
import { Problem } from "@/api/client";
import { signInAddress } from "@/api/sign_in";
import { plural } from "@/units/quantities";

export function Loading({ what, rows = 3 }: { what: string; rows?: number }) {
  return (
    <div className="loading" role="status">
      <span className="unseen">Loading {what}</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="loading-row" />
      ))}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Failed({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem =
    error instanceof Problem ? error : new Problem(0, "This page failed", String(error), "Reload the page; if the error stays, report it.");
  const signIn = problem.status === 401 ? signInAddress(problem.nextStep, location) : undefined;
  return (
    <div className="failed" role="alert">
      <p className="empty-title">
        {problem.title}
        {problem.status > 0 && <span className="quiet"> · {problem.status}</span>}
      </p>
      {problem.message && <p>{problem.message}</p>}
      {problem.fields.length > 0 && (
        <ul>
          {problem.fields.map((field) => (
            <li key={field}>{field}</li>
          ))}
        </ul>
      )}
      {signIn ? (
        <a className="button primary" href={signIn}>
          Sign in
        </a>
      ) : (
        problem.nextStep && <p className="quiet">{problem.nextStep}</p>
      )}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

interface Query<Data> {
  data: Data | undefined;
  error: unknown;
  refetch: () => unknown;
}

interface LoadedProps<Data> {
  query: Query<Data>;
  what: string;
  rows?: number;
  /** What the rows of a slice are, "rank": those that it leaves out are counted below it. */
  cut?: string;
  children: (data: Data) => ReactNode;
}

/** The data of a query, or its loading and error state. */
export function Loaded<Data>({ query, what, rows, cut, children }: LoadedProps<Data>) {
  if (query.data !== undefined) {
    const left = cut === undefined ? 0 : ((query.data as { cut?: number }).cut ?? 0);
    return (
      <>
        {children(query.data)}
        {left > 0 && cut && <p className="quiet">{plural(left, cut)} more in report.json alone</p>}
      </>
    );
  }
  if (query.error) return <Failed error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading what={what} rows={rows} />;
}
