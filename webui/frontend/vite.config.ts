import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  resolve: { tsconfigPaths: true },
  build: {
    outDir: "../fleetprof_webui/static",
    emptyOutDir: true,
    target: "es2023",
    // Nothing inline: the service's Content-Security-Policy allows files of its own origin only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // compress.mjs holds the pages to their budget, compressed.
    chunkSizeWarningLimit: 2000,
  },
});
