// Local mode: the address that `fleetprof ui` prints carries a one-time token behind its "#", which no server sees. It is
// exchanged for a cookie that script cannot read, and leaves the address before anything else happens.
import { postJson } from "./client";

export async function takeToken(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    await postJson("/session", { token });
  } catch {
    // A token that was used is worth nothing; a session that lives still does, and else the page says what to do.
  }
}
