// SPDX-License-Identifier: Apache-2.0
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Logger } from "../../../allocator/base/ports.ts";
import { isObject } from "../../../allocator/base/validation.ts";

/** What libcni takes for configurations. */
const EXTENSIONS: ReadonlySet<string> = new Set([".conf", ".conflist", ".json"]);

interface Looked {
  /** Of the list that the agent has written. */
  readonly name: string;
  readonly folder: string;
  /** Names of the plugin. */
  readonly plugins: readonly string[];
  readonly log: Logger;
}

/**
 * Says which configuration with addresses of Berth a runtime takes in the place of the agent's: it takes the first by name. An agent that kept no
 * record may have written it, under a former name, or a person has: nothing in it says which, so it stays. A plugin that has others
 * as its delegates (Multus) comes first on purpose. Throws the errors of node:fs.
 */
export async function warnOfEarlier({ name, folder, plugins, log }: Looked): Promise<void> {
  const earlier = (await readdir(folder)).filter((one) => one < name && EXTENSIONS.has(extname(one)));
  for (const one of earlier.sort()) {
    const path = join(folder, one);
    if (!ipamTypesIn(await readFile(path, "utf8").catch(() => "")).some((type) => plugins.includes(type)))
      continue;
    const remedy = "remove it if it is of an earlier installation: the runtime takes the first by name";
    log.warn("a configuration that asks Berth comes before the agent's, and is the one in use", {
      path,
      remedy,
    });
    return;
  }
}

/** Of its own plugins, and not of what these delegate to; none where it cannot be read. */
function ipamTypesIn(text: string): readonly string[] {
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch {
    return [];
  }
  if (!isObject(config)) return [];
  const plugins: unknown = config["plugins"] ?? [config];
  if (!Array.isArray(plugins)) return [];
  return plugins.flatMap((plugin) => {
    const ipam: unknown = isObject(plugin) ? plugin["ipam"] : undefined;
    return isObject(ipam) && typeof ipam["type"] === "string" ? [ipam["type"]] : [];
  });
}
