// SPDX-License-Identifier: Apache-2.0
// A webhook over TLS as a process of its own, which takes reviews from anybody or, with the argument `proven`, from who shows a
// certificate. It prints its port, its authority's certificate and that of an API server, and for each line that it is sent what it has taken since the last one.
import { readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import { createMetrics } from "../../system/metrics.ts";
import { createHandlers } from "../../webhook/admission/routes.ts";
import { issueAuthority, issueClient, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { createApp } from "../../webhook/http/app.ts";
import { serveTls } from "../../webhook/http/tls-server.ts";
import { DB_POOL, poolRecord } from "../support/fixtures.ts";
import { waitedOf } from "../support/processor.ts";
import { openWorld } from "../support/world.ts";

/** What a webhook's process takes, in milliseconds and bytes. */
export interface Burden {
  /** Of the processor's time. */
  readonly cpu: number;
  /** In which its thread could have run, and others had the processors. */
  readonly waited: number;
  readonly delayP50: number;
  readonly delayP99: number;
  readonly delayMost: number;
  readonly resident: number;
  /** The most that it ever had. */
  readonly peak: number;
}

const clock = createClock();
const ca = await issueAuthority(clock);
const certificate = await issueServingCertificate(ca, { dnsNames: [], addresses: ["127.0.0.1"] }, clock);
const client = await issueClient(ca, { name: "kube-apiserver", organization: "berth.dev:reviewers" }, clock);
const world = await openWorld({ pools: [DB_POOL, poolRecord("web", "10.30.0.0/16")] });
const app = createApp({
  handlers: createHandlers(world.admission),
  ready: () => ({ ready: true, reason: "" }),
  metrics: createMetrics(noopLogger),
  log: noopLogger,
  clock,
});
const server = await serveTls({
  app,
  host: "127.0.0.1",
  port: 0,
  certificate,
  ...(process.argv.includes("proven") ? { clientAuthority: ca.cert } : {}),
  log: noopLogger,
  clock,
});
console.log(JSON.stringify({ port: server.address.port, ca: ca.cert, cert: client.cert, key: client.key }));

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
let before = process.cpuUsage();
let waitedBefore = waitedOf(process.pid);
for await (const _ of createInterface({ input: process.stdin })) {
  const status = readFileSync("/proc/self/status", "utf8");
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024;
  const { user, system } = process.cpuUsage(before);
  before = process.cpuUsage();
  const waited = waitedOf(process.pid);
  const burden: Burden = {
    cpu: (user + system) / 1000,
    waited: waited - waitedBefore,
    delayP50: delay.percentile(50) / 1e6,
    delayP99: delay.percentile(99) / 1e6,
    delayMost: delay.max / 1e6,
    resident: bytes("VmRSS"),
    peak: bytes("VmHWM"),
  };
  waitedBefore = waited;
  delay.reset();
  console.log(JSON.stringify(burden));
}
process.exit(0);
