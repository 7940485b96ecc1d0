// Builds the page into the Python package, or with --tests the tests into .tests/.
import { build } from "esbuild";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { dirname, join } from "node:path";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.env.VIEWER_OUT ?? join(here, "..", "src", "retrasyn", "service", "web", "static", "map");
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

// MapLibre's own bundle holds three modules: what the page and the worker share, and one for each.
// It would hand the worker its part as a blob, which our content-security-policy forbids, and its
// build for such policies has the shared part twice (97 KB gzipped). So the modules are files of ours.
async function splitMapLibre(maplibre) {
  const bundle = await readFile(join(maplibre, "maplibre-gl.js"), "utf8");
  const modules = {};
  for (const [text, name] of bundle.matchAll(/^define\("(\w+)",.*$/gm)) modules[name] = text;
  if (Object.keys(modules).join() !== "shared,worker,index") throw new Error("maplibre-gl.js is not made of shared, worker and index");
  const define = "{const shared={},map=self.maplibregl={};self.define=(name,needs,make)=>make(...needs.map(need=>need==='exports'&&name==='index'?map:shared))}";
  await writeFile(join(out, "shared.js"), `${define}\n${modules.shared}\n`);
  await writeFile(join(out, "maplibre.js"), `${modules.index}\n`);
  await writeFile(join(out, "worker.js"), `importScripts("shared.js");\n${modules.worker}\n`);
  await cp(join(maplibre, "LICENSE.txt"), join(out, "maplibre-license.txt"));
}

async function buildPage() {
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  await splitMapLibre(join(here, "node_modules", "maplibre-gl", "dist"));
  await build({
    ...shared,
    entryPoints: { app: join(here, "src", "main.ts") },
    outdir: out,
    minify: true,
  });
  await build({
    ...shared,
    entryPoints: { app: join(here, "src", "app.css") },
    outdir: out,
    minify: true,
    loader: { ".svg": "dataurl" },
  });
  for (const name of ["index.html", "icon.svg"]) await cp(join(here, "src", name), join(out, name));
}

await (process.argv.includes("--tests") ? buildTests() : buildPage());
