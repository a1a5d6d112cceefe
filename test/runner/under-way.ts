// SPDX-License-Identifier: Apache-2.0
// Tells at once which test begins and ends: a process that is blocked or killed cannot say it later, as the reporters
// write when the tests let them.
import { channel } from "node:diagnostics_channel";
import { getTestContext } from "node:test";
import { tell } from "./tell.ts";

/** What node's runner publishes of a test or a suite; of a suite when it is defined, which is while its file is loaded. */
interface Published {
  readonly name: string;
  readonly nesting: number;
  /** The file that node's runner was given, also where another one has the test: a contract's. */
  readonly file?: unknown;
  readonly type: string;
}

/** How node's runner joins the names of a test and of what it is in. */
const JOINT = " > ";
/** type and name of what stands at the top level -> the files that were loaded or run then, in this order */
const files = new Map<string, string[]>();
/** what was published of a test -> its path, from its begin to its end */
const paths = new Map<object, readonly string[]>();

/** The test that has begun last and not ended, with those that it is in. */
export function lastUnderWay(): readonly string[] | undefined {
  return [...paths.values()].at(-1);
}

/** The file that was loaded when a suite, or run when a test, of this name at the top level was published; once for each. */
export function takeFileOf(type: "suite" | "test", name: string): string | undefined {
  return files.get(`${type} ${name}`)?.shift();
}

channel("tracing:node.test:start").subscribe((message) => {
  if (!isPublished(message) || typeof message.file !== "string") return;
  const { name, nesting, file, type } = message;
  if (nesting === 0) files.set(`${type} ${name}`, [...(files.get(`${type} ${name}`) ?? []), file]);
  // which a process publishes when the tests that it has are over
  if (type !== "test" || name === "<root>") return;
  const context = getTestContext();
  const path = context !== undefined && "fullName" in context ? context.fullName.split(JOINT) : [name];
  paths.set(message, path);
  tell({ kind: "begun", file, path });
});

channel("tracing:node.test:end").subscribe((message) => {
  if (!isPublished(message) || typeof message.file !== "string") return;
  const path = paths.get(message);
  if (path !== undefined) tell({ kind: "ended", file: message.file, path });
  paths.delete(message);
});

function isPublished(message: unknown): message is Published {
  return typeof message === "object" && message !== null && "name" in message && "nesting" in message;
}
