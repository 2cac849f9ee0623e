// A request as it goes on: by the service's events, and by asking every few seconds where events do not come through.
//
// A browser opens six connections to a service that speaks HTTP/1.1, and a stream of events keeps one. So one tab of a
// browser has the stream, and the others ask.
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { path } from "./client";
import { withChange } from "./ledger";
import type { LedgerChange, RequestDetail } from "./models";
import { requestQuery } from "./queries";

const POLL_MS = 3_000;
const MOST_FAILURES = 3;
const STREAM = "fleetprof-events";
export type Following = "events" | "other_tab" | "polling" | "finished";

export function useFollowing(namespace: string, uid: string, finished: boolean): Following {
  const client = useQueryClient();
  // Without a secure context there are no locks, and nobody knows of the other tabs.
  const [failed, setFailed] = useState(!("locks" in navigator));
  const [hasStream, setHasStream] = useState(false);

  useEffect(() => {
    if (finished || failed) return;
    const ended = new AbortController();
    const follow = () =>
      new Promise<void>((release) => {
        const source = openEvents(client, namespace, uid, () => setFailed(true));
        ended.signal.addEventListener("abort", () => {
          source.close();
          setHasStream(false);
          release();
        });
        setHasStream(true);
      });
    // It waits for the tab that has the stream; an abort before that is the end of this page.
    navigator.locks.request(STREAM, { signal: ended.signal }, follow).catch(() => undefined);
    return () => ended.abort();
  }, [client, namespace, uid, finished, failed]);

  useEffect(() => {
    if (finished || hasStream) return;
    const timer = setInterval(() => void client.invalidateQueries({ queryKey: requestQuery(namespace, uid).queryKey }), POLL_MS);
    return () => clearInterval(timer);
  }, [client, namespace, uid, finished, hasStream]);

  if (finished) return "finished";
  return hasStream ? "events" : failed ? "polling" : "other_tab";
}

/** Brings each change into what the page has; `refused` is called where the service sends no events. */
function openEvents(client: QueryClient, namespace: string, uid: string, refused: () => void): EventSource {
  const { queryKey } = requestQuery(namespace, uid);
  const source = new EventSource(`${path("requests", namespace, uid)}/events`);
  source.addEventListener("ledger", (event: MessageEvent<string>) => {
    const change = JSON.parse(event.data) as LedgerChange;
    client.setQueryData<RequestDetail>(queryKey, (detail) => detail && withChange(detail, change));
  });
  source.addEventListener("finished", () => {
    source.close();
    void client.invalidateQueries({ queryKey });
  });
  source.addEventListener("signed_out", () => {
    source.close();
    void client.invalidateQueries();
  });
  let failures = 0;
  source.addEventListener("open", () => (failures = 0));
  source.addEventListener("error", () => {
    failures += 1;
    // The browser dials again by itself, unless the service refused; something between may never let events through.
    if (source.readyState !== EventSource.CLOSED && failures < MOST_FAILURES) return;
    source.close();
    refused();
  });
  return source;
}
