// SPDX-License-Identifier: Apache-2.0
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { type Address, parseAddress } from "../../../allocator/ip/address.ts";
import { noneIfAbsent } from "../../../system/path-error.ts";
import type { AttachmentKey } from "../claims/claim-source.ts";
import { type Host, isOfProcess } from "./host.ts";

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
  readonly addresses: readonly Address[];
  /** The path of its network namespace; undefined when the record does not say. */
  readonly netns: string | undefined;
  /** Absent when the runtime did not say. */
  readonly podUID?: string;
}

/** Records of sandboxes that are up, or of which it is not known that they are gone. Throws what reading a folder or a file throws. */
export type RuntimeRecords = () => Promise<readonly RuntimeRecord[]>;

export function recordsIn(folders: readonly string[], host: Pick<Host, "look" | "read">): RuntimeRecords {
  return async () => {
    const bootedAt = await bootTime(host);
    const found: RuntimeRecord[] = [];
    for (const path of await filesIn(folders)) {
      const record = readRecord(path, await textAt(path));
      if (record !== undefined && (await mayBeUp(record, host, bootedAt))) found.push(record);
    }
    return found;
  };
}

/** Paths of all that is there, folder by folder. Throws what reading a folder throws, but for one that is absent. */
export async function filesIn(folders: readonly string[]): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const folder of folders) {
    const names = await readdir(folder).catch(noneIfAbsent<string[]>([]));
    paths.push(...names.toSorted().map((name) => join(folder, name)));
  }
  return paths;
}

/**
 * Whether the runtime has written the attachment down, so that its sandbox can be found by it. `missing`: not yet, or never, though
 * it keeps such records; `unkept`: it keeps none where they are looked for, or one that would not be found.
 */
export type RecordState = "kept" | "missing" | "unkept";
export type RecordOf = (attachment: AttachmentKey, addresses: readonly Address[]) => Promise<RecordState>;

/** libcni names the file after what the record is of; see `cacheFilePath` of its api.go. */
export function recordOf(folders: readonly string[]): RecordOf {
  return async ({ network, containerID, interface: name }, addresses) => {
    let state: RecordState = "unkept";
    for (const folder of folders) {
      const path = join(folder, basename(`${network}-${containerID}-${name}`));
      const record = readRecord(path, await textAt(path).catch(() => ""));
      if (record?.containerID === containerID && record.interface === name)
        return isFindable(record) && addresses.every((one) => record.addresses.includes(one))
          ? "kept"
          : "unkept";
      if (await isFolder(folder)) state = "missing";
    }
    return state;
  };
}

/** Its network namespace has a name of its own. */
export function isFindable({ netns }: RuntimeRecord): boolean {
  return netns !== undefined && !isOfProcess(netns);
}

/** Whether the record is still what it was when it was read: a runtime removes it once all plugins have answered its DEL. */
export async function isStillThere({ path, containerID, interface: name }: RuntimeRecord): Promise<boolean> {
  const now = readRecord(path, await textAt(path));
  return now?.containerID === containerID && now.interface === name;
}

/** Empty for what is no file, or is gone. */
async function textAt(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(noneIfAbsent(""));
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
  const args = listOf(record["cniArgs"]).map(listOf);
  const podUID = textOf(args.find(([key]) => key === "K8S_POD_UID")?.[1]);
  return {
    ...{ path, containerID, interface: name, netns },
    ...(podUID === "" ? {} : { podUID }),
    network: textOf(record["networkName"]),
    addresses: addressesIn(result),
  };
}

/** Of a result of 0.2.0, too, which has one of each family. */
function addressesIn(result: Partial<Record<string, unknown>>): readonly Address[] {
  const texts = [
    ...listOf(result["ips"]).map((ip) => fieldsOf(ip)["address"]),
    ...["ip4", "ip6"].map((family) => fieldsOf(result[family])["ip"]),
  ];
  return texts.flatMap((text) => parseAddress(textOf(text).split("/", 1)[0] ?? "") ?? []);
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
async function mayBeUp(record: RuntimeRecord, host: Pick<Host, "look">, bootedAt: number): Promise<boolean> {
  const { path, netns } = record;
  if (netns !== undefined && isFindable(record)) {
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
