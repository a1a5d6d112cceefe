// SPDX-License-Identifier: Apache-2.0
import { Client } from "../kube/client.ts";
import type { Connection } from "../kube/connection.ts";
import type { Item, Place, Resource } from "../kube/resource.ts";
import type { Sight } from "./certificate-keeper.ts";
import type { Kept, Known } from "./certificate-plan.ts";

export const SECRETS: Resource = {
  group: "",
  version: "v1",
  plural: "secrets",
  kind: "Secret",
  namespaced: true,
};

const configurations = (kind: string, plural: string): Resource => {
  return { group: "admissionregistration.k8s.io", version: "v1", plural, kind, namespaced: false };
};

/** Where the API server finds out whom it asks, and what it trusts. */
export const CONFIGURATIONS: readonly Resource[] = [
  configurations("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
  configurations("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
];

/** Their name. */
export const CONFIGURATION: Place = { name: "berth" };

const ROTATE = "berth.dev/rotate";
const RETIRE_AFTER = "berth.dev/retire-after";

/** What of a configuration is looked at. */
export interface ConfigurationSeen {
  readonly resourceVersion: string;
  /** The caBundle of each entry, PEM; empty where there is none. */
  readonly bundles: readonly string[];
}

export function configurationSeen(item: Item): ConfigurationSeen {
  const { webhooks = [] } = item as Item & { webhooks?: readonly { clientConfig?: { caBundle?: string } }[] };
  const bundles = webhooks.map(({ clientConfig }) => decoded(clientConfig?.caBundle));
  return { resourceVersion: item.metadata.resourceVersion, bundles };
}

export function keptIn(item: Item): Kept {
  const { data = {} } = item as Item & { data?: Readonly<Record<string, string>> };
  const { annotations = {} } = item.metadata;
  return {
    bundle: decoded(data["ca.crt"]),
    authorityKey: decoded(data["ca.key"]),
    leaf: { cert: decoded(data["tls.crt"]), key: decoded(data["tls.key"]) },
    rotate: annotations[ROTATE] ?? "",
    retireAfter: annotations[RETIRE_AFTER] ?? "",
  };
}

/** The Secret and the configurations at the API server. Throws what a Client throws. */
export class CertificateRecords {
  readonly #secret: Required<Place>;
  readonly #secrets: Client;
  readonly #configurations: readonly Client[];

  constructor(connection: Connection, secret: Required<Place>) {
    this.#secret = secret;
    this.#secrets = new Client(connection, SECRETS);
    this.#configurations = CONFIGURATIONS.map((resource) => new Client(connection, resource));
  }

  /** As they are now, the configurations first. */
  async look(): Promise<Sight> {
    const found = await Promise.all(this.#configurations.map((client) => client.get(CONFIGURATION)));
    const seen = found.map((item) => (item === undefined ? undefined : configurationSeen(item)));
    const secret = await this.#secrets.get(this.#secret);
    const known: Known = {
      kept: secret === undefined ? undefined : keptIn(secret),
      trusted: seen.map((one) => one?.bundles),
    };
    return {
      known,
      keep: async (kept) => await this.#keep(secret?.metadata.resourceVersion ?? "", kept),
      trust: async (bundle) => {
        const writes = this.#configurations.map((client, n) => writeBundle(client, seen[n], bundle));
        return (await Promise.all(writes)).every((written) => written);
      },
    };
  }

  async #keep(resourceVersion: string, kept: Kept): Promise<boolean> {
    const data = {
      "ca.crt": encoded(kept.bundle),
      "ca.key": encoded(kept.authorityKey),
      "tls.crt": encoded(kept.leaf.cert),
      "tls.key": encoded(kept.leaf.key),
    };
    const annotations = { [ROTATE]: kept.rotate || null, [RETIRE_AFTER]: kept.retireAfter || null };
    const body = { metadata: { resourceVersion, annotations }, data };
    return (await this.#secrets.patch(this.#secret, { type: "merge", body })) !== undefined;
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
