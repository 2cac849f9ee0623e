// The script of report.html: the report's page alone, drawn in place of what is there for readers without script.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, createRootRoute, createRoute, createRouter, Outlet, RouterProvider } from "@tanstack/react-router";
import { createRoot } from "react-dom/client";
import { Patterns } from "@/charts/Patterns";
import { Failed } from "@/parts/States";
import { ReportPage } from "@/report/ReportPage";
import { readReportSearch } from "@/report/search";
import { startTheme } from "@/theme/theme";
import "@/theme/palette.css";
import "@/theme/page.css";
import "@/theme/parts.css";
import "@/theme/charts.css";

startTheme();

const root = createRootRoute({
  component: () => (
    <>
      <Patterns />
      <main>
        <Outlet />
      </main>
    </>
  ),
});
const report = createRoute({ getParentRoute: () => root, path: "/reports/$namespace/$uid", validateSearch: readReportSearch, component: ReportPage });
const router = createRouter({
  routeTree: root.addChildren([report]),
  // What is chosen stays in memory: the file's own address is the reader's.
  history: createMemoryHistory({ initialEntries: ["/reports/-/-"] }),
  defaultErrorComponent: ({ error }) => <Failed error={error} />,
});

const place = document.querySelector("#root");
if (place) {
  createRoot(place).render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false, refetchOnWindowFocus: false } } })}>
      <RouterProvider router={router as never} />
    </QueryClientProvider>,
  );
}
