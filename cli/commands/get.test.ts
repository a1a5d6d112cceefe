// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { parse } from "yaml";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  NOW,
  poolRecord,
  reservationRecord,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { namespaceObject, pod, workload } from "../../test/support/objects.ts";
import { withBackend } from "../backend/open-backend.ts";
import { attachment, Folder } from "../testing/folder.ts";

const mysql = claimRecord({
  addresses: addrs("10.20.0.70", "fd00:20::70"),
  binding: bindingTo("mysql-0", "node-a"),
  status: { attachment: attachmentOf("mysql-0") },
});
const web = claimRecord({
  namespace: "bank",
  name: "web",
  identity: { kind: "Pod", apiVersion: "v1", name: "web" },
  addresses: addrs("10.20.0.71"),
  nonce: "n2",
});

function folder(t: TestContext): Promise<Folder> {
  return Folder.of(t, {
    pools: [DB_POOL, poolRecord("lab", "10.9.0.0/24", { disabled: true, priority: 5 })],
    claims: [mysql, web],
    reservations: [
      ...reservationsOf(mysql),
      ...reservationsOf(web),
      reservationRecord("10.20.0.9", { releasedAt: NOW }),
    ],
    attachments: [attachment("mysql-0", "10.20.0.70", "shop/mysql-0")],
    objects: [
      namespaceObject("shop"),
      pod("web", {
        namespace: "bank",
        annotations: { "berth.dev/claim": "web", "berth.dev/addresses": "10.20.0.71" },
      }),
      workload("StatefulSet", "mysql", {
        replicas: 3,
        annotations: { "berth.dev/ips": "10.20.0.70;10.20.0.72" },
      }),
    ],
  });
}

describe("blocks of pools", () => {
  it("are listed with their node, what is done with them, and how much of them is used", async (t) => {
    const cut = poolRecord("web", "10.40.0.0/24", { blockSize: { ipv4: 28 } });
    const data = await Folder.of(t, { pools: [cut] });
    const block = { pool: "web", node: "node-b", nodeUID: "u", holes: ["10.40.0.32/32"], granted: true };
    await withBackend(data.context(), "write", async ({ store }) => {
      const { stored } = await store.create("block", { ...block, cidr: "10.40.0.32/28" });
      await store.reportBlock(stored, { node: "node-b", used: 3 });
      await store.create("block", { ...block, cidr: "10.40.0.0/28", holes: [], recalledAt: 5 });
      const given = await store.create("block", { ...block, cidr: "10.40.0.128/28", holes: [] });
      await store.reportBlock(given.stored, { node: "node-b", used: 0, returnedAt: 5 });
    });
    const { stdout } = await data.call("get", "blocks");
    assert.deepEqual(
      stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.trim().replaceAll(/ +/g, " ").replace(/ \S+$/, "")),
      [
        "CIDR POOL NODE STATE USE USED OF",
        "10.40.0.0/28 web node-b asked back pods 0 16",
        "10.40.0.32/28 web node-b owned pods 3 15",
        "10.40.0.128/28 web node-b returned pods 0 16",
      ],
    );
    const one = JSON.parse((await data.call("get", "block", "10.40.0.128-28", "-o", "json")).stdout);
    const names = [one.kind, one.metadata.name, one.spec.cidr];
    assert.deepEqual(names, ["IPBlock", "10.40.0.128-28", "10.40.0.128/28"]);
    assert.deepEqual(one.status, { node: "node-b", used: 0, returnedAt: "1970-01-01T00:00:00Z" });
  });
});

