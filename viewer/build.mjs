// Builds the page into the Python package, or with --tests the tests into .tests/.
import { build } from "esbuild";
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { dirname, join } from "node:path";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "src", "retrasyn", "service", "web", "static", "map");
const shared = { bundle: true, format: "esm", target: "es2022", logLevel: "warning", legalComments: "none" };

async function buildTests() {
  await rm(join(here, ".tests"), { recursive: true, force: true });
  const files = (await readdir(join(here, "tests"))).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...shared,
    entryPoints: files.map((name) => join(here, "tests", name)),
    outdir: join(here, ".tests"),
    outExtension: { ".js": ".mjs" },
    platform: "node",
  });
}

async function buildPage() {
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  const maplibre = join(here, "node_modules", "maplibre-gl", "dist");
  await build({
    ...shared,
    entryPoints: { app: join(here, "src", "main.ts") },
    outdir: out,
    minify: true,
    // The build for strict content-security-policies: its worker is a file, not a blob.
    alias: { "maplibre-gl": join(maplibre, "maplibre-gl-csp.js") },
  });
  await build({
    ...shared,
    entryPoints: { app: join(here, "src", "app.css") },
    outdir: out,
    minify: true,
    loader: { ".svg": "dataurl" },
  });
  await cp(join(maplibre, "maplibre-gl-csp-worker.js"), join(out, "worker.js"));
  await cp(join(maplibre, "LICENSE.txt"), join(out, "maplibre-license.txt"));
  await cp(join(here, "src", "index.html"), join(out, "index.html"));
}

await (process.argv.includes("--tests") ? buildTests() : buildPage());
