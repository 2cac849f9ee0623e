// Local mode: the address that `fleetprof ui` prints carries a one-time token behind its "#", which no server sees. It is
// exchanged for a cookie that script cannot read, and leaves the address before anything else happens.
import { postJson } from "./client";
import type { SignedOut } from "./models";

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

/** Ends the session here, then at the identity provider where that has an address for it. */
export async function signOut(): Promise<void> {
  const answer = await postJson<SignedOut>("/session", {}, "DELETE");
  location.assign(answer?.continue_at || "/");
}

const START = "/session/start";

/** The address that signs one in and leads back to this page; undefined where the next step names none. */
export function signInAddress(nextStep: string, here: { pathname: string; search: string }): string | undefined {
  if (!nextStep.includes(START)) return undefined;
  return `${START}?then=${encodeURIComponent(here.pathname + here.search)}`;
}
