// SPDX-License-Identifier: Apache-2.0
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { AttachmentKey } from "../claims/claim-source.ts";
import type { Host } from "./host.ts";

/**
 * Where container runtimes keep the result of each ADD until its DEL: libcni's cache, for containerd and CRI-O,
 * cri-dockerd and Multus. It outlives an agent's journal, and everything in `/run/berth`.
 */
export const RESULT_FOLDERS: readonly string[] = [
  "/var/lib/cni/results",
  "/var/lib/cni/cache/results",
  "/var/lib/cni/multus/results",
];

/** An attachment of Berth's by the word of the runtime that asked for it. */
export interface RuntimeRecord {
  /** Of the file that says so. */
  readonly path: string;
  readonly network: string;
  readonly containerID: string;
  readonly interface: string;
  readonly addresses: readonly string[];
  /** The path of its network namespace; undefined when the record does not say. */
  readonly netns: string | undefined;
  /** Absent when the runtime did not say. */
  readonly podUID?: string;
}

/** Records of sandboxes that are up, or of which it is not known that they are gone. */
export type RuntimeRecords = () => Promise<readonly RuntimeRecord[]>;

export function recordsIn(folders: readonly string[], host: Pick<Host, "look" | "read">): RuntimeRecords {
  return async () => {
    const bootedAt = await bootTime(host);
    const found: RuntimeRecord[] = [];
    for (const folder of folders) {
      for (const name of (await readdir(folder).catch(() => [])).toSorted()) {
        const path = join(folder, name);
        const record = readRecord(path, await readFile(path, "utf8").catch(() => ""));
        if (record !== undefined && (await mayBeUp(record, host, bootedAt))) found.push(record);
      }
    }
    return found;
  };
}

/**
 * Whether the runtime has written the attachment down. `missing`: not yet, or never, though it keeps such records;
 * `unkept`: it keeps none where they are looked for.
 */
export type RecordState = "kept" | "missing" | "unkept";
export type RecordOf = (attachment: AttachmentKey) => Promise<RecordState>;

/** libcni names the file after what the record is of; see `cacheFilePath` of its api.go. */
export function recordOf(folders: readonly string[]): RecordOf {
  return async ({ network, containerID, interface: name }) => {
    let state: RecordState = "unkept";
    for (const folder of folders) {
      const path = join(folder, basename(`${network}-${containerID}-${name}`));
      const record = readRecord(path, await readFile(path, "utf8").catch(() => ""));
      if (record?.containerID === containerID && record.interface === name) return "kept";
      if (await isFolder(folder)) state = "missing";
    }
    return state;
  };
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

/** Undefined for what is no record of an interface that has its address from Berth. */
export function readRecord(path: string, text: string): RuntimeRecord | undefined {
  const record = fieldsOf(parsed(text));
  const config = parsed(Buffer.from(textOf(record["config"]), "base64").toString());
  const [containerID, name] = [textOf(record["containerId"]), textOf(record["ifName"])];
  if (containerID === "" || name === "" || !isBerths(config)) return undefined;
  const result = fieldsOf(record["result"]);
  const netns = textOf(record["netns"]) || sandboxOf(record);
  const addresses = listOf(result["ips"]).map((ip) => textOf(fieldsOf(ip)["address"]).split("/", 1)[0] ?? "");
  const args = listOf(record["cniArgs"]).map(listOf);
  const podUID = textOf(args.find(([key]) => key === "K8S_POD_UID")?.[1]);
  return {
    ...{ path, containerID, interface: name, netns },
    ...(podUID === "" ? {} : { podUID }),
    network: textOf(record["networkName"]),
    addresses: addresses.filter((address) => address !== ""),
  };
}

/** The network namespace that the result names. */
export function sandboxOf(record: Partial<Record<string, unknown>>): string | undefined {
  return listOf(fieldsOf(record["result"])["interfaces"])
    .map((one) => textOf(fieldsOf(one)["sandbox"]))
    .find((sandbox) => sandbox !== "");
}

/**
 * A namespace with a name of its own is there or gone. The path of a process may be another one's by now, and from
 * within a container nothing is said by its absence: such a record, or one without a path, counts when it was written in
 * this boot.
 */
async function mayBeUp(
  { path, netns }: RuntimeRecord,
  host: Pick<Host, "look">,
  bootedAt: number,
): Promise<boolean> {
  if (netns !== undefined && !netns.startsWith("/proc/")) {
    const seen = await host.look(netns);
    if (seen !== "unknown") return seen === "present";
  }
  const written = await stat(path).catch(() => undefined);
  return written !== undefined && written.mtimeMs >= bootedAt;
}

/** Milliseconds since 1970, by the kernel's own reckoning; 0 when it cannot be read: then nothing is of an older boot. */
export async function bootTime(host: Pick<Host, "read">): Promise<number> {
  const text = await host.read("/proc/stat").catch(() => "");
  return Number(/^btime (\d+)$/m.exec(text)?.[1] ?? 0) * 1000;
}

/** Of a configuration, or of one of a list's plugins. */
function isBerths(config: unknown): boolean {
  const fields = fieldsOf(config);
  return [fields, ...listOf(fields["plugins"]).map(fieldsOf)].some(
    ({ ipam }) => basename(textOf(fieldsOf(ipam)["type"])) === "berth",
  );
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function fieldsOf(value: unknown): Partial<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
