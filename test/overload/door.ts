// SPDX-License-Identifier: Apache-2.0
// A webhook over TLS as a process of its own, which takes reviews from anybody or, with the argument `proven`, from who shows a
// certificate. It prints its port, its authority's certificate and that of an API server, and for each line that it is sent what it has taken since the last one.
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import { createMetrics } from "../../system/metrics.ts";
import { createHandlers } from "../../webhook/admission/routes.ts";
import { issueAuthority, issueClient, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { createApp } from "../../webhook/http/app.ts";
import { serveTls } from "../../webhook/http/tls-server.ts";
import { quantile } from "../bench/statistics.ts";
import { DB_POOL, poolRecord } from "../support/fixtures.ts";
import { openWorld } from "../support/world.ts";

/** What a webhook's process takes, in milliseconds and bytes. */
export interface Burden {
  /** Of the processor's time. */
  readonly cpu: number;
  /** In which its thread could have run, and others had the processors. */
  readonly waited: number;
  /**
   * What this process did for whomever, of the processor's time, while a review of the API server was on its way through it.
   * Unlike the time that passed it does not depend on who else has the processor.
   */
  readonly workP50: number;
  readonly workP99: number;
  readonly delayP50: number;
  readonly delayP99: number;
  readonly delayMost: number;
  readonly resident: number;
  /** The most that it ever had. */
  readonly peak: number;
}

const clock = createClock();
const authority = await issueAuthority(clock);
const certificate = await issueServingCertificate(
  authority,
  { dnsNames: [], addresses: ["127.0.0.1"] },
  clock,
);
const client = await issueClient(
  authority,
  { name: "kube-apiserver", organization: "berth.dev:reviewers" },
  clock,
);
const world = await openWorld({ pools: [DB_POOL, poolRecord("web", "10.30.0.0/16")] });
const app = createApp({
  handlers: createHandlers(world.admission),
  ready: () => ({ ready: true, reason: "" }),
  metrics: createMetrics(noopLogger),
  log: noopLogger,
  clock,
});
/** Strangers come from other addresses. */
const API_SERVER = "127.0.0.1";
let works: number[] = [];

function counted(request: IncomingMessage, response: ServerResponse): void {
  if (request.socket.remoteAddress === API_SERVER) {
    const began = process.threadCpuUsage();
    response.once("finish", () => {
      const { user, system } = process.threadCpuUsage(began);
      works.push((user + system) / 1000);
    });
  }
  app(request, response);
}

const server = await serveTls({
  app: counted,
  host: "127.0.0.1",
  port: 0,
  certificate,
  ...(process.argv.includes("proven") ? { clientAuthority: authority.cert } : {}),
  log: noopLogger,
  clock,
});
console.log(
  JSON.stringify({ port: server.address.port, ca: authority.cert, cert: client.cert, key: client.key }),
);

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
let before = process.cpuUsage();
/** Milliseconds, in all (Documentation/scheduler/sched-stats.rst: the second figure). */
const waitedSoFar = () => Number(readFileSync("/proc/self/schedstat", "utf8").split(" ")[1]) / 1e6;
let waitedBefore = waitedSoFar();
for await (const _ of createInterface({ input: process.stdin })) {
  const status = readFileSync("/proc/self/status", "utf8");
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024;
  const { user, system } = process.cpuUsage(before);
  before = process.cpuUsage();
  const waited = waitedSoFar();
  const burden: Burden = {
    cpu: (user + system) / 1000,
    waited: waited - waitedBefore,
    workP50: works.length === 0 ? 0 : quantile(works, 0.5),
    workP99: works.length === 0 ? 0 : quantile(works, 0.99),
    delayP50: delay.percentile(50) / 1e6,
    delayP99: delay.percentile(99) / 1e6,
    delayMost: delay.max / 1e6,
    resident: bytes("VmRSS"),
    peak: bytes("VmHWM"),
  };
  waitedBefore = waited;
  delay.reset();
  works = [];
  console.log(JSON.stringify(burden));
}
process.exit(0);
