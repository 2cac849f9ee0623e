// Who one is to the API server, which decides what one sees: a wrong prefix in the settings shows here first.
import { useMutation, useQuery } from "@tanstack/react-query";
import { signOut } from "@/api/sign_in";
import type { Whoami } from "@/api/models";
import { whoamiQuery } from "@/api/queries";
import { Name } from "@/parts/Name";
import { Failed, Loaded } from "@/parts/States";

const KNOWN_BY: Record<string, string> = {
  local: "the one-time address of this machine",
  oidc: "the identity provider at which you signed in",
  proxy: "the proxy in front of this service",
};

export function WhoamiPage() {
  const person = useQuery(whoamiQuery);
  return (
    <div className="page">
      <title>Who am I · fleetprof</title>
      <header className="page-head">
        <h1>Who am I</h1>
      </header>
      <Loaded query={person} what="who you are">
        {(known) => <Person known={known} />}
      </Loaded>
    </div>
  );
}

function Person({ known }: { known: Whoami }) {
  const leave = useMutation({ mutationFn: signOut });
  return (
    <section className="panel" aria-label="You">
      {known.problem && (
        <p role="alert">
          <strong>{known.problem}</strong>
        </p>
      )}
      <dl className="facts">
        <div>
          <dt>Name</dt>
          <dd>
            <Name text={known.name} />
          </dd>
        </div>
        <div>
          <dt>Groups</dt>
          <dd>{known.groups.length ? known.groups.map((group) => <div key={group}><Name text={group} /></div>) : "none"}</dd>
        </div>
        <div>
          <dt>Says who</dt>
          <dd>{known.source}</dd>
        </div>
        <div>
          <dt>You are known by</dt>
          <dd>{KNOWN_BY[known.mode] ?? known.mode}</dd>
        </div>
        <div>
          <dt>You may read</dt>
          <dd>{known.namespaces === null ? "every namespace" : known.namespaces.join(", ") || "no namespace that has captures"}</dd>
        </div>
        <div>
          <dt>You may ask for captures here</dt>
          <dd>{known.may_capture ? "yes, as far as the API server or the hub lets you" : "no: pages show the YAML and the command"}</dd>
        </div>
        <div>
          <dt>Version</dt>
          <dd>
            fleetprof {known.version}, <a href="/docs/index.html">its documentation</a>
          </dd>
        </div>
      </dl>
      {known.mode !== "proxy" && (
        <button type="button" disabled={leave.isPending} onClick={() => leave.mutate()}>
          Sign out
        </button>
      )}
      {leave.error && <Failed error={leave.error} />}
    </section>
  );
}
