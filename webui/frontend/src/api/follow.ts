// A request as it goes on: by the service's events, and by asking every few seconds where events do not come through.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { path } from "./client";
import { withChange } from "./ledger";
import type { LedgerChange, RequestDetail } from "./models";
import { requestQuery } from "./queries";

const POLL_MS = 3_000;
export type Following = "events" | "polling" | "finished";

export function useFollowing(namespace: string, uid: string, finished: boolean): Following {
  const client = useQueryClient();
  const [failed, setFailed] = useState(false);

  useEffect(() => {
    if (finished || failed) return;
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
    source.addEventListener("error", () => {
      // The browser dials again by itself, unless the service refused.
      if (source.readyState === EventSource.CLOSED) setFailed(true);
    });
    return () => source.close();
  }, [client, namespace, uid, finished, failed]);

  useEffect(() => {
    if (finished || !failed) return;
    const timer = setInterval(() => void client.invalidateQueries({ queryKey: requestQuery(namespace, uid).queryKey }), POLL_MS);
    return () => clearInterval(timer);
  }, [client, namespace, uid, finished, failed]);

  return finished ? "finished" : failed ? "polling" : "events";
}
