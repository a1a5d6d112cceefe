// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { messageOf } from "../../allocator/base/errors.ts";
import { partOf } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { type Ended, run } from "../support/process.ts";
import { isExternal } from "./cases.ts";
import { Cluster } from "./cluster.ts";
import { PATH } from "./machine.ts";
import { type Json, namespace } from "./objects.ts";
import { Observer, Sandboxes } from "./observer.ts";
import { StateFolder } from "./state.ts";

const BERTHCTL = fileURLToPath(new URL("../../build/berthctl", import.meta.url));
const START_MS = 120_000;
/** kubectl costs a twentieth of a second of a processor. */
const POLL_MS = 150;

/** A running pod as kubectl shows it. */
export interface Running {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  /** `status.podIPs` */
  readonly addresses: readonly string[];
}

interface PodObject {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
  };
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly phase?: string;
    readonly podIPs?: readonly { readonly ip: string }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** A namespace of a suite's own in the cluster, and what judges from outside. */
export class Lab {
  readonly cluster: Cluster;
  readonly namespace: string;
  #observer: Observer | undefined;

  private constructor(cluster: Cluster, name: string) {
    this.cluster = cluster;
    this.namespace = name;
  }

  static async open(name: string): Promise<Lab> {
    const lab = new Lab(new Cluster(StateFolder.of(process.env)), name);
    await lab.apply([namespace(name)], { namespace: "default" });
    if (!isExternal()) lab.#observer = new Observer(lab.cluster.nodes);
    return lab;
  }

  /** What all suites need, once. */
  static async prepare(objects: readonly Json[]): Promise<void> {
    const lab = new Lab(new Cluster(StateFolder.of(process.env)), "default");
    // the webhook that judges pools may be on its way to the API server yet
    const apply = async () => {
      const { rc, stderr } = await lab.tryApply(objects);
      last = stderr;
      return rc === 0 || undefined;
    };
    let last = "";
    await eventually("the pools are made", apply, 60_000).catch(() => Promise.reject(new Error(last)));
  }

  /** The opposite of `prepare`. */
  static async withdraw(objects: readonly Json[]): Promise<void> {
    const lab = new Lab(new Cluster(StateFolder.of(process.env)), "default");
    const list = { apiVersion: "v1", kind: "List", items: objects };
    await lab.must(["delete", "-f", "-"], { stdin: JSON.stringify(list) });
  }

  /** Deletes everything, and says what was wrong all the time: an address that two containers had. */
  async close(): Promise<void> {
    const seen = await this.#observer?.close();
    await this.must(["delete", "namespace", this.namespace, "--wait=true", "--timeout=120s"], {
      namespace: "default",
    });
    if (seen === undefined) return;
    assert.deepEqual(seen.doubles, [], "two running containers had one address");
    assert.ok(seen.most > 1, "sandboxes were seen");
  }

  /** Runs kubectl as the administrator, with a discovery cache of its own. */
  async kubectl(args: readonly string[], how: { stdin?: string; namespace?: string } = {}): Promise<Ended> {
    const { path } = this.cluster.state;
    const env = { ...this.environment, KUBECACHEDIR: `${path}/kubectl` };
    const command = ["--namespace", how.namespace ?? this.namespace, ...args];
    return await run(partOf("kubectl"), command, { env, stdin: { text: how.stdin ?? "" } });
  }

  /** Throws what kubectl printed when it fails. */
  async must(args: readonly string[], how: { stdin?: string; namespace?: string } = {}): Promise<string> {
    const { rc, stdout, stderr } = await this.kubectl(args, how);
    if (rc !== 0) throw new Error(`kubectl ${args.join(" ")}: ${stderr.trim()}`);
    return stdout;
  }

  /** For programs that people use. */
  get environment(): Readonly<Record<string, string>> {
    const { path, kubeconfig } = this.cluster.state;
    const named = process.env["KUBECONFIG"] ?? "";
    return { PATH, HOME: path, KUBECONFIG: isExternal() ? named : kubeconfig };
  }

  async apply(objects: readonly Json[], how: { namespace?: string } = {}): Promise<Ended> {
    const ended = await this.tryApply(objects, how);
    if (ended.rc !== 0) throw new Error(`kubectl apply: ${ended.stderr.trim()}`);
    return ended;
  }

  /** What kubectl says, be it yes or no. */
  async tryApply(objects: readonly Json[], how: { namespace?: string } = {}): Promise<Ended> {
    const stdin = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
    return await this.kubectl(["apply", "-f", "-"], { stdin, ...how });
  }

  /** Pods of the label, or of all, that run and are ready: sorted by name. */
  async running(label = "", how: { namespace?: string } = {}): Promise<readonly Running[]> {
    const text = await this.must(["get", "pods", "-o", "json", ...(label === "" ? [] : ["-l", label])], how);
    const { items } = JSON.parse(text) as { readonly items: readonly PodObject[] };
    return items.filter(isReady).map(({ metadata, spec, status }) => ({
      namespace: metadata.namespace,
      name: metadata.name,
      uid: metadata.uid,
      node: spec.nodeName ?? "",
      addresses: (status.podIPs ?? []).map(({ ip }) => ip),
    }));
  }

