// SPDX-License-Identifier: Apache-2.0
// Pools, namespaces and accounts that deny each other things, pods that try everything, and who may have which address:
// said here once more, in the plainest way, for the test of isolation.
import type { Json } from "../support/objects.ts";
import { poolObject } from "../support/objects.ts";

/** What one pool denies. All ranges are /20 of 10.5x.0.0. */
export interface PoolRule {
  readonly name: string;
  /** The second number of its addresses. */
  readonly second: number;
  readonly team?: string;
  readonly use?: true;
  readonly tier?: string;
  readonly disabled?: true;
  readonly perNamespace?: number;
}

export const LIMIT = 20;
export const RULES: readonly PoolRule[] = [
  { name: "open", second: 50 },
  { name: "vault", second: 51, team: "bank" },
  { name: "keyed", second: 52, use: true },
  { name: "inner", second: 53, team: "bank", use: true },
  { name: "scarce", second: 54, perNamespace: LIMIT },
  { name: "golden", second: 55, tier: "gold" },
  { name: "closed", second: 56, disabled: true },
];

/** Never given out: gateway and exclusions; network and broadcast besides. */
const GATEWAY = ".0.1";
const EXCLUDED = /^10\.5\d\.1\.(\d+)$/; // 10.5x.1.0/24

export function poolObjects(): readonly Json[] {
  return RULES.map(({ name, second, team, use, tier, disabled, perNamespace }) =>
    poolObject(name, {
      ranges: [
        { cidr: `10.${second}.0.0/20`, gateway: `10.${second}${GATEWAY}`, exclude: [`10.${second}.1.0/24`] },
        { cidr: `fd00:${second}::/64` },
      ],
      // no address is given twice in one test
      cooldown: "1h",
      ...(team === undefined ? {} : { namespaceSelector: { matchLabels: { team } } }),
      ...(tier === undefined ? {} : { podSelector: { matchLabels: { tier } } }),
      ...(use === undefined ? {} : { authorization: "ServiceAccount" }),
      ...(disabled === undefined ? {} : { disabled }),
      ...(perNamespace === undefined ? {} : { limits: { perNamespace } }),
    }),
  );
}

export interface NamespaceRule {
  readonly name: string;
  readonly team?: string;
  /** It sends all of its pods through Berth. */
  readonly opted?: true;
  /** The pool of its pods that say nothing. */
  readonly pool?: string;
  /** Accounts that may use pools which ask for that. */
  readonly holders: readonly string[];
}

export const SPACES: readonly NamespaceRule[] = [
  { name: "shop", holders: ["holder"] },
  { name: "bank", team: "bank", holders: ["holder"] },
  { name: "till", team: "bank", opted: true, pool: "vault", holders: [] },
  { name: "street", opted: true, pool: "vault", holders: ["holder"] },
  { name: "plain", opted: true, holders: [] },
];

/** One is in each namespace. */
export const DEPLOYMENT = "web";
/** The list of its pods. */
export const SLOTS: readonly string[] = ["10.50.15.1", "10.50.15.2", "10.50.15.3", "10.50.15.4"];
const HASH = "pod-template-hash";
/** Claims of pods whose StatefulSets are nowhere. */
export const OF_NO_WORKLOAD = /\/s\d+-0$/;

/** The pool that an address is of; undefined: of none. */
export function ruleOf(address: string): PoolRule | undefined {
  const v4 = /^10\.(\d+)\.(\d+)\.\d+$/.exec(address);
  if (v4 !== null && Number(v4[2]) > 15) return undefined;
  const second = Number(v4?.[1] ?? /^fd00:(\d+)::/.exec(address)?.[1]);
  return RULES.find((rule) => rule.second === second);
}

/** What a pod is, so far as it decides what it may have. */
export interface Bearer {
  readonly namespace: NamespaceRule;
  readonly account: string;
  readonly tier: string;
}

