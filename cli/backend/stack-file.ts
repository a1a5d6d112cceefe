// SPDX-License-Identifier: Apache-2.0
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";

/** What a stack tells others on its host while it serves. */
export interface StackFile {
  readonly pid: number;
  /** https://127.0.0.1:PORT */
  readonly webhook: string;
  /** Path of the certificate that the webhook's is signed with. */
  readonly ca: string;
  /** Paths of the certificate that it asks its clients for, and of the key. */
  readonly cert: string;
  readonly key: string;
  /** Path of the unix socket on which it takes reviews without one. */
  readonly reviews: string;
  /** Path of the agent's. */
  readonly socket: string;
  readonly node: string;
  /** URLs of the etcd that this host shares with others; absent: everything is in the folder, and there is a webhook. */
  readonly etcd?: string;
  /** Objects that were there and that the file of `--pools` has otherwise; absent: none. */
  readonly kept?: readonly string[];
}

/** The file that a stack writes when it serves and removes when it stops. */
export function stackFileOf(dataDir: string): string {
  return join(dataDir, "stack.json");
}

/** The file that a stack writes when it begins to start, and removes when it serves or ends. */
export function startingFileOf(dataDir: string): string {
  return join(dataDir, "starting.json");
}

/** The file that a stack locks from its start to its end; it stays. */
export function lockFileOf(dataDir: string): string {
  return join(dataDir, "stack.lock");
}

/** Whether a stack is about to serve on the folder: one that was killed has left its file. */
export function isStarting(dataDir: string): boolean {
  try {
    return isStack(new Fields(JSON.parse(readOwnFile(startingFileOf(dataDir)))).count("pid", 0));
  } catch {
    return false;
  }
}

/** Whether the process is a stack; its pid may be somebody else's by now. */
export function isStack(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes("up");
  } catch {
    return false;
  }
}

/** Where a stack takes reviews: a folder of its own, which its server closes to others. */
export function reviewsSocketOf(dataDir: string): string {
  return join(dataDir, "run", "webhook.sock");
}

/** No stack runs on the folder; the words say how to start one. */
export function noStack(dataDir: string, cause?: unknown): BerthError {
  return new BerthError(
    "NOT_READY",
    `no berth stack runs on ${dataDir}; start one with: berthctl up --data ${dataDir}`,
    { details: { path: dataDir }, cause },
  );
}

/** What the stack of the folder tells; undefined when there is none. It may have died without removing the file. */
export function readStackFile(dataDir: string): StackFile | undefined {
  const path = stackFileOf(dataDir);
  let text: string;
  try {
    text = readOwnFile(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw code === "EACCES" ? notYours(path, error) : unreadable(path, error);
  }
  try {
    const fields = new Fields(JSON.parse(text));
    const [webhook, ca] = [fields.text("webhook"), fields.text("ca")];
    const [cert, key, reviews] = [fields.text("cert"), fields.text("key"), fields.text("reviews")];
    const [pid, socket, node] = [fields.count("pid", 0), fields.text("socket"), fields.text("node")];
    const etcd = fields.text("etcd");
    const kept = fields.list("kept").map(String);
    const file = {
      ...{ pid, webhook, ca, cert, key, reviews, socket, node },
      ...(kept.length > 0 && { kept }),
    };
    if (etcd !== "") return { ...file, etcd };
    if (webhook.startsWith("https://") && ca !== "") return file;
  } catch (error) {
    throw unreadable(path, error);
  }
  throw unreadable(path, new Error("it names no webhook"));
}

const OTHERS_WRITE = 0o022;

/** Another user's file would name a stack of his, and a pipe would be waited for. Throws the errors of node:fs. */
function readOwnFile(path: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw new Error("it is no file");
    if (found.uid !== 0 && found.uid !== process.getuid?.())
      throw new Error(`it belongs to the user with the id ${found.uid}`);
    if ((found.mode & OTHERS_WRITE) !== 0) throw new Error("others may write to it");
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

/** A command that is about pools and claims was sent to the folder of a host that keeps them in etcd. */
export function inEtcd(dataDir: string, etcd: string): BerthError {
  const words = `the host of ${dataDir} keeps pools and claims in etcd; say: berthctl --etcd ${etcd}`;
  return new BerthError("CONFIG_INVALID", words, { details: { path: dataDir } });
}

/** What the stack keeps for the user that started it, and root. */
export function notYours(path: string, cause: unknown): BerthError {
  const words = `${path} is closed to you (${messageOf(cause)}); run as the user that started the stack`;
  return new BerthError("STORE_UNAVAILABLE", words, { details: { path }, cause });
}

function unreadable(path: string, error: unknown): BerthError {
  return new BerthError(
    "CONFIG_INVALID",
    `${path} cannot be read (${messageOf(error)}); delete it if no stack runs, and start one with: berthctl up`,
    { details: { path }, cause: error },
  );
}
