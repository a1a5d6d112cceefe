// SPDX-License-Identifier: Apache-2.0

import { Fields, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Dialects, parseDialects } from "../../allocator/model/dialect.ts";
import type { Objects } from "./backend.ts";
import { ifAllowed } from "./if-allowed.ts";

const LABELS = { "app.kubernetes.io/name": "berth", "app.kubernetes.io/component": "webhook" };
/** As the chart has it, unless it is told otherwise. */
const USUAL = { namespace: "berth-system", name: "berth-webhook" };
const VARIABLE = "BERTH_DIALECTS";

/** Which requests in other systems' words the cluster's webhook reads, according to its Deployment; undefined: there is none, or this user may not read it. */
export async function installedDialects(
  world: Pick<Objects, "object" | "objects">,
): Promise<Dialects | undefined> {
  return await ifAllowed(async () => {
    const usual = await world.object("Deployment", USUAL.namespace, USUAL.name);
    const webhook = usual ?? (await world.objects("Deployment")).find(isWebhook);
    return webhook && parseDialects(settingOf(webhook));
  });
}

function isWebhook({ metadata: { labels } }: KubeObject): boolean {
  return Object.entries(LABELS).every(([key, value]) => labels[key] === value);
}

/** Empty, as the webhook takes it, where it is not set. */
function settingOf({ spec }: KubeObject): string {
  const containers = spec.at("template").at("spec").list("containers");
  const variables = containers.flatMap((one) =>
    new Fields(one).list("env").map((entry) => new Fields(entry)),
  );
  return variables.find((one) => one.text("name") === VARIABLE)?.text("value") ?? "";
}
