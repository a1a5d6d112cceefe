// SPDX-License-Identifier: Apache-2.0

import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CONFIGURATIONS, type KubeItem, type ObjectName, SECRETS } from "../../kube/api/resource.ts";
import type { ListWatchOptions } from "../../kube/watch/list-watch.ts";
import { Reflector } from "../../kube/watch/reflector.ts";
import { bundleOf, parseBundle } from "./ca-bundle.ts";
import type { CertSecret, ObservedCerts, Served } from "./rotation.ts";
import type { Snapshot } from "./rotator.ts";

/** Their name. */
export const CONFIGURATION: ObjectName = { name: "berth" };

const ROTATE = "berth.dev/rotate";
const RETIRE_AFTER = "berth.dev/retire-after";

/** What of a configuration is looked at. */
interface ConfigurationSeen {
  readonly resourceVersion: string;
  /** The caBundle of each entry, PEM; empty where there is none. */
  readonly bundles: readonly string[];
}

function configurationSeen(item: KubeItem): ConfigurationSeen {
  const { webhooks = [] } = item as KubeItem & {
    webhooks?: readonly { clientConfig?: { caBundle?: string } }[];
  };
  const bundles = webhooks.map(({ clientConfig }) => decoded(clientConfig?.caBundle));
  return { resourceVersion: item.metadata.resourceVersion, bundles };
}

/** The bundles of both configurations. */
export function watchBundles(
  deps: Pick<ListWatchOptions, "connection" | "clock" | "random" | "log">,
): readonly Reflector<readonly string[]>[] {
  const selection = { fieldSelector: `metadata.name=${CONFIGURATION.name}` };
  const project = (item: KubeItem) => configurationSeen(item).bundles;
  return CONFIGURATIONS.map((resource) => new Reflector({ ...deps, resource, selection, project }));
}

/** The Secrets that certificates of Berth's own are kept in, in one namespace. */
export interface SecretNames {
  readonly namespace: string;
  /** Of the authority, with its key. */
  readonly authority: string;
  /** Of the certificate that is served, with its key. */
  readonly served: string;
}

export interface SecretSeen {
  readonly data: (key: string) => string;
  readonly annotation: (key: string) => string;
}

export function secretSeen(item: KubeItem): SecretSeen {
  const { data = {} } = item as KubeItem & { data?: Readonly<Record<string, string>> };
  const { annotations = {} } = item.metadata;
  const texts = new Map(Object.entries(data).map(([key, text]) => [key, decoded(text)]));
  return { data: (key) => texts.get(key) ?? "", annotation: (key) => annotations[key] ?? "" };
}

export function servedIn({ data }: SecretSeen): Served {
  return { beside: data("ca.crt"), leaf: { cert: data("tls.crt"), key: data("tls.key") } };
}

/** What the two hold together. Older versions had everything in the one that is served: then it comes from there. */
export function readSecret(
  authority: SecretSeen | undefined,
  served: SecretSeen | undefined,
): CertSecret | undefined {
  if (authority === undefined || served === undefined) return undefined;
  const mixed = served.data("ca.key") !== "";
  const isBlank = authority.data("ca.crt") === "" && authority.data("ca.key") === "";
  const from = mixed && isBlank ? served : authority;
  const others = mixed ? served.data("ca.crt") : "";
  return {
    ...servedIn(served),
    bundle: mixed ? bundleOf(parseBundle(from.data("ca.crt") + others)) : from.data("ca.crt"),
    authorityKey: from.data("ca.key"),
    rotate: authority.annotation(ROTATE) || served.annotation(ROTATE),
    retireAfter: from.annotation(RETIRE_AFTER),
    mixed,
  };
}

/** The Secrets and the configurations at the API server. Throws what a Client throws. */
export class CertificateRecords {
  readonly #names: SecretNames;
  readonly #secrets: Client;
  readonly #configurations: readonly Client[];

  constructor(connection: Connection, names: SecretNames) {
    this.#names = names;
    this.#secrets = new Client(connection, SECRETS);
    this.#configurations = CONFIGURATIONS.map((resource) => new Client(connection, resource));
  }

  /** As they are now: the configurations, then what is served, then the authority. */
  async look(): Promise<Snapshot> {
    const seen = await this.#lookAtTrust();
    const { namespace, ...names } = this.#names;
    const served = await this.#secrets.get({ namespace, name: names.served });
    const authority = await this.#secrets.get({ namespace, name: names.authority });
    const [own, shared] = [authority, served].map((one) => (one === undefined ? undefined : secretSeen(one)));
    const known: ObservedCerts = { kept: readSecret(own, shared), trusted: seen.map((one) => one?.bundles) };
    return {
      known,
      rereadTrust: async () => (await this.#lookAtTrust()).map((one) => one?.bundles),
      keepAuthority: async (kept) => {
        const data = { "ca.crt": encoded(kept.bundle), "ca.key": encoded(kept.authorityKey) };
        const annotations = { [ROTATE]: kept.rotate || null, [RETIRE_AFTER]: kept.retireAfter || null };
        return await this.#write(authority, { data, annotations });
      },
      keepServed: async ({ beside, leaf, rotate }) => {
        const tls = { "tls.crt": encoded(leaf.cert), "tls.key": encoded(leaf.key) };
        const data = { ...tls, "ca.crt": encoded(beside), "ca.key": null };
        return await this.#write(served, {
          data,
          annotations: { [ROTATE]: rotate || null, [RETIRE_AFTER]: null },
        });
      },
      trust: async (bundle) => {
        const writes = this.#configurations.map((client, n) => writeBundle(client, seen[n], bundle));
        return (await Promise.all(writes)).every((written) => written);
      },
    };
  }

  async #lookAtTrust(): Promise<readonly (ConfigurationSeen | undefined)[]> {
    const found = await Promise.all(this.#configurations.map((client) => client.get(CONFIGURATION)));
    return found.map((item) => (item === undefined ? undefined : configurationSeen(item)));
  }

  /** Only if it is still the one that was seen. */
  async #write(
    seen: KubeItem | undefined,
    { data, annotations }: { readonly data: object; readonly annotations: object },
  ): Promise<boolean> {
    if (seen === undefined) return false;
    const { name, resourceVersion } = seen.metadata;
    const body = { metadata: { resourceVersion, annotations }, data };
    const place = { namespace: this.#names.namespace, name };
    return (await this.#secrets.patch(place, { type: "merge", body })) !== undefined;
  }
}

/** Into every entry that does not have it, if the configuration is still the one that was seen. */
async function writeBundle(
  client: Client,
  seen: ConfigurationSeen | undefined,
  bundle: string,
): Promise<boolean> {
  if (seen === undefined) return true;
  const value = encoded(bundle);
  const writes = seen.bundles.flatMap((has, n) =>
    has === bundle ? [] : [{ op: "add", path: `/webhooks/${n}/clientConfig/caBundle`, value }],
  );
  if (writes.length === 0) return true;
  const guard = { op: "replace", path: "/metadata/resourceVersion", value: seen.resourceVersion };
  return (await client.patch(CONFIGURATION, { type: "json", operations: [guard, ...writes] })) !== undefined;
}

function encoded(text: string): string {
  return Buffer.from(text).toString("base64");
}

function decoded(text: string | undefined): string {
  return Buffer.from(text ?? "", "base64").toString();
}
