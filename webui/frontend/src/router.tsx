// The addresses, one per page; what a page shows is in its search parameters, so that every view can be sent to somebody.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Link, redirect } from "@tanstack/react-router";
import { DiffPage } from "@/diff/DiffPage";
import { readDiffSearch } from "@/diff/search";
import { FleetPage } from "@/fleet/FleetPage";
import { LossesPage } from "@/fleet/LossesPage";
import { readFleetSearch, readLossesSearch } from "@/fleet/search";
import { Shell } from "@/parts/Shell";
import { Empty, Failed } from "@/parts/States";
import { OpenedPage } from "@/opened/OpenedPage";
import { PoliciesPage } from "@/policies/PoliciesPage";
import { PolicyPage } from "@/policies/PolicyPage";
import { WhoamiPage } from "@/person/WhoamiPage";
import { ReportPage } from "@/report/ReportPage";
import { readReportSearch, readTimelineSearch } from "@/report/search";
import { RequestPage } from "@/requests/RequestPage";
import { RequestsPage } from "@/requests/RequestsPage";
import { readRequestSearch, readRequestsSearch } from "@/requests/search";
import { readWorkloadSearch } from "@/trend/search";
import { WorkloadPage } from "@/trend/WorkloadPage";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => (
    <div className="page">
      <h1>Not found</h1>
      <Empty title="There is no such page">
        <Link to="/fleet">To the fleet</Link>
      </Empty>
    </div>
  ),
});

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/fleet", replace: true });
  },
});
const fleet = createRoute({ getParentRoute: () => root, path: "/fleet", validateSearch: readFleetSearch, component: FleetPage });
const losses = createRoute({ getParentRoute: () => root, path: "/losses", validateSearch: readLossesSearch, component: LossesPage });
const workload = createRoute({
  getParentRoute: () => root,
  path: "/fleet/$namespace/$kind/$name",
  validateSearch: readWorkloadSearch,
  component: WorkloadPage,
});
const requests = createRoute({ getParentRoute: () => root, path: "/requests", validateSearch: readRequestsSearch, component: RequestsPage });
const request = createRoute({
  getParentRoute: () => root,
  path: "/requests/$namespace/$uid",
  validateSearch: readRequestSearch,
  component: RequestPage,
});
const report = createRoute({
  getParentRoute: () => root,
  path: "/reports/$namespace/$uid",
  validateSearch: readReportSearch,
  component: ReportPage,
});
const timeline = createRoute({
  getParentRoute: () => root,
  path: "/reports/$namespace/$uid/timeline",
  validateSearch: readTimelineSearch,
  component: lazyRouteComponent(() => import("@/report/TimelinePage")),
});
const diff = createRoute({ getParentRoute: () => root, path: "/diff", validateSearch: readDiffSearch, component: DiffPage });
const policies = createRoute({ getParentRoute: () => root, path: "/policies", component: PoliciesPage });
const policy = createRoute({ getParentRoute: () => root, path: "/policies/$namespace/$name", component: PolicyPage });
const opened = createRoute({ getParentRoute: () => root, path: "/opened", component: OpenedPage });
const whoami = createRoute({ getParentRoute: () => root, path: "/whoami", component: WhoamiPage });

/** Parameters are texts, as the service's are: no quotes, no JSON. */
const parseSearch = (search: string) => Object.fromEntries(new URLSearchParams(search));
function stringifySearch(search: Record<string, unknown>): string {
  const entries = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString();
  return query && `?${query}`;
}

export function makeRouter() {
  return createRouter({
    routeTree: root.addChildren([home, fleet, losses, workload, requests, request, report, timeline, diff, policies, policy, opened, whoami]),
    parseSearch,
    stringifySearch,
    scrollRestoration: true,
    defaultErrorComponent: ({ error }) => <Failed error={error} />,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
