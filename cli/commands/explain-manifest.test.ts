// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addrs,
  bindingTo,
  claimRecord,
  DB_POOL,
  poolRecord,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { namespaceObject, pod, poolObject, statefulPod, workload } from "../../test/support/objects.ts";
import { Folder } from "../testing/folder.ts";
import { folderOfOneClaim } from "../testing/folder-of-one-claim.ts";

function list(...items: readonly unknown[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

describe("berthctl explain", () => {
  it("gives a line to each pod: address and reason, or the refusal", async (t) => {
    const data = await folderOfOneClaim(t);
    const text = list(
      pod("a", { annotations: { "berth.dev/ips": "10.20.0.71" } }),
      pod("b", { annotations: { "berth.dev/pools": "nope" } }),
      pod("c"),
      workload("StatefulSet", "mysql", {
        replicas: 1,
        annotations: { "berth.dev/ips": "10.20.0.70/fd00:20::70" },
      }),
    );
    const { code, stdout, stderr } = await data.callWith(text, "explain", "-f", "-");
    assert.equal(stderr, "");
    assert.equal(code, 1, "one of them is refused");
    assert.deepEqual(stdout.split("\n"), [
      "pod/shop/mysql-0   10.20.0.70   mysql-0 keeps 10.20.0.70 until its pod is created again; fd00:20::70 is not reserved before that",
      "pod/shop/a         10.20.0.71   pool db: asked for by address",
      'pod/shop/b         refused      there is no pool "nope"; name one of "db"',
      "pod/shop/c         -            it asks for no fixed address, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: make a pool with blockSize (docs/blocks.md)",
      "",
    ]);
  });

  it("says of MAC addresses and interfaces what admission says", async (t) => {
    const range = { cidr: "fe80::/64", from: "fe80::ff:fe00:0", to: "fe80::ff:fe00:ffff" };
    const macs = poolRecord("macs", "fe80::/64", {
      ranges: [range],
      reserved: [`${range.from}-${range.to}`],
    });
    const data = await Folder.of(t, { pools: [DB_POOL, macs] });
    const kubeOvn = { "ovn.kubernetes.io/mac_address": "02:00:00:00:00:52" };
    const networks = { "k8s.v1.cni.cncf.io/networks": "storage" };
    const text = list(
      pod("alone", { annotations: kubeOvn }),
      pod("beside", { annotations: { ...kubeOvn, "berth.dev/ips": "10.20.0.71" } }),
      pod("unmade", { annotations: { ...networks, "berth.dev/ips": "10.20.0.72@net2" } }),
      workload("Deployment", "web", { annotations: kubeOvn }),
      workload("Deployment", "far", {
        annotations: { "ovn.kubernetes.io/mac_address": "06:00:00:00:00:52" },
      }),
    );
    const { stdout, stderr } = await data.callWith(text, "explain", "-f", "-");
    const refused =
      "annotation ovn.kubernetes.io/mac_address: MAC address 02:00:00:00:00:52 is of a pool of berth's, and is pinned with addresses alone; write berth.dev/ips or berth.dev/pools beside it";
    const lines = stdout.trimEnd().split("\n");
    const cells = (row = "") => row.split(/ {3,}/);
    assert.deepEqual(lines.map(cells), [
      ["deployment/shop/web", "refused", refused],
      [
        "deployment/shop/far, each pod",
        "-",
        "it asks for no fixed address, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: make a pool with blockSize (docs/blocks.md)",
      ],
      ["pod/shop/alone", "refused", refused],
      [
        "pod/shop/beside",
        "10.20.0.71@eth0, 02:00:00:00:00:52@eth0",
        "10.20.0.71: pool db: asked for by address; 02:00:00:00:00:52: pool macs: asked for by address",
      ],
      ["pod/shop/unmade", "10.20.0.72@net2", "pool db: asked for by address"],
    ]);
    assert.deepEqual(stderr.trimEnd().split("\n"), [
      "Warning: annotation ovn.kubernetes.io/mac_address is kube-ovn's, and no pool of berth's has MAC address 06:00:00:00:00:52, which is kept for nobody; berth hands it to nobody",
      "Warning: addresses are asked for on net2, and the pod's networks make net1: they are kept and not used unless the runtime makes that interface by itself",
    ]);
  });

  it("tells of keys that are nearly read, and of what is passed over in those that are", async (t) => {
    const data = await folderOfOneClaim(t);
    const pools = { "berth.dev/pools": "db" };
    const ippools = JSON.stringify([{ interface: "eth0", ipv4: ["db"], cleangateway: true }]);
    const text = list(
      pod("near", { annotations: { ...pools, "cni.projectcalico.org/ipaddrs": '["10.20.0.75"]' } }),
      pod("noted", { annotations: { "ipam.spidernet.io/ippools": ippools } }),
    );
    const { stderr } = await data.callWith(text, "explain", "-f", "-");
    const warnings = stderr.trimEnd().split("\n");
    assert.equal(warnings.length, 2);
    assert.equal(
      warnings[0],
      "Warning: berth knows no annotation cni.projectcalico.org/ipaddrs of Calico's, and does nothing about it; did you mean cni.projectcalico.org/ipAddrs?",
    );
    assert.match(
      warnings[1] ?? "",
      /^Warning: annotation ipam\.spidernet\.io\/ippools: cleangateway is no matter of berth's/,
    );
  });

  it("tells a named pool from one that is merely open", async (t) => {
    const data = await folderOfOneClaim(t);
    const families = { "berth.dev/families": "IPv4" };
    const text = list(
      pod("a", { annotations: { ...families, "berth.dev/pools": "db" } }),
      pod("b", { annotations: { ...families, "berth.dev/sticky": "true" } }),
    );
    const { code, stdout } = await data.callWith(text, "explain", "-f", "-");
    assert.equal(code, 0);
    const [first = "", second = ""] = stdout.split("\n");
    assert.match(first, /^pod\/shop\/a {3}10\.20\.0\.\d+ +pool db: free, and the request names the pool$/);
    assert.match(
      second,
      /^pod\/shop\/b {3}10\.20\.0\.\d+ +pool db: free, in the first pool that is open to it$/,
    );
  });

  it("warns of an annotation beside the template", async (t) => {
    const data = await folderOfOneClaim(t);
    const set = workload("StatefulSet", "mysql", { own: { "berth.dev/ips": "10.20.0.71" } });
    assert.deepEqual(await data.callWith(JSON.stringify(set), "explain", "-f", "-"), {
      code: 0,
      stdout:
        "statefulset/shop/mysql, each pod   -   it asks for no fixed address, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: make a pool with blockSize (docs/blocks.md)\n",
      stderr:
        "Warning: annotation berth.dev/ips on StatefulSet mysql itself has no effect; move it to its template\n",
    });
  });

  for (const [what, object, words] of [
    [
      "a misspelt annotation of a pod",
      pod("a", { annotations: { "berth.dev/ip": "10.20.0.71" } }),
      /^pod\/shop\/a +refused +annotation berth\.dev\/ip: berth knows no such annotation; did you mean berth\.dev\/ips\?$/,
    ],
    [
      "the same of a template",
      workload("StatefulSet", "web", { annotations: { "berth.dev/ip": "10.20.0.71" } }),
      /^statefulset\/shop\/web +refused +annotation berth\.dev\/ip: /,
    ],
    [
      "one of a namespace",
      namespaceObject("shop", { "berth.dev/pool": "db" }),
      /^namespace\/shop +refused +annotation berth\.dev\/pool: .* did you mean berth\.dev\/pools\?$/,
    ],
    [
      "an existing pod that asks for something else",
      pod("there", { annotations: { "berth.dev/ips": "10.20.0.72" } }),
      /^pod\/shop\/there +refused +annotation berth\.dev\/ips of pod shop\/there is read when the pod is created, and a change would do nothing; delete the pod/,
    ],
    [
      "a pool that overlaps another",
      poolObject("other", DB_POOL.spec as unknown as Record<string, unknown>),
      /^ippool\/other +refused +pools other and db both contain /,
    ],
  ] as const)
    it(`refuses ${what} in the words of admission`, async (t) => {
      const there = pod("there", { annotations: { "berth.dev/ips": "10.20.0.71" } });
      const data = await Folder.of(t, { pools: [DB_POOL], objects: [there] });
      const { code, stdout } = await data.callWith(JSON.stringify(object), "explain", "-f", "-");
      assert.equal(code, 1);
      assert.match(stdout.trimEnd(), words);
    });

  it("refuses a Deployment whose list is too short for its pods, as apply does, and warns of its rollout", async (t) => {
    const of = async (list: string, there: readonly unknown[] = [], spec = {}) => {
      const data = await Folder.of(t, { pools: [DB_POOL], objects: there });
      const annotations = { "berth.dev/ips": list };
      const object = workload("Deployment", "web", { replicas: 2, annotations, spec });
      const { code, stdout, stderr } = await data.callWith(JSON.stringify(object), "explain", "-f", "-");
      return { code, object, stdout, said: `${stdout}${stderr}`.trimEnd().split("\n").at(-1) ?? "" };
    };
    const short = await of("10.20.0.71");
    assert.equal(short.code, 1);
    assert.match(short.said, / refused +the list has 1 entry for 2 replicas; add entries or lower replicas$/);
    assert.equal((await of("10.20.0.71", [short.object])).code, 0, "it is there like that");
    assert.match(
      (await of("10.20.0.71", [short.object], { minReadySeconds: 5 })).said,
      / refused +the list has 1 entry for 2 replicas;/,
    );
    const rolling = { strategy: { rollingUpdate: { maxUnavailable: 0 } } };
    const never = await of("10.20.0.71;10.20.0.72", [], rolling);
    assert.match(
      never.stdout,
      /^deployment\/shop\/web {3}refused {3}.* with maxUnavailable 0 it would never end.*\n$/,
      "said once",
    );
    const surging = await of("10.20.0.71;10.20.0.72", [], {
      strategy: { rollingUpdate: { maxUnavailable: 1 } },
    });
    assert.equal(surging.code, 0);
    assert.match(surging.said, /^Warning: a rolling update may want 3 pods at once .* its surge pods wait/);
    assert.deepEqual((await of("10.20.0.71-10.20.0.73")).code, 0);
  });

  it("warns of annotations that ask Berth for nothing, as apply does", async (t) => {
    const data = await folderOfOneClaim(t);
    for (const [annotations, words] of [
      [{ "berth.dev/families": "IPv4" }, /^Warning: berth\.dev\/families asks for no address; write /],
      [{ "berth.dev/token": "x" }, /^Warning: annotations that berth alone writes ask for nothing, /],
      [{ "ovn.kubernetes.io/vip": "vip-1" }, /^Warning: annotation ovn\.kubernetes\.io\/vip /],
    ] as const) {
      const text = JSON.stringify(pod("a", { annotations }));
      const { code, stderr } = await data.callWith(text, "explain", "-f", "-");
      assert.equal(code, 0);
      assert.match(stderr, words);
    }
    const asks = { "berth.dev/families": "IPv4", "berth.dev/pools": "db" };
    const { stderr } = await data.callWith(
      JSON.stringify(pod("a", { annotations: asks })),
      "explain",
      "-f",
      "-",
    );
    assert.equal(stderr, "");
  });

  it("says of valid pools that nothing asks for an address", async (t) => {
    const data = await Folder.of(t, {});
    const text = JSON.stringify(poolObject("db", DB_POOL.spec as unknown as Record<string, unknown>));
    assert.deepEqual(await data.callWith(text, "explain", "-f", "-"), {
      code: 0,
      stdout: "nothing is refused, and nothing asks for an address\n",
      stderr: "",
    });
  });

  it("names an object that has no name", async (t) => {
    const data = await folderOfOneClaim(t);
    const { code, stderr } = await data.callWith('{"apiVersion":"v1","kind":"Pod"}', "explain", "-f", "-");
    assert.deepEqual({ code, stderr }, { code: 1, stderr: "Error: pod: metadata.name is missing\n" });
  });

  it("refuses what an API server would refuse, by the object's name", async (t) => {
    const data = await folderOfOneClaim(t);
    const text = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","annotation":{}}}';
    assert.deepEqual(await data.callWith(text, "explain", "-f", "-"), {
      code: 1,
      stdout: "",
      stderr: 'Error: pod/web: metadata has an unknown field "annotation"; did you mean annotations?\n',
    });
  });

  it("ends with 1 for a StatefulSet whose pod can have no address, unless it is there like that", async (t) => {
    const mysql = workload("StatefulSet", "mysql", {
      replicas: 2,
      annotations: { "berth.dev/ips": "10.20.0.70;10.20.0.71" },
    });
    const other = claimRecord({ name: "other", addresses: addrs("10.20.0.71") });
    const explained = async (objects: readonly unknown[]) => {
      const records = { pools: [DB_POOL], claims: [other], reservations: reservationsOf(other) };
      const data = await Folder.of(t, { ...records, objects: [...objects] });
      return await data.callWith(JSON.stringify(mysql), "explain", "-f", "-");
    };
    const added = await explained([]);
    assert.equal(added.code, 1);
    assert.match(
      added.stdout,
      /^pod\/shop\/mysql-1 +refused +address 10\.20\.0\.71 in pool "db" is held by/m,
    );
    const unchanged = await explained([mysql]);
    assert.equal(unchanged.code, 0, unchanged.stdout);
    assert.match(unchanged.stdout, /^pod\/shop\/mysql-0 +10\.20\.0\.70 /m);
    assert.match(
      unchanged.stdout,
      /^pod\/shop\/mysql-1 +- +it is there like that and is let through, and what comes next of it is refused: address 10\.20\.0\.71 in pool "db" is held by/m,
    );
  });

  it("refuses a StatefulSet whose rollout does not end, unless it is there like that", async (t) => {
    const mysql = (list: string) =>
      workload("StatefulSet", "mysql", { replicas: 2, annotations: { "berth.dev/ips": list } });
    const exchanged = mysql("10.20.0.71;10.20.0.70");
    const claims = [0, 1].map((ordinal) =>
      claimRecord({
        name: `mysql-${ordinal}`,
        identity: { apiVersion: "apps/v1", kind: "StatefulSet", name: "mysql", ordinal },
        nonce: `n${ordinal}`,
        addresses: addrs(`10.20.0.7${ordinal}`),
        binding: bindingTo(`mysql-${ordinal}`, "node-a"),
      }),
    );
    const pods = [0, 1].map((ordinal) => statefulPod("mysql", ordinal, { uid: `uid-mysql-${ordinal}` }));
    const explained = async (there: unknown) => {
      const reservations = claims.flatMap((claim) => reservationsOf(claim));
      const data = await Folder.of(t, { pools: [DB_POOL], claims, reservations, objects: [there, ...pods] });
      return await data.callWith(JSON.stringify(exchanged), "explain", "-f", "-");
    };
    const changed = await explained(mysql("10.20.0.70;10.20.0.71"));
    assert.equal(changed.code, 1);
    assert.match(changed.stdout, /^statefulset\/shop\/mysql, each pod +refused +these wait for each other/);
    const unchanged = await explained(exchanged);
    assert.equal(unchanged.code, 0, unchanged.stdout);
    const why =
      "it is there like that and is let through, and its rollout stands still: these wait for each other";
    assert.match(unchanged.stdout, new RegExp(`^statefulset/shop/mysql +- +${why}`, "m"));
    assert.match(unchanged.stdout, /^pod\/shop\/mysql-1 +later /m);
  });
});
