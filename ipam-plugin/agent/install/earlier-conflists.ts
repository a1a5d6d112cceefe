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
 * Says which configuration with addresses of Berth comes before the agent's. A runtime takes the first file by name, and a plugin that has
 * others as its delegates (Multus) comes first on purpose: it names the one that it hands on to, or takes the next one by name. An agent that
 * kept no record may have written what comes before its own, under a former name, or a person has: nothing in it says which, so it
 * stays. Throws the errors of node:fs.
 */
export async function warnOfEarlier({ name, folder, plugins, log }: Looked): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  // libcni passes folders over, whatever they are called
  const files = entries.filter((one) => !one.isDirectory()).map((one) => one.name);
  const earlier = files.filter((one) => one < name && EXTENSIONS.has(extname(one)));
  const [first, ...others] = earlier.sort();
  for (const one of [first, ...others]) {
    if (one === undefined) return;
    const path = join(folder, one);
    if (!ipamTypesIn(await readFile(path, "utf8").catch(() => "")).some((type) => plugins.includes(type)))
      continue;
    if (one === first)
      log.warn("a configuration that asks Berth comes before the agent's, and is the one in use", {
        path,
        remedy: "remove it if it is of an earlier installation: the runtime takes the first by name",
      });
    else
      log.warn("a configuration that asks Berth comes before the agent's, and may be the one in use", {
        path,
        remedy: `remove it if it is of an earlier installation: the runtime takes ${first}, and what that hands on to may be the next by name, or the one that it names (clusterNetwork of Multus)`,
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
