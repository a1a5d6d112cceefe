// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { parseCidr, toNumber } from "../../allocator/ip/address.ts";
import { type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { addr, parsed, poolRecord, storedAs, viewOf } from "../../test/support/fixtures.ts";
import type { Backend } from "../backend/backend.ts";
import { hostOccupants } from "../backend/host-occupants.ts";
import { describeAddress } from "./address-words.ts";
import { inUseByOthers, occupyAll, occupyOne, surroundingsOf, withPodOfBlock } from "./occupied-addresses.ts";

const LAN = poolRecord("lan", "10.9.0.0/28");

function pod(name: string, ip: string, more: { spec?: object; status?: object; annotations?: object } = {}) {
  const { spec = {}, status = {}, annotations = {} } = more;
  const metadata = { namespace: "shop", name, uid: name, annotations };
  return { kind: "Pod", metadata, spec, status: { podIPs: [{ ip }], ...status } };
}

const NODE = {
  kind: "Node",
  metadata: { name: "node-a", uid: "n" },
  status: { addresses: [{ type: "InternalIP", address: "10.9.0.1" }] },
};

type Around = Pick<Backend, "world" | "place" | "services" | "hostOccupants">;

function cluster(objects: readonly object[], services: Partial<Backend> = {}): Around {
  const all = objects.map((one) => readObject(one) as KubeObject);
  const world = {
    objects: async (kind: string) => all.filter((one) => one.kind === kind),
    async *each(kind: string) {
      yield* all.filter((one) => one.kind === kind);
    },
  } as unknown as Backend["world"];
  return { place: "cluster", world, ...services };
}

describe("what others have of pools, by a look at the cluster", () => {
  const objects = [
    NODE,
    pod("calico", "10.9.0.5"),
    pod("own", "10.9.0.6", { annotations: { "berth.dev/claim": "own" } }),
    pod("host", "10.9.0.7", { spec: { hostNetwork: true } }),
    pod("ended", "10.9.0.8", { status: { phase: "Succeeded" } }),
    pod("block", "10.9.0.9"),
    pod("elsewhere", "10.8.0.9"),
  ];
  const isOurs = ({ name }: { readonly name: string }) => name === "block";

  it("is one finding for each pool, and one for each address that a claim has too", async () => {
    const facts = await surroundingsOf(cluster(objects), isOurs);
    const pools = [parsed(LAN), parsed(poolRecord("clean", "10.7.0.0/28"))];
    const reported = inUseByOthers(pools, facts, () => undefined).map(({ severity, kind, message }) => [
      severity,
      kind,
      message,
    ]);
    assert.deepEqual(reported, [
      [
        "pending",
        "in-use",
        "pool lan has 2 addresses that are in use, and not from Berth: 10.9.0.1 (node node-a), 10.9.0.5 (pod shop/calico); it gives none of a pod, a node or this host as long as it sees them there; exclude what stays with others from spec.ranges",
      ],
    ]);
    const claim = { namespace: "shop", name: "db-0" };
    const taken = inUseByOthers(pools, facts, (one) => (one === "10.9.0.5" ? claim : undefined));
    assert.deepEqual(
      taken.map(({ kind, subject }) => `${kind} ${subject}`),
      ["two-holders 10.9.0.5", "in-use lan"],
    );
    assert.equal(
      taken[0]?.message,
      "10.9.0.5 (pod shop/calico) is claim shop/db-0's too: two may have it at once; give one of them another",
    );
  });

  it("is told apart where pods of a fenced node have it, which may have had it from Berth", async () => {
    const fenced = {
      ...{ kind: "Node", status: {} },
      metadata: { name: "node-b", uid: "b", annotations: { "berth.dev/fenced": "true" } },
    };
    const left = pod("left", "10.9.0.4", { spec: { nodeName: "node-b" } });
    const facts = await surroundingsOf(cluster([...objects, fenced, left]), isOurs);
    const [others, found] = inUseByOthers([parsed(LAN)], facts, () => undefined);
    assert.match(others?.message ?? "", /^pool lan has 2 addresses that are in use, and not from Berth: /);
    assert.match(
      found?.message ?? "",
      /^pool lan has 1 address that is in use by pods of fenced nodes: 10\.9\.0\.4 \(pod shop\/left\); .*delete those pods before the fence/,
    );
  });

  it("is named where a node's block has it, by the status of the pod that does", async () => {
    const report = { address: addr("10.9.0.9"), state: "in-block", sandboxes: [] } as const;
    const backend = cluster(objects);
    const named = await withPodOfBlock(report, backend);
    assert.deepEqual([named.used, named.pod], [true, { namespace: "shop", name: "block", uid: "block" }]);
    assert.match(describeAddress(named), /^ {2}pod +shop\/block \(uid block\)$/m);
    const none = await withPodOfBlock({ ...report, address: addr("10.9.0.8") }, backend);
    assert.match(describeAddress(none), /^ {2}pod +none says that it has it$/m);
    assert.equal(await withPodOfBlock(report, { ...backend, place: "data" }), report);
  });

  it("is not of pools for other networks, but for what nodes have", async () => {
    const facts = await surroundingsOf(cluster(objects), isOurs);
    const [found] = inUseByOthers(
      [parsed({ ...LAN, spec: { ...LAN.spec, networks: ["vlan7"] } })],
      facts,
      () => undefined,
    );
    assert.match(
      found?.message ?? "",
      /^pool lan has 1 address that is in use, .*: 10\.9\.0\.1 \(node node-a\);/,
    );
  });

  it("names the networks of Services", async () => {
    const networks = [parseCidr("10.9.0.0/16")].flatMap((one) => one ?? []);
    const services = async () => ({ networks, occupied: [], isPart: false });
    const facts = await surroundingsOf(cluster([], { services }), isOurs);
    const [found] = inUseByOthers([parsed(LAN)], facts, () => undefined);
    assert.match(
      found?.message ?? "",
      /^pool lan has addresses of 10\.9\.0\.0\/16, from which the cluster's Services/,
    );
  });

  it("says when this user may not see all of it", async () => {
    const refuse = async () => {
      throw new BerthError("STORE_READ_ONLY", "forbidden");
    };
    const world = {
      objects: refuse,
      async *each() {
        yield await refuse();
      },
    } as unknown as Backend["world"];
    const facts = await surroundingsOf({ place: "cluster", world }, isOurs);
    assert.deepEqual([facts.isPart, facts.occupied], [true, []]);
  });
});

describe("a forecast", () => {
  it("passes over what is in use in a pool of the same files, too", async () => {
    const view = viewOf({});
    await occupyAll(view, cluster([NODE, pod("calico", "10.9.0.5"), pod("far", "10.8.0.9")]));
    view.apply("pool", { type: "put", stored: storedAs("pool", LAN) });
    const [lan] = view.pools();
    assert.ok(lan);
    const isPicked = (text: string) => !view.unpickable(lan, "IPv4").has(toNumber(addr(text)));
    assert.deepEqual(["10.9.0.1", "10.9.0.5", "10.9.0.6"].map(isPicked), [false, false, true]);
  });
});

describe("an address of this host", () => {
  it("is found, but for loopback, and told of by name", async () => {
    const view = viewOf({ pools: [LAN] });
    const here = { place: "data", world: {} as Backend["world"] } as const;
    const host = [[addr("10.9.0.3"), { kind: "host", namespace: "", name: "eth0" }]] as const;
    await occupyOne(view, { ...here, hostOccupants: () => host }, addr("10.9.0.3"));
    assert.deepEqual(view.occupant(addr("10.9.0.3"))?.name, "eth0");
    assert.equal(
      hostOccupants().some(([address]) => address.startsWith("127.")),
      false,
    );
  });
});
