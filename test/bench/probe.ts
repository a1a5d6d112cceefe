// SPDX-License-Identifier: Apache-2.0
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { decodeReply, encodeCall } from "../../ipam-plugin/agent/testing/client-frames.ts";
import type { FixedPod } from "./stack-data.ts";

/** Between two knocks. */
const EVERY_MS = 2;
const PATIENCE_MS = 60_000;

/**
 * Sends an ADD of a pod with a claim to a socket on which nobody listens yet, again and again, until it is answered.
 * Answers with performance.now() of that moment. Throws when the answer is an error, or none comes in a minute.
 */
export async function firstAdd(socket: string, pod: FixedPod, containerID: string): Promise<number> {
  const call = encodeCall({
    startNs: process.hrtime.bigint(),
    env: new Map([
      ["CNI_COMMAND", "ADD"],
      ["CNI_CONTAINERID", containerID],
      ["CNI_NETNS", "/run/netns/none"],
      ["CNI_IFNAME", "eth0"],
      ["CNI_PATH", "/usr/lib/cni"],
      [
        "CNI_ARGS",
        `IgnoreUnknown=1;K8S_POD_NAMESPACE=${pod.namespace};K8S_POD_NAME=${pod.name};K8S_POD_UID=${pod.uid}`,
      ],
    ]),
    stdin: Buffer.from(
      JSON.stringify({ cniVersion: "1.0.0", name: "fixed", type: "bridge", ipam: { type: "berth" } }),
    ),
  });
  const until = performance.now() + PATIENCE_MS;
  while (performance.now() < until) {
    const answer = await ask(socket, call);
    if (answer !== undefined) {
      const at = performance.now();
      const reply = decodeReply(answer);
      if (reply.kind === "complete" && reply.frame.exitStatus === 0) return at;
      throw new Error(`the agent refused: ${answer}`);
    }
    await pause(EVERY_MS);
  }
  throw new Error(`nobody served ${socket} within ${PATIENCE_MS / 1000} s`);
}

/** The whole answer; undefined while nobody listens. */
function ask(path: string, call: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    let received = Buffer.alloc(0);
    socket.on("connect", () => socket.write(call));
    socket.on("error", () => resolve(undefined));
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (decodeReply(received).kind === "incomplete") return;
      socket.end(Buffer.of(6));
      resolve(received);
    });
  });
}