/** Why the bearer may not have the address; undefined: it may, so far as limits do not speak against it. */
export function denied({ namespace, account, tier }: Bearer, address: string): string | undefined {
  const rule = ruleOf(address);
  if (rule === undefined) return "of no pool";
  if (EXCLUDED.test(address) || address.endsWith(GATEWAY)) return "excluded";
  if (address === `10.${rule.second}.0.0` || address === `10.${rule.second}.15.255`) return "network";
  if (rule.disabled === true) return "pool disabled";
  if (rule.team !== undefined && rule.team !== namespace.team) return "namespace";
  if (rule.tier !== undefined && rule.tier !== tier) return "labels";
  if (rule.use === true && !namespace.holders.includes(account)) return "account";
  return undefined;
}

/** A pod that is there with addresses: what one who wants them can read off it. */
export interface Victim {
  readonly namespace: string;
  readonly claim: string;
  readonly addresses: string;
  readonly token: string;
}

export interface Attempt extends Bearer {
  readonly object: Json;
  /** Addresses that it asks for by name; none: any. */
  readonly named: readonly string[];
  readonly forged: boolean;
  readonly hostNetwork: boolean;
  readonly dryRun: boolean;
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function numbersOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The n-th pod of a seed: whatever the order, the same. */
export function attemptOf(seed: number, n: number, victims: readonly Victim[]): Attempt {
  const generator = new Generator(
    numbersOf(Math.imul(seed, 0x9e3779b1) ^ Math.imul(n + 1, 0x85ebca6b)),
    n,
    victims,
  );
  return generator.attempt();
}

const TTLS = ["1h", "0", "never"];

class Generator {
  readonly #number: () => number;
  readonly #n: number;
  readonly #victims: readonly Victim[];
  readonly #named: string[] = [];

  constructor(number: () => number, n: number, victims: readonly Victim[]) {
    this.#number = number;
    this.#n = n;
    this.#victims = victims;
  }

