// SPDX-License-Identifier: Apache-2.0
// A process that becomes another user of this host, and then does what it is told on its standard input. It reads its own code
// before, so it does not matter who may read the checkout; that of berthctl only if it is told to run it.
import { randomUUID } from "node:crypto";
import { openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { request } from "node:https";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { compileCache, run } from "../support/process.ts";

/** Of "nobody", where there is one; of no other use. */
const NOBODY = 65_534;

export type Probe =
  | { readonly kind: "read" | "write" | "list"; readonly path: string }
  /** A review over the unix socket. */
  | { readonly kind: "socket"; readonly path: string; readonly body: string }
  /** A request to the port. */
  | {
      readonly kind: "port";
      readonly url: string;
      readonly method: string;
      readonly body: string;
      readonly ca: string;
      readonly cert?: string;
      readonly key?: string;
    }
  | { readonly kind: "berthctl"; readonly dataDir: string; readonly args: readonly string[] };

/** What came of each: `done ...`, or why not. */
export type Outcomes = readonly string[];

/** Does the probes, each by itself, as root or as somebody who is nobody here. */
export async function doAs(who: "root" | "nobody", probes: readonly Probe[]): Promise<Outcomes> {
  const { rc, stdout, stderr } = await run(process.execPath, [fileURLToPath(import.meta.url)], {
    env: { PATH: "/usr/bin:/bin", ...compileCache() },
    stdin: { text: JSON.stringify({ who, probes }) },
  });
  if (rc !== 0) throw new Error(`the other user failed: ${stderr}`);
  return JSON.parse(stdout);
}

type Berthctl = typeof import("../../cli/run.ts").run;

async function outcomeOf(probe: Probe, runBerthctl: Berthctl | undefined): Promise<string> {
  try {
    return await attempt(probe, runBerthctl);
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  }
}

async function attempt(probe: Probe, runBerthctl: Berthctl | undefined): Promise<string> {
  switch (probe.kind) {
    case "read":
      return `done ${readFileSync(probe.path).length > 0}`;
    case "write":
      // nothing is changed, in case that it may
      openSync(probe.path, "r+");
      return "done";
    case "list":
      writeFileSync(`${probe.path}/planted`, "");
      return `done ${readdirSync(probe.path).length > 0}`;
    case "socket":
      return await post(probe);
    case "port":
      return await post(probe);
    case "berthctl":
      if (runBerthctl === undefined) throw new TypeError("berthctl was not read");
      return await berthctl(probe, runBerthctl);
  }
}

function post(probe: Extract<Probe, { kind: "socket" | "port" }>): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json" };
    const call =
      probe.kind === "socket"
        ? httpRequest({ socketPath: probe.path, path: "/validate/pools", method: "POST", headers })
        : request(probe.url, { method: probe.method, ...pairOf(probe), headers, agent: false });
    call.on("response", (response) => {
      text(response).then((said) => resolve(`${response.statusCode} ${said}`), reject);
    });
    call.on("error", reject);
    call.end(probe.body);
  });
}

function pairOf({ ca, cert, key }: Extract<Probe, { kind: "port" }>) {
  return cert === undefined || key === undefined ? { ca } : { ca, cert, key };
}

async function berthctl(
  { dataDir, args }: Extract<Probe, { kind: "berthctl" }>,
  runBerthctl: Berthctl,
): Promise<string> {
  const stream = new PassThrough();
  const io = {
    stdout: stream,
    stderr: stream,
    stdin: async () => "",
    clock: createClock(),
    random: createRandom(),
    uuid: randomUUID,
    ending: () => new AbortController().signal,
  };
  const code = await runBerthctl(args, { io, dataDir, user: "other" });
  stream.end();
  return `${code === 0 ? "done" : code} ${await text(stream)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { who, probes }: { who: string; probes: readonly Probe[] } = JSON.parse(await text(process.stdin));
  const runsBerthctl = probes.some(({ kind }) => kind === "berthctl");
  const runBerthctl = runsBerthctl ? (await import("../../cli/run.ts")).run : undefined;
  if (who === "nobody") {
    process.setgroups?.([]);
    process.setgid?.(NOBODY);
    process.setuid?.(NOBODY);
  }
  const outcomes: string[] = [];
  for (const probe of probes) outcomes.push(await outcomeOf(probe, runBerthctl));
  process.stdout.write(JSON.stringify(outcomes));
}
