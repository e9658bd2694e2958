import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

// Relative addresses: the same build is served at /review/ locally and at the root of a CloudFront path.
export default defineConfig({
  base: "./",
  plugins: [preact()],
  build: { assetsInlineLimit: 0, modulePreload: { polyfill: false }, target: "es2022" },
});
