// SPDX-License-Identifier: Apache-2.0
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ACKNOWLEDGED, type Call, NOT_ACCEPTED, type Reply } from "../../ipam-plugin/agent/rpc/frame.ts";
import { decodeReply, encodeCall } from "../../ipam-plugin/agent/testing/client-frames.ts";
import { run } from "../support/process.ts";

/** As the CNI binary's for ADD. */
const LIMIT_MS = 30_000;
/** The binary knocks again after 2 ms on a socket whose queue is full. */
const KNOCK_AGAIN_MS = 2;

/**
 * What became of a call: `busy` is what the binary makes code 11 of, because the agent did not look at the request
 * or hung up before it answered.
 */
type Fate =
  | { readonly kind: "answered"; readonly reply: Reply; readonly ms: number }
  | { readonly kind: "busy" }
  | { readonly kind: "late" };

/** An ADD for a container, with addresses from the configuration's ranges. */
function addOf(containerID: string, subnet: string): Call {
  const config = { cniVersion: "1.0.0", name: "crowd", type: "bridge", ipam: { type: "berth", subnet } };
  const env = new Map([
    ["CNI_COMMAND", "ADD"],
    ["CNI_CONTAINERID", containerID],
    ["CNI_NETNS", `/nowhere/netns/${containerID}`],
    ["CNI_IFNAME", "eth0"],
    ["CNI_PATH", "/usr/lib/cni"],
  ]);
  return { startNs: process.hrtime.bigint(), env, stdin: Buffer.from(JSON.stringify(config)) };
}

/** One call as the CNI binary makes it: knocks until somebody answers, acknowledges an ADD that succeeded. */
async function ask(path: string, call: Call): Promise<Fate> {
  const began = performance.now();
  while (performance.now() - began < LIMIT_MS) {
    const fate = await askOnce(path, call);
    if (fate === "queue is full") await pause(KNOCK_AGAIN_MS);
    else if (fate === "hung up") return { kind: "busy" };
    else if (fate.exitStatus === NOT_ACCEPTED) return { kind: "busy" };
    else return { kind: "answered", reply: fate, ms: performance.now() - began };
  }
  return { kind: "late" };
}

function askOnce(path: string, call: Call): Promise<Reply | "queue is full" | "hung up"> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0);
    const socket = connect(path, () => socket.write(encodeCall(call)));
    socket.on("error", (error) => {
      resolve("code" in error && error.code === "EAGAIN" ? "queue is full" : "hung up");
    });
    socket.on("close", () => resolve("hung up"));
    socket.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      const decoded = decodeReply(bytes);
      if (decoded.kind !== "complete") return;
      resolve(decoded.frame);
      if (decoded.frame.exitStatus === 0) socket.end(Buffer.of(ACKNOWLEDGED));
      else socket.end();
    });
  });
}

/** What became of an ADD: its address, or why there is none; and how long that took. */
export interface Outcome {
  readonly containerID: string;
  readonly address?: string;
  readonly why?: "busy" | "late" | string;
  readonly ms: number;
}

async function attach(path: string, containerID: string, subnet: string): Promise<Outcome> {
  const fate = await ask(path, addOf(containerID, subnet));
  if (fate.kind !== "answered") return { containerID, why: fate.kind, ms: 0 };
  const { ms, reply } = fate;
  if (reply.exitStatus !== 0) return { containerID, why: reply.stdout, ms };
  const { ips }: { ips: readonly { address: string }[] } = JSON.parse(reply.stdout);
  return { containerID, address: ips[0]?.address.split("/", 1)[0] ?? "", ms };
}

/** All at once, in a process of their own: one that runs tests is too slow to be a crowd. */
export async function attachAll(
  path: string,
  names: readonly string[],
  subnet: string,
): Promise<readonly Outcome[]> {
  const order = JSON.stringify({ path, names, subnet });
  const { rc, stdout, stderr } = await run(process.execPath, [fileURLToPath(import.meta.url)], {
    env: { PATH: "/usr/bin:/bin" },
    stdin: { text: order },
  });
  if (rc !== 0) throw new Error(`the crowd failed: ${stderr}`);
  return JSON.parse(stdout);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { path, names, subnet }: { path: string; names: string[]; subnet: string } = JSON.parse(
    await text(process.stdin),
  );
  console.log(JSON.stringify(await Promise.all(names.map((name) => attach(path, name, subnet)))));
}