  /** As many pods of the label as that, and no more, once they run and `until` holds for them. */
  async runs(
    label: string,
    count: number,
    until: (pods: readonly Running[]) => boolean = () => true,
    how: { namespace?: string } = {},
  ): Promise<readonly Running[]> {
    let pods: readonly Running[] = [];
    await this.until(`${count} pods ${label} run`, async () => {
      pods = await this.running(label, how);
      return pods.length === count && until(pods);
    });
    return pods;
  }

  /** One pod by its name, once it runs with another UID than that. */
  async runsAgain(name: string, notUid = ""): Promise<Running> {
    let found: Running | undefined;
    await this.until(`pod ${name} runs`, async () => {
      found = (await this.running()).find((one) => one.name === name && one.uid !== notUid);
      return found !== undefined;
    });
    assert.ok(found !== undefined);
    return found;
  }

  /** Throws, with what there is, when it does not happen. */
  async until(what: string, happened: () => Promise<boolean>, ms = START_MS): Promise<void> {
    const look = async () => {
      if (await happened()) return true;
      await pause(POLL_MS);
      return undefined;
    };
    await eventually(what, look, ms).catch(async (error: unknown) => {
      throw new Error(`${messageOf(error)}\n${await this.#scene()}`);
    });
  }

  /** What was said last of pods, as a report shows the first lines; the pods; who has which block. */
  async #scene(): Promise<string> {
    const said = (await this.warnings()).trimEnd().split("\n").slice(-3);
    const pods = await this.must(["get", "pods", "--all-namespaces", "-o", "wide"]);
    return [...said, pods, await this.must(["get", "ippools,ipblocks", "-o", "wide"])].join("\n");
  }

  /** `reason: message` of the events on an object, oldest first. */
  async events(name: string): Promise<readonly string[]> {
    return await this.eventsWith(`involvedObject.name=${name}`);
  }

  /** The same of events with such a field, as `reason=FailedCreate`. */
  async eventsWith(field: string): Promise<readonly string[]> {
    const columns = '-o=jsonpath={range .items[*]}{.reason}: {.message}{"\\n"}{end}';
    const only = ["--field-selector", field, "--sort-by", ".lastTimestamp"];
    const text = await this.must(["get", "events", ...only, columns]);
    return text.split("\n").filter((line) => line !== "");
  }

  async warnings(): Promise<string> {
    return await this.must([
      "get",
      "events",
      "--field-selector",
      "type=Warning",
      "--sort-by",
      ".lastTimestamp",
    ]);
  }

  /** The node's condition Ready becomes `True`, or `Unknown` when nothing is heard of it. */
  async nodeBecomes(name: string, ready: "True" | "Unknown"): Promise<void> {
    const path = '-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}';
    await this.until(`Ready of ${name} becomes ${ready}`, async () => {
      return (await this.kubectl(["get", "node", name, path])).stdout === ready;
    });
  }

  /** The node is ready, and nothing keeps the scheduler from it: its taints go later than its condition comes. */
  async nodeReturns(name: string): Promise<void> {
    await this.nodeBecomes(name, "True");
    await this.until(`the taints of ${name} go`, async () => {
      return (await this.must(["get", "node", name, "-o=jsonpath={.spec.taints}"])) === "";
    });
  }

  /** Whether some sandbox of the pod's node has its address, whatever the API server knows. */
  hasAddress({ node, addresses: [address = ""] }: Running): boolean {
    return new Sandboxes([this.cluster.node(node)]).of(address) !== undefined;
  }

  async reachEachOther(pods: readonly Running[]): Promise<boolean> {
    return await this.pingAll(pods).then(
      () => true,
      () => false,
    );
  }

  /** Every pod reaches every address of every other one. */
  async pingAll(pods: readonly Running[]): Promise<void> {
    const targets = [...new Set(pods.flatMap(({ addresses }) => addresses))];
    await Promise.all(
      pods.map(async ({ namespace, name, addresses }) => {
        const own = addresses.some((address) => address.includes(":"));
        const reachable = targets.filter((target) => own || !target.includes(":"));
        const script = reachable
          .map((target) => `ping -q -c 1 -w 5 ${target} >/dev/null || echo ${target}`)
          .join("\n");
        const silent = await this.must(["exec", name, "--", "sh", "-c", script], { namespace });
        assert.equal(silent, "", `${name} gets no answer from ${silent}`);
      }),
    );
  }

  async berthctl(...args: readonly string[]): ReturnType<typeof run> {
    return await run(BERTHCTL, args, { env: this.environment });
  }

  /** Pools, claims, reservations and attachments agree, at the latest when everything under way is over. */
  async check(): Promise<void> {
    let last = "";
    const look = async () => {
      const { rc, stdout, stderr } = await this.berthctl("check");
      last = stdout + stderr;
      if (rc !== 0) await pause(500);
      return rc === 0 || undefined;
    };
    await eventually("berthctl check finds nothing", look, 60_000).catch((error: unknown) => {
      throw new Error(last, { cause: error });
    });
  }
}

function isReady({ metadata, status }: PodObject): boolean {
  const ready = status.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
  return metadata.deletionTimestamp === undefined && status.phase === "Running" && ready === true;
}
