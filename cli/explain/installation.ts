// SPDX-License-Identifier: Apache-2.0
// Whether Berth itself is in the cluster, and which nodes are fenced although their kubelets are well.

import { type Finding, pending } from "../../allocator/gc/finding.ts";
import { Fields, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { FENCED, fenceOf } from "../../allocator/manifest/node-fence.ts";
import type { Objects } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { readinessOf } from "../backend/node-state.ts";

type World = Pick<Objects, "object" | "objects">;

const LABEL = "app.kubernetes.io/name";
const COMPONENT = "app.kubernetes.io/component";

/** What of Berth is missing or serves nobody, as far as this user may see. */
export async function missingParts(world: World): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  const configurations = await ifAllowed(() => world.objects("MutatingWebhookConfiguration"));
  if (configurations?.every((one) => !isPart(one, "webhook")) === true)
    found.push(
      missing(
        "webhook",
        "there is no webhook configuration of Berth: no pod is given an address at admission",
      ),
    );
  found.push(...(await silentWebhook(world, configurations ?? [])));
  const agents = await ifAllowed(() => world.objects("DaemonSet"));
  if (agents?.every((one) => !isPart(one, "agent")) === true)
    found.push(
      missing("agent", "there is no DaemonSet of Berth's agents: no pod in a network of Berth's starts"),
    );
  return [...found, ...(agents ?? []).flatMap(absentAgents)];
}

/** Of a webhook that has a Deployment of its Service's name, as the chart's has. */
async function silentWebhook(
  world: World,
  configurations: readonly KubeObject[],
): Promise<readonly Finding[]> {
  const ours = configurations.find((one) => isPart(one, "webhook"));
  const service = new Fields(ours?.json.list("webhooks")[0]).at("clientConfig").at("service");
  const [namespace, name] = [service.text("namespace"), service.text("name")];
  if (name === "") return [];
  const deployment = await ifAllowed(() => world.object("Deployment", namespace, name));
  if (deployment === undefined || countIn(deployment, "readyReplicas") > 0) return [];
  const words = `no replica of the webhook is ready: pods that ask for an address are not reviewed, and no claim is bound; see kubectl -n ${namespace} describe pods`;
  return [pending("not-ready", "webhook", words)];
}

function absentAgents(agents: KubeObject): readonly Finding[] {
  if (!isPart(agents, "agent")) return [];
  const [wanted, ready] = [countIn(agents, "desiredNumberScheduled"), countIn(agents, "numberReady")];
  if (ready >= wanted) return [];
  const { namespace } = agents.metadata;
  const words = `the agent is ready on ${ready} of ${wanted} nodes: on the others no pod in a network of Berth's starts; see kubectl -n ${namespace} get pods -o wide`;
  return [pending("not-ready", "agent", words)];
}

function countIn({ json }: KubeObject, field: string): number {
  const count = json.at("status").get(field);
  return typeof count === "number" ? count : 0;
}

/** Whether the chart made it for that component. */
export function isPart({ metadata: { labels } }: KubeObject, component: string): boolean {
  return labels[LABEL] === "berth" && labels[COMPONENT] === component;
}

function missing(what: string, words: string): Finding {
  return pending(
    "not-installed",
    what,
    `${words}; install Berth's chart, which takes over the records that are there`,
  );
}

/** Of a node that was fenced by hand, and that came back: its pods run, and their claims may go to others. Undefined: this user may not list Nodes. */
export async function fencedAndReady(world: World): Promise<readonly Finding[] | undefined> {
  const nodes = await ifAllowed(() => world.objects("Node"));
  return nodes?.flatMap((node) => {
    const { name, annotations } = node.metadata;
    const by = fenceOf(annotations, node.spec);
    if (by === undefined || !readinessOf(node).ready) return [];
    const undo = by === FENCED ? `kubectl annotate node ${name} ${by}-` : `kubectl taint node ${name} ${by}-`;
    const words = `node ${name} is Ready, and fenced by ${by}: what its pods have may be given to other pods while they run; end those pods, then take the fence away: ${undo}`;
    return [pending("fenced-ready", name, words)];
  });
}
