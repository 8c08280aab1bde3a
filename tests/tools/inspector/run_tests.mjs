// run_tests.mjs PAGE_DIR OUT TEST.ts...: bundles the tests and runs them with node's test runner. PAGE_DIR has the packages that the
// build installed.
import { existsSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { delimiter, join, resolve } from "node:path";

const [pageDir, out, ...tests] = process.argv.slice(2);
const hasBrowser = ["chromium", "chromium-browser", "google-chrome"].some((name) => (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, name))));
if (process.env.PAGE_DIR && !hasBrowser) {
  console.log("skipped: there is no chromium (tools/setup browser installs it)");
  process.exit(4);
}
const { buildSync } = createRequire(join(resolve(pageDir), "package.json"))("esbuild");
const made = buildSync({
  entryPoints: tests, bundle: true, platform: "node", format: "esm", target: "node18", packages: "external", outdir: out, outExtension: { ".js": ".mjs" },
  metafile: true, sourcemap: "inline", logLevel: "warning",
});
const files = Object.keys(made.metafile.outputs);
const run = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files.map((file) => resolve(file))], { stdio: "inherit" });
process.exit(run.status ?? 1);
