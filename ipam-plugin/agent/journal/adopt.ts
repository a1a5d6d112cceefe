// SPDX-License-Identifier: Apache-2.0

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, realpath } from "node:fs/promises";
import { counted } from "../../../allocator/base/counted.ts";
import { BerthError } from "../../../allocator/base/errors.ts";
import { openDatabase } from "../../../allocator/store/sqlite/database.ts";
import type { Attachment, AttachmentId } from "./attachment.ts";
import { adoptionText, describeRecord, judgeMark, markFileOf } from "./boot-mark.ts";
import { Journal } from "./journal.ts";
import type { RuntimeRecord, RuntimeRecords } from "./runtime-records.ts";

/** Where container runtimes name the network namespaces of sandboxes. */
const NAMED_NETNS: readonly string[] = ["/run/netns", "/var/run/netns", "/run/docker/netns"];

interface Adoption {
  /** The journal's file. */
  readonly database: string;
  readonly socketPath: string;
  readonly bootId: string;
  /** A person has said that it is to be done. */
  readonly confirmed: boolean;
  readonly runtimeRecords: RuntimeRecords;
  readonly netnsFolders?: readonly string[];
}

/**
 * Lets a journal serve that is not the one which has served in this boot, once that is confirmed; gives what is to be
 * told to the person, line by line. Throws CONFIG_INVALID when there is no journal.
 */
export async function adopt(adoption: Adoption): Promise<readonly string[]> {
  const { database, socketPath, bootId, confirmed } = adoption;
  const journal = journalOf(database);
  const mark = markFileOf(socketPath);
  const own = { bootId, journal: journal.id, position: journal.position };
  const verdict = judgeMark(await mark.read(), own).kind;
  if (verdict === "ours" || verdict === "adopted")
    return [`${database} serves this node since it booted; there is nothing to adopt`];
  const unknownSandboxes = (await adoption.runtimeRecords()).filter(
    (record) => !journal.attachments.some(isOf(record)),
  );
  if (verdict === "none" && unknownSandboxes.length === 0)
    return [
      `no other journal has served at ${socketPath} since this host booted; start Berth on ${database}`,
    ];
  const known = journal.attachments.filter(({ state }) => state === "attached");
  const seen = await namedNetns(adoption.netnsFolders ?? NAMED_NETNS);
  const lines = [
    `${database} knows ${counted(known.length, "sandbox", "sandboxes")} of this boot; ${verdict === "older" ? "it is older than what has served here" : "another journal has served it before"}`,
    ...known.map(({ containerID, netns }) => `  known: container ${containerID}, ${netns}`),
    `sandboxes that only the runtime knows: ${unknownSandboxes.length}`,
    ...unknownSandboxes.map((record) => `  ${describeRecord(record)} (${record.path})`),
    `network namespaces on this host: ${seen.length}`,
    ...seen.map((path) => `  ${path}`),
    "Once it is adopted, an address of a sandbox that is up and not known may be given to another one.",
    "End those sandboxes first: delete their pods, or crictl rmp -fa.",
  ];
  if (!confirmed) return [...lines, "Nothing was changed. To adopt it: the same with --yes"];
  await mark.write(adoptionText(own, randomUUID()));
  return [...lines, `${database} is adopted: it serves this node from now on`];
}

function isOf(record: RuntimeRecord): (known: AttachmentId) => boolean {
  return (known) => known.containerID === record.containerID && known.interface === record.interface;
}

/** What its file says. */
interface Found {
  readonly id: string;
  readonly position: number;
  readonly attachments: readonly Attachment[];
}

function journalOf(path: string): Found {
  const missing = new BerthError("CONFIG_INVALID", `${path} has no journal yet; start Berth on it once`);
  if (!existsSync(path)) throw missing;
  const database = openDatabase(path, { readOnly: true });
  try {
    const journal = new Journal(database);
    const id = journal.knownId();
    if (id === undefined) throw missing;
    return { id, position: journal.position(), attachments: journal.load().attachments };
  } finally {
    database.close();
  }
}

async function namedNetns(folders: readonly string[]): Promise<readonly string[]> {
  const real = new Set<string>();
  for (const folder of folders) {
    const path = await realpath(folder).catch(() => undefined);
    if (path !== undefined) real.add(path);
  }
  const found: string[] = [];
  for (const folder of real) {
    for (const name of await readdir(folder).catch(() => [])) found.push(`${folder}/${name}`);
  }
  return found.toSorted();
}
