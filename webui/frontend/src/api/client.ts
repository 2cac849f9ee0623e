// How pages ask the service: JSON by the address of the page itself, errors as problems with a next step.

/** What the service answered instead, as RFC 9457 has it; `status` 0 where nothing answered. */
export class Problem extends Error {
  readonly status: number;
  readonly title: string;
  readonly nextStep: string;
  readonly fields: readonly string[];

  constructor(status: number, title: string, detail: string, nextStep: string, fields: readonly string[] = []) {
    super(detail);
    this.status = status;
    this.title = title;
    this.nextStep = nextStep;
    this.fields = fields;
  }
}

export type Params = Record<string, string | number | boolean | null | undefined>;

/** An address with its parameters; those without a value are left out. */
export function address(route: string, params: Params = {}): string {
  const entries = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString();
  return query ? `${route}?${query}` : route;
}

/** A path of segments, each of them escaped. */
export function path(...segments: (string | number)[]): string {
  return `/${segments.map((segment) => encodeURIComponent(String(segment))).join("/")}`;
}

async function problemOf(response: Response): Promise<Problem> {
  const fallback = `The service answered ${response.status}.`;
  try {
    const body: unknown = await response.json();
    const textOf = (name: string) => {
      const value = (body as Record<string, unknown>)[name];
      return typeof value === "string" ? value : "";
    };
    const fields = (body as { fields?: unknown }).fields;
    return new Problem(
      response.status,
      textOf("title") || fallback,
      textOf("detail"),
      textOf("next_step"),
      Array.isArray(fields) ? fields.map(String) : [],
    );
  } catch {
    return new Problem(response.status, fallback, "", "Try again; if that does not help, look at the service's log.");
  }
}

async function ask(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "The service does not answer", "", "Check whether `fleetprof ui` (or the Deployment) still runs, then try again.");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function getJson<T>(url: string, signal?: AbortSignal): Promise<T> {
  const response = await ask(url, { headers: { Accept: "application/json" }, signal });
  return (await response.json()) as T;
}

/** A write. The custom header is what another site's form cannot send. */
export async function postJson<T>(url: string, body: unknown, method: "POST" | "DELETE" = "POST"): Promise<T | undefined> {
  const response = await ask(url, {
    method,
    headers: { Accept: "application/json", "Content-Type": "application/json", "X-Fleetprof-Request": "1" },
    body: JSON.stringify(body),
  });
  return response.status === 204 ? undefined : ((await response.json()) as T);
}
