// SPDX-License-Identifier: Apache-2.0
import type { Client, Selection } from "../../kube/api/client.ts";
import type { KubeItem } from "../../kube/api/resource.ts";

/** What there is now. */
export async function listItems(client: Client, selection: Selection = {}): Promise<readonly KubeItem[]> {
  const items: KubeItem[] = [];
  for await (const page of client.pages(selection, 500)) items.push(...page.items);
  return items;
}
