import { defineConfig } from "vite";

export default defineConfig({
  // The server gives out the page at its root, or behind a proxy at any path.
  base: "./",
  build: {
    target: "es2022",
    // The wasm is a file of its own: it is compiled while it is loaded.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: { index: "index.html", harness: "harness.html" } },
  },
});
