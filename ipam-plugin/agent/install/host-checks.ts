// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import type { Logger } from "../../../allocator/base/ports.ts";
import { linuxHost } from "../journal/host.ts";

/** Where container runtimes name the network namespaces of sandboxes; /var/run is a link to /run. */
const NAMED_NETNS = "/run/netns";
const MOUNTS = "/proc/self/mountinfo";
const TIME_OFFSETS = "/proc/self/timens_offsets";

/** What a process sees of its host. */
interface HostSetup {
  /** Of /proc/self/mountinfo. */
  readonly mounts: string;
  /** Of /proc/self/timens_offsets; empty where the kernel has no time namespaces. */
  readonly timeOffsets: string;
  /** Whether /run/netns is a folder here. */
  readonly hasNamedNetns: boolean;
}

/** What an agent that runs as a pod lacks, for the log; the reader changes the pod. */
interface MissingMount {
  readonly message: string;
  readonly consequence: string;
  readonly remedy: string;
}

/** What the agent's pod must be given of its host so that the agent sees sandboxes and shares the plugin's clock. */
export function missingFromHost({ mounts, timeOffsets, hasNamedNetns }: HostSetup): readonly MissingMount[] {
  const mount = coveringMount(mounts, NAMED_NETNS);
  const remedy = `mount the host's ${NAMED_NETNS} there, with mountPropagation: HostToContainer`;
  const lacks: MissingMount[] = [];
  if (!hasNamedNetns || mount === undefined || mount.point === "/") {
    lacks.push({
      message: "the sandboxes of the host cannot be seen",
      consequence: "one that goes without a DEL is not noticed, one that is still up not waited for",
      remedy,
    });
  } else if (!mount.propagates) {
    lacks.push({
      message: "network namespaces that are made from now on cannot be told apart",
      consequence: "an ADD into the host's own namespace is not refused",
      remedy,
    });
  }
  if (/^monotonic +(?:-?[1-9]|0 +-?[1-9])/m.test(timeOffsets)) {
    lacks.push({
      message: "the agent is in a time namespace of its own",
      consequence: "an ADD that comes after the DEL of its sandbox cannot be told from a new one",
      remedy: "run the agent's pod with a runtime that makes no time namespaces",
    });
  }
  return lacks;
}

/** Says in the log what this process lacks, as a pod. */
export async function warnAboutHost(log: Logger): Promise<void> {
  const [mounts, timeOffsets, netns] = await Promise.all([
    readFile(MOUNTS, "utf8"),
    readFile(TIME_OFFSETS, "utf8").catch(() => ""),
    linuxHost.look(NAMED_NETNS),
  ]);
  for (const { message, ...fields } of missingFromHost({
    mounts,
    timeOffsets,
    hasNamedNetns: netns === "present",
  })) {
    log.warn(message, fields);
  }
}

/** Of the mounts above the path the nearest, and of several there the last. Fields are those of proc(5). */
function coveringMount(
  mounts: string,
  path: string,
): { readonly point: string; readonly propagates: boolean } | undefined {
  return mounts
    .split("\n")
    .map((line) => line.split(" "))
    .map(([, , , , point = "none", , ...rest]) => ({
      point,
      propagates: rest.slice(0, rest.indexOf("-")).some((field) => /^(shared|master):/.test(field)),
    }))
    .filter(({ point }) => point === "/" || point === path || path.startsWith(`${point}/`))
    .reverse()
    .toSorted((a, b) => b.point.length - a.point.length)[0];
}
