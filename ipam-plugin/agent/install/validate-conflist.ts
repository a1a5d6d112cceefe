// SPDX-License-Identifier: Apache-2.0
import { messageOf } from "../../../allocator/base/errors.ts";
import { isObject } from "../../../allocator/base/validation.ts";

/** What a container runtime would take a text for. */
type ConflistVerdict =
  | { readonly kind: "invalid"; readonly why: string }
  | { readonly kind: "conflist"; readonly asksBerth: boolean };

/** Whether it is a list of plugins (CNI specification, section 1), and one of them asks Berth for its addresses. */
export function validateConflist(text: string, aliases: readonly string[] = []): ConflistVerdict {
  const no = (why: string) => ({ kind: "invalid", why }) as const;
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (error) {
    return no(`is no JSON: ${messageOf(error)}`);
  }
  if (!isObject(list)) return no("is no JSON object");
  for (const field of ["cniVersion", "name"]) {
    if (typeof list[field] !== "string" || list[field] === "") return no(`has no ${field}`);
  }
  const plugins: unknown = list["plugins"];
  if (!Array.isArray(plugins) || plugins.length === 0) return no("has no plugins");
  const nameless = plugins.findIndex((plugin) => !isObject(plugin) || typeof plugin["type"] !== "string");
  if (nameless >= 0) return no(`has no type in plugins[${nameless}]`);
  return { kind: "conflist", asksBerth: plugins.some((plugin) => asksBerth(plugin, ["berth", ...aliases])) };
}

/** Wherever the `ipam` is: a plugin may have delegates, such as flannel's and Multus'. */
function asksBerth(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== "object" || value === null) return false;
  const ipam = isObject(value) ? value["ipam"] : undefined;
  if (isObject(ipam) && names.some((name) => name === ipam["type"])) return true;
  return Object.values(value).some((inner) => asksBerth(inner, names));
}
