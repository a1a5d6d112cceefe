// SPDX-License-Identifier: Apache-2.0
import { statSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join, resolve } from "node:path";
import type { BerthError } from "../../allocator/base/errors.ts";
import { isSubdomain } from "../../allocator/base/validation.ts";
import { createLogger, LOG_LEVELS, type LogLevel } from "../../system/logger.ts";
import { detach } from "../embedded/detach.ts";
import type { StackOptions } from "../embedded/stack.ts";
import type { Arguments } from "../terminal/arguments.ts";
import type { Command, CommandContext } from "../terminal/command.ts";
import { DATA, ETCD_FLAGS, usageError } from "../terminal/flags.ts";

/** `berthctl up` */
export const up: Command = {
  name: "up",
  summary: "run webhook, allocator and agent on this host, on one file, without Kubernetes",
  usage: [
    "up --etcd URL[,URL] [--etcd-cacert FILE --etcd-cert FILE --etcd-key FILE] [--etcd-certificates DIR] [--data DIR] [--socket PATH] [--node NAME] [--detach]",
    "up [--data DIR] [--socket PATH] [--pools FILE] [--webhook-port N] [--node NAME] [--detach [--wait DURATION]] [--log-level L]",
  ],
  flags: {
    data: DATA,
    socket: { type: "string", value: "PATH", about: "where the CNI plugin finds the agent" },
    pools: {
      type: "string",
      value: "FILE",
      about: "IPPools and Namespaces to make at the start; those that are there stay as they are",
    },
    ...ETCD_FLAGS,
    "etcd-certificates": {
      type: "string",
      value: "DIR",
      about:
        "with --etcd, where the certificates are that networks name in etcdConfig (default: /etc/cni/net.d)",
    },
    "webhook-port": {
      type: "string",
      value: "N",
      about: "TLS port on 127.0.0.1, for clients that show DIR/tls/client.crt (default: any)",
    },
    node: { type: "string", value: "NAME", about: "name of this node (default: the host's)" },
    detach: {
      type: "boolean",
      short: "d",
      about: "go to the background once it serves; stop it with: berthctl down",
    },
    wait: {
      type: "string",
      value: "DURATION",
      about:
        "with --detach, how long it may take to serve; later, exit code 2, and it goes on (default: 30s)",
    },
    "log-level": { type: "string", value: "L", about: `one of ${LOG_LEVELS.join(", ")} (default: info)` },
  },
  inCluster: "install Berth's chart instead",
  examples: ["berthctl up --data ./berth --pools examples/pools.yaml", "berthctl up --detach --data ./berth"],
  async run(args, context) {
    args.expect();
    const level = levelOf(args.text("log-level"));
    const { io } = context;
    const options = optionsOf(args, context);
    const alien = ["pools", "webhook-port"].find((flag) => args.text(flag) !== undefined);
    if (context.etcd === undefined && args.text("etcd-certificates") !== undefined)
      throw usageError("--etcd-certificates goes with --etcd");
    if (context.etcd !== undefined && alien !== undefined) throw notWithEtcd(alien);
    if (args.has("detach")) return await detach(args, context);
    if (args.text("wait") !== undefined)
      throw usageError("--wait is for --detach: up itself says ready when it serves, and then stays");
    const ending = io.ending();
    const log = createLogger({ stream: io.stderr, level, clock: io.clock });
    const certificates = args.text("etcd-certificates");
    const more = certificates === undefined ? {} : { certificates: resolve(certificates) };
    const stack = await startOn(context, { ...options, ...more, log });
    try {
      io.stdout.write("ready\n");
      // A stack that is killed would not leave what it has compiled to the next one (see berthctl.sh).
      flushCompileCache();
      await aborted(ending);
    } finally {
      await stack.close();
      await log.flush();
    }
    return 0;
  },
};

/** What a host runs takes longer to load than any other command takes to run. */
async function startOn(
  { etcd }: CommandContext,
  options: StackOptions & { readonly certificates?: string },
): Promise<{ readonly close: () => Promise<void> }> {
  if (etcd === undefined) return await (await import("../embedded/stack.ts")).startStack(options);
  const { startEtcdHost } = await import("../embedded/etcd-host.ts");
  const { etcdAccessOf } = await import("../backend/etcd-backend.ts");
  return await startEtcdHost({ ...options, access: etcdAccessOf(etcd) });
}

function optionsOf(args: Arguments, { dataDir, io }: CommandContext): Omit<StackOptions, "log"> {
  const [socketPath, poolsFile, node] = [args.text("socket"), args.text("pools"), args.text("node")];
  const port = args.text("webhook-port");
  return {
    dataDir,
    clock: io.clock,
    random: io.random,
    ...(socketPath === undefined ? {} : { socketPath: socketOf(socketPath) }),
    ...(poolsFile === undefined ? {} : { poolsFile }),
    ...(port === undefined ? {} : { webhookPort: portOf(port) }),
    ...(node === undefined ? {} : { node: nodeOf(node) }),
  };
}

function socketOf(text: string): string {
  const path = resolve(text);
  if (text.endsWith("/") || statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
    throw usageError(
      `--socket ${JSON.stringify(text)} is a folder; name a file in it, such as ${join(path, "agent.sock")}`,
    );
  return path;
}

/** As Kubernetes names nodes: it stands in records, and is typed again. */
function nodeOf(text: string): string {
  if (isSubdomain(text)) return text;
  const words = "is no name of a node: small letters, digits, - and ., such as node-a";
  throw usageError(`--node ${JSON.stringify(text)} ${words}`);
}

function notWithEtcd(flag: string): BerthError {
  const why =
    flag === "pools" ? "apply pools with: berthctl --etcd URL apply -f FILE" : "no webhook runs then";
  return usageError(`--${flag} does not go with --etcd; ${why}`);
}

function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw usageError(`--webhook-port ${JSON.stringify(text)} is no port: 0 to 65535`);
}

function levelOf(text: string | undefined): LogLevel {
  if (text === undefined) return "info";
  const level = LOG_LEVELS.find((known) => known === text);
  if (level !== undefined) return level;
  throw usageError(`--log-level ${JSON.stringify(text)} is none of ${LOG_LEVELS.join(", ")}`);
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
