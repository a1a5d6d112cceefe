// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { buildDist, type Program } from "../api/scale-process.ts";
import type { ChartProgram } from "../support/chart-program.ts";
import { run } from "../support/process.ts";

/** One way to make an agent and to run it. */
export interface Form extends Program {
  readonly name: string;
  /** No agent: a process that does no more with Node.js than every agent has to. */
  readonly isFloor?: boolean;
}

const ROOT = join(import.meta.dirname, "../..");
const MAIN = join(ROOT, "ipam-plugin/agent/main.ts");
const FLAGS = ["--max-semi-space-size=1", "--optimize-for-size", "--no-opt"];
/** A request over TLS, a database, and a port that is listened on. */
const FLOOR = `
const { createServer } = require("node:http"), { get } = require("node:https"), { readFileSync } = require("node:fs");
const { DatabaseSync } = require("node:sqlite");
const account = "/run/secrets/kubernetes.io/serviceaccount", env = process.env;
const database = new DatabaseSync(env.FLOOR_DATABASE);
database.exec("PRAGMA journal_mode = WAL; CREATE TABLE one (two)");
const server = createServer((_, answer) => answer.end()).listen(0, "127.0.0.1", () => {
  const options = { host: env.KUBERNETES_SERVICE_HOST, port: env.KUBERNETES_SERVICE_PORT, path: "/version",
    ca: readFileSync(account + "/ca.crt") };
  get(options, (answer) => answer.resume().on("end", () => console.error(
    JSON.stringify({ port: server.address().port, message: "agent serves" }))));
});
process.on("SIGTERM", () => process.exit());
`;

/** All forms, from how it was before to how the chart runs it, with what takes their files away. */
export async function agentPrograms(
  chart: ChartProgram,
  defer: (remove: () => Promise<void>) => void,
): Promise<readonly Form[]> {
  mkdirSync(join(ROOT, "build"), { recursive: true });
  const folder = mkdtempSync(join(ROOT, "build/forms-"));
  defer(async () => rmSync(folder, { recursive: true, force: true }));
  const dist = await buildDist();
  defer(async () => rmSync(dist, { recursive: true, force: true }));
  const floor = join(folder, "floor.cjs");
  writeFileSync(floor, FLOOR);
  const script = join(dist, chart.script);
  const jitless = [...chart.flags, "--jitless"];
  return [
    { name: "a module for each file", flags: FLAGS, file: await modules(folder) },
    { name: "one ECMAScript module", flags: FLAGS, file: await oneModule(folder) },
    { name: "one CommonJS script", flags: FLAGS, file: script },
    { name: "the same, with the chart's flags of V8", flags: chart.flags, file: script },
    { name: "as in the chart", flags: chart.flags, file: script, memory: chart.memory },
    {
      name: "the same, started again on its node",
      flags: chart.flags,
      file: script,
      // of the first round there is none
      memory: { ...chart.memory, NODE_COMPILE_CACHE: join(folder, "compile-cache") },
    },
    { name: "as in the chart, with --jitless", flags: jitless, file: script, memory: chart.memory },
    { name: "floor", flags: chart.flags, file: floor, memory: chart.memory, isFloor: true },
  ];
}

/** As images had it until ADR 0032. */
async function modules(folder: string): Promise<string> {
  const outDir = join(folder, "modules");
  const options = {
    noEmit: false,
    noCheck: true,
    removeComments: true,
    rewriteRelativeImportExtensions: true,
  };
  const project = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: { ...options, rootDir: ROOT, outDir },
    include: [],
    files: [MAIN],
  };
  const file = join(folder, "tsconfig.json");
  writeFileSync(file, JSON.stringify(project));
  const { rc, stdout } = await run(join(ROOT, "node_modules/.bin/tsc"), ["-p", file]);
  if (rc !== 0) throw new Error(stdout);
  return join(outDir, "ipam-plugin/agent/main.js");
}

async function oneModule(folder: string): Promise<string> {
  const outfile = join(folder, "agent.mjs");
  const require =
    'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';
  await build({
    ...{ entryPoints: [MAIN], outfile, bundle: true, platform: "node", target: "node24", format: "esm" },
    ...{ banner: { js: require }, external: ["@kubernetes/client-node"], minifyWhitespace: true },
  });
  return outfile;
}
