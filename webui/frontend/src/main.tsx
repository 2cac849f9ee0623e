import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Problem } from "@/api/client";
import { takeToken } from "@/api/sign_in";
import { startTheme } from "@/theme/theme";
import { makeRouter } from "./router";
import "@/theme/palette.css";
import "@/theme/page.css";
import "@/theme/parts.css";
import "@/theme/charts.css";

startTheme();
await takeToken();

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // What the service refused stays refused; a service that is away may come back.
      retry: (failures, error) => failures < 2 && error instanceof Problem && (error.status === 0 || error.status >= 502),
      refetchOnWindowFocus: false,
    },
  },
});

const root = document.querySelector("#root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={makeRouter()} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
