// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BerthError, messageOf } from "../allocator/errors.ts";
import { Fields } from "../allocator/kube-object.ts";

/** What a stack tells others on its host while it serves. */
export interface StackFile {
  readonly pid: number;
  /** https://127.0.0.1:PORT */
  readonly webhook: string;
  /** Path of the certificate that the webhook's is signed with. */
  readonly ca: string;
  readonly socket: string;
  readonly node: string;
}

/** The file that a stack writes when it serves and removes when it stops. */
export function stackFileOf(dataDir: string): string {
  return join(dataDir, "stack.json");
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
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw unreadable(path, error);
  }
  try {
    const fields = new Fields(JSON.parse(text));
    const [webhook, ca, socket] = [fields.text("webhook"), fields.text("ca"), fields.text("socket")];
    if (webhook.startsWith("https://") && ca !== "") {
      return { pid: fields.count("pid", 0), webhook, ca, socket, node: fields.text("node") };
    }
  } catch (error) {
    throw unreadable(path, error);
  }
  throw unreadable(path, new Error("it names no webhook"));
}

function unreadable(path: string, error: unknown): BerthError {
  return new BerthError(
    "CONFIG_INVALID",
    `${path} cannot be read (${messageOf(error)}); delete it if no stack runs, and start one with: berthctl up`,
    { details: { path }, cause: error },
  );
}