  attempt(): Attempt {
    const namespace = this.#one(SPACES);
    const account = this.#one(["default", "holder", "holder", "other", ""]);
    const tier = this.#chance(0.3) ? "gold" : "tin";
    const forged = this.#chance(0.25);
    const hostNetwork = this.#chance(0.02);
    const { labels, ...podIdentity } = this.#claimsThere();
    const asked =
      podIdentity["name"] === undefined && labels[HASH] !== undefined ? this.#asksOfSet() : this.#asks();
    const annotations = { ...asked, ...(forged ? this.#forgery() : {}) };
    const spec = {
      containers: [{ name: "main", image: "registry.example/app:1" }],
      ...(account === "" ? {} : { serviceAccountName: account }),
      ...(hostNetwork ? { hostNetwork } : {}),
    };
    const metadata = { namespace: namespace.name, annotations, labels: { tier, ...labels }, ...podIdentity };
    return {
      ...{ namespace, account: account === "" ? "default" : account, tier },
      object: { apiVersion: "v1", kind: "Pod", metadata, spec },
      ...{ named: this.#named, forged, hostNetwork, dryRun: this.#chance(0.05) },
    };
  }

  #one<T>(of: readonly T[]): T {
    return of[Math.floor(this.#number() * of.length)] as T;
  }

  #chance(share: number): boolean {
    return this.#number() < share;
  }

  #below(limit: number): number {
    return Math.floor(this.#number() * limit);
  }

  /** By its own name, without one, of a StatefulSet, of a Deployment. */
  #claimsThere(): Json & { readonly labels: Json } {
    const owner = (kind: string, name: string) => ({
      ownerReferences: [{ apiVersion: "apps/v1", kind, name, uid: `uid-${name}`, controller: true }],
    });
    const how = this.#number();
    if (how < 0.6) return { name: `p-${this.#n}`, labels: {} };
    if (how < 0.75) return { generateName: `g-${this.#n}-`, labels: {} };
    if (how < 0.9) return { name: `s${this.#n}-0`, labels: {}, ...owner("StatefulSet", `s${this.#n}`) };
    const set = `${DEPLOYMENT}-abc`;
    return { generateName: `${set}-`, labels: { [HASH]: "abc" }, ...owner("ReplicaSet", set) };
  }

  /** Pods of one Deployment share one list. */
  #asksOfSet(): Record<string, string> {
    if (this.#chance(0.7)) return this.#byPool();
    this.#named.push(...SLOTS);
    return { "berth.dev/ips": SLOTS.join(";") };
  }

  #asks(): Record<string, string> {
    const how = this.#number();
    if (how < 0.08) return {};
    const extras = this.#chance(0.2) ? this.#extras() : {};
    if (how < 0.5) return { ...this.#byAddress(), ...extras };
    if (how < 0.9) return { ...this.#byPool(), ...extras };
    return { ...this.#byAddress(), ...this.#byPool(), ...extras };
  }

  #extras(): Record<string, string> {
    return this.#one<Record<string, string>>([
      { "berth.dev/sticky": "true" },
      { "berth.dev/families": this.#one(["IPv4", "IPv6", "IPv4,IPv6"]) },
      { "berth.dev/when-deleted": "Retain" },
      { "berth.dev/ttl": this.#one(TTLS) },
    ]);
  }

  #v4(second: number): string {
    if (this.#chance(0.1))
      return this.#one([`10.${second}.0.1`, `10.${second}.0.0`, `10.${second}.1.7`, `10.${second}.15.255`]);
    if (this.#chance(0.03)) return `10.${second}.16.1`;
    return `10.${second}.${2 + this.#below(13)}.${this.#below(256)}`;
  }

  #byAddress(): Record<string, string> {
    const { second } = this.#one(RULES);
    const stolen = this.#chance(0.1) ? this.#one(this.#victims).addresses.split(",")[0] : undefined;
    const address = stolen ?? this.#v4(second);
    const v6 = `fd00:${second}::${(1 + this.#below(0xfffe)).toString(16)}`;
    this.#named.push(address);
    const how = this.#number();
    if (how < 0.25) return { "cni.projectcalico.org/ipAddrs": JSON.stringify([address]) };
    if (how < 0.32) {
      this.#named.push(v6);
      return { "cni.projectcalico.org/ipAddrs": JSON.stringify([address, v6]) };
    }
    if (how < 0.4) {
      this.#named.push(v6);
      return { "berth.dev/ips": `${address}/${v6}` };
    }
    if (how < 0.44) return { "berth.dev/ips": `::ffff:${address}` };
    if (how < 0.48) return { "berth.dev/ips": `${address}-${address}` };
    return { "berth.dev/ips": ` ${address} ` };
  }

  #byPool(): Record<string, string> {
    const rule = this.#one(RULES);
    const name = this.#chance(0.2) ? `10.${rule.second}.0.0/20` : rule.name;
    const how = this.#number();
    if (how < 0.25) return { "cni.projectcalico.org/ipv4pools": JSON.stringify([name]) };
    if (how < 0.35) return { "cni.projectcalico.org/ipv6pools": JSON.stringify([rule.name]) };
    if (how < 0.5) return { "berth.dev/pools": `${this.#one(RULES).name}, ${name}` };
    return { "berth.dev/pools": name };
  }

  /** What Berth wrote into a pod of somebody else, or what it would write into this one. */
  #forgery(): Record<string, string> {
    const { claim, addresses, token } = this.#one(this.#victims);
    const wished = this.#v4(this.#one(RULES).second);
    return this.#one<Record<string, string>>([
      { "berth.dev/claim": claim, "berth.dev/addresses": addresses, "berth.dev/token": token },
      { "berth.dev/claim": claim, "berth.dev/addresses": addresses },
      { "berth.dev/claim": `p-${this.#n}`, "berth.dev/addresses": wished },
      { "berth.dev/token": token },
      { "berth.dev/addresses": wished },
    ]);
  }
}