describe("berthctl get", () => {
  it("lists pools with what is taken of each family", async (t) => {
    const data = await folder(t);
    const { code, stdout, stderr } = await data.call("get", "pools");
    assert.equal(stderr, "");
    assert.equal(code, 0);
    assert.deepEqual(stdout.split("\n"), [
      "NAME   RANGES                                                 IPV4 TAKEN   IPV6 TAKEN    STATE      AGE",
      "db     10.20.0.50-10.20.0.199 of 10.20.0.0/24, fd00:20::/64   3 of 139     1 of 1.8e19   open       0s",
      "lab    10.9.0.0/24                                            0 of 254     -             disabled   0s",
      "",
    ]);
  });

  it("takes a namespace in front of a name, and what the tool itself prints", async (t) => {
    const data = await folder(t);
    const named = await data.call("get", "claim", "mysql-0", "-n", "shop");
    for (const argv of [["claim", "shop/mysql-0"], ["claim/shop/mysql-0"]])
      assert.deepEqual(await data.call("get", ...argv), named);
    const pods = JSON.parse((await data.call("get", "pod/bank/web", "-o", "json")).stdout) as object;
    assert.equal(JSON.stringify(pods).includes("null"), false);
    const pool = await data.call("get", "pool", "shop/db");
    assert.deepEqual([pool.code, pool.stderr], [2, 'Error: "shop/db" is not of the form NAME\n']);
    const twice = await data.call("get", "claim", "shop/mysql-0", "-n", "bank");
    assert.equal(twice.stderr, "Error: give the namespace once: in front of the name, or with -n\n");
  });

  it("counts what a pool gives to nodes as they get it", async (t) => {
    const nodeCIDRs = { use: "PodCIDR", blockSize: { ipv4: 24, ipv6: 64 } } as const;
    const pool = poolRecord("nodes", "10.244.0.0/22", {
      nodeCIDRs,
      ranges: [{ cidr: "10.244.0.0/22" }, { cidr: "fd00:10::/48" }],
    });
    const block = { pool: "nodes", use: "PodCIDR", nodeUID: "u", holes: [], granted: true } as const;
    const cidrs = ["10.244.1.0/24", "fd00:10:0:1::/64", "fd00:10:0:2::/64"];
    const data = await Folder.of(t, { pools: [pool] });
    await withBackend(data.context(), "write", async ({ store }) => {
      for (const [n, cidr] of cidrs.entries())
        await store.create("block", { ...block, cidr, node: `node-${n}` });
    });
    const { stdout } = await data.call("get", "pools");
    assert.match(stdout, /^nodes .* {2}1 of 4 \/24 +2 of 65536 \/64 +open /m);
  });

  it("says which pools are full, what a namespace may have, and which has how much", async (t) => {
    const small = poolRecord("small", "10.8.0.0/30", { reserved: ["10.8.0.2"], limits: { perNamespace: 1 } });
    const first = claimRecord({ name: "a", addresses: addrs("10.8.0.1"), nonce: "n-a" });
    const data = await Folder.of(t, {
      pools: [DB_POOL, small],
      claims: [mysql, first],
      reservations: [...reservationsOf(mysql), ...reservationsOf(first, "small")],
    });
    const { stdout } = await data.call("get", "pools", "-o", "wide");
    const [head = "", ...rows] = stdout.trimEnd().split("\n");
    const cell = (row: string, title: string) => row.slice(head.indexOf(title)).split(/ {3,}/)[0];
    for (const [title, db, full] of [
      ["IPV4 TAKEN", "1 of 139", "1 of 2"],
      ["STATE", "open", "full"],
      ["A NAMESPACE AT MOST", "126 IPv4 1.6e19 IPv6", "1"],
      ["BY NAMESPACE", "shop: 1 IPv4 1 IPv6", "shop: 1 IPv4"],
    ] as const)
      assert.deepEqual(
        rows.map((row) => cell(row, title)),
        [db, full],
        title,
      );
  });

  it("writes a long list in parts, whose titles come once, and widens what a later part needs", async (t) => {
    const claims = Array.from({ length: 1_001 }, (_, n) => {
      const name = n === 1_000 ? "z-with-a-long-name" : `a-${n}`;
      const identity = { kind: "Pod", apiVersion: "v1", name };
      return claimRecord({ name, identity, addresses: addrs(`10.9.${n >> 8}.${n & 255}`), nonce: `n-${n}` });
    });
    const data = await Folder.of(t, { pools: [poolRecord("lab", "10.9.0.0/16")], claims });
    const { code, stdout, stderr } = await data.call("get", "claims", "-A");
    assert.deepEqual([code, stderr], [0, ""]);
    const [titles = "", ...lines] = stdout.trimEnd().split("\n");
    assert.match(titles, /^NAMESPACE +NAME +ADDRESSES/);
    assert.equal(lines.length, claims.length);
    assert.equal(new Set(lines).size, claims.length);
    const at = (line = "") => line.indexOf("10.9.");
    assert.equal(at(lines[0]), at(lines[999]));
    assert.ok(at(lines[1_000]) > at(lines[0]));
  });

  it("lists claims of one namespace, default unless told", async (t) => {
    const data = await folder(t);
    const ofShop = await data.call("get", "claims", "-n", "shop");
    assert.deepEqual(ofShop.stdout.split("\n"), [
      "NAMESPACE   NAME      ADDRESSES                 IDENTITY                       PHASE      POD       NODE     AGE",
      "shop        mysql-0   10.20.0.70, fd00:20::70   StatefulSet mysql, ordinal 0   Attached   mysql-0   node-a   0s",
      "",
    ]);
    assert.deepEqual(await data.call("get", "claims"), {
      code: 0,
      stdout: "",
      stderr: "no claims in namespace default; 2 elsewhere, see them with -A\n",
    });
    assert.equal((await data.call("get", "claims", "-A")).stdout.split("\n").length, 4);
  });

  it("lists pools whatever the namespace", async (t) => {
    const data = await folder(t);
    assert.equal(
      (await data.call("get", "pools", "-n", "shop")).stdout,
      (await data.call("get", "pools")).stdout,
    );
  });

  it("shows more with -o wide", async (t) => {
    const data = await folder(t);
    const { stdout } = await data.call("get", "claim", "mysql-0", "-n", "shop", "-o", "wide");
    const [titles = "", row = ""] = stdout.split("\n");
    assert.match(titles, /WHEN DELETED {3}WHEN SCALED {3}TTL {3}SANDBOX/);
    assert.match(row, /Release +Retain +- +sandbox-of-m eth0 +0s$/);
  });

  it("lists reservations by address, those that cool too", async (t) => {
    const data = await folder(t);
    const { stdout } = await data.call("get", "ipr");
    assert.deepEqual(stdout.split("\n"), [
      "ADDRESS       POOL   CLAIM          STATE                                AGE",
      "10.20.0.9     db     shop/mysql-0   cooling until 2026-01-01T00:00:30Z   0s",
      "10.20.0.70    db     shop/mysql-0   held                                 0s",
      "10.20.0.71    db     bank/web       held                                 0s",
      "fd00:20::70   db     shop/mysql-0   held                                 0s",
      "",
    ]);
    const ofBank = await data.call("get", "reservations", "-n", "bank");
    assert.equal(ofBank.stdout.split("\n").length, 3);
  });

  it("lists attachments, pods and workloads", async (t) => {
    const data = await folder(t);
    assert.match(
      (await data.call("get", "attachments")).stdout,
      /^shop +mysql-0 +10\.20\.0\.70 +shop\/mysql-0 +net +sandbox-of-m +eth0 +0s$/m,
    );
    assert.match(
      (await data.call("get", "pods", "-n", "bank")).stdout,
      /^bank +web +10\.20\.0\.71 +web +- +-$/m,
    );
    assert.match(
      (await data.call("get", "workloads", "-A")).stdout,
      /^shop +StatefulSet +mysql +3 +1 +berth\.dev\/ips=10\.20\.0\.70;10\.20\.0\.72 +-$/m,
    );
  });

  it("shortens a list of many addresses in its table", async (t) => {
    const list = Array.from({ length: 99 }, (_, i) => `10.20.0.${i + 50}`).join(";");
    const set = workload("Deployment", "web", { annotations: { "berth.dev/ips": list } });
    const data = await Folder.of(t, { objects: [set] });
    const { stdout } = await data.call("get", "workloads", "-A");
    assert.match(stdout, / berth\.dev\/ips=10\.20\.0\.50;[\d.;]{49}\.\.\. +-$/m);
  });

  it("lists a pod that has no claim with the addresses of its sandbox", async (t) => {
    const data = await Folder.of(t, {
      objects: [pod("plain"), pod("waits")],
      attachments: [attachment("plain", "10.20.0.90"), attachment("other", "10.20.0.91")],
    });
    const { stdout } = await data.call("get", "pods", "-n", "shop");
    assert.match(stdout, /^shop +plain +10\.20\.0\.90 +- +- +-$/m);
    assert.match(stdout, /^shop +waits +- +- +- +-$/m);
  });

  it("prints a List, and one object alone", async (t) => {
    const data = await folder(t);
    const all = JSON.parse((await data.call("get", "claims", "-A", "-o", "json")).stdout);
    assert.equal(all.kind, "List");
    assert.deepEqual(
      all.items.map((item: { metadata: { name: string } }) => item.metadata.name),
      ["web", "mysql-0"],
    );
    const one = parse((await data.call("get", "claim", "web", "-n", "bank", "-o", "yaml")).stdout);
    assert.equal(one.kind, "IPClaim");
    assert.deepEqual(one.spec.addresses, ["10.20.0.71"]);
    const none = JSON.parse((await data.call("get", "claims", "-o", "json")).stdout);
    assert.deepEqual(none.items, []);
  });

  it("prints an admitted object as it was admitted", async (t) => {
    const data = await folder(t);
    const { stdout } = await data.call("get", "workload", "mysql", "-n", "shop", "-o", "json");
    assert.equal(JSON.parse(stdout).spec.replicas, 3);
  });

  it("fails for a name that is not there", async (t) => {
    const data = await folder(t);
    assert.deepEqual(await data.call("get", "claim", "web", "-n", "shop"), {
      code: 1,
      stdout: "",
      stderr:
        "Error: there is no claim web in namespace shop; see what there is with: berthctl get claims -A\n",
    });
  });

  it("shows a pool that cannot be used, and why", async (t) => {
    const data = await Folder.of(t, {
      pools: [{ name: "bad", spec: { ranges: [{ cidr: "10.9.0.7/24" }] } }],
    });
    assert.match(
      (await data.call("get", "pools")).stdout,
      /invalid: spec\.ranges\[0\]\.cidr 10\.9\.0\.7\/24 has host bits; write 10\.9\.0\.0\/24/,
    );
  });
});
