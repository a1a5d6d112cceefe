// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  NOW,
  poolRecord,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { pod } from "../../test/support/objects.ts";
import { attachment, Folder } from "../testing/folder.ts";
import { folderOfOneClaim } from "../testing/folder-of-one-claim.ts";

describe("berthctl explain", () => {
  it("tells how it stands with a pod, a claim and an address", async (t) => {
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [claimRecord()],
      reservations: reservationsOf(claimRecord()),
      objects: [pod("mysql-0", { annotations: { "berth.dev/claim": "mysql-0" } })],
    });
    const rows = [
      "  admitted with   claim mysql-0, its addresses",
      "  claim           shop/mysql-0, Reserved, for StatefulSet mysql, ordinal 0",
      "  address         10.20.0.70, pool db, held",
      "",
    ];
    const ofPod = await data.call("explain", "pod/shop/mysql-0");
    assert.deepEqual([ofPod.code, ofPod.stderr], [0, ""]);
    assert.deepEqual(ofPod.stdout.split("\n"), [
      "pod/shop/mysql-0 has claim shop/mysql-0, and is bound to it when its sandbox starts",
      ...rows,
    ]);
    const ofClaim = await data.call("explain", "claim/mysql-0", "-n", "shop");
    assert.match(
      ofClaim.stdout,
      /^ipclaim\/shop\/mysql-0 is reserved for pod mysql-0, whose sandbox has not started\n/,
    );
    const ofAddress = await data.call("explain", "10.20.0.70");
    assert.equal(ofAddress.stdout, `10.20.0.70 is held\n${ofClaim.stdout}`);
    assert.equal((await data.call("explain", "10.20.0.99")).stdout, "10.20.0.99 is free\n  pool   db\n");
  });

  it("says until when the claim of a pod that is gone keeps its addresses", async (t) => {
    const identity = { kind: "Pod", apiVersion: "v1", name: "web" };
    const claim = claimRecord({ name: "web", identity, admittedAt: NOW });
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [claim],
      reservations: reservationsOf(claim),
    });
    assert.match(
      (await data.call("explain", "claim/shop/web")).stdout,
      /^ {2}next +Berth releases the claim within a minute after 2026-01-01T00:02:00Z, unless its pod comes$/m,
    );
  });

  it("refuses an address that is held or used in another namespace than the one that is named", async (t) => {
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [claimRecord()],
      reservations: reservationsOf(claimRecord()),
      attachments: [attachment("web", "10.20.0.80")],
    });
    for (const [address, words] of [
      ["10.20.0.70", "is held by claim shop/mysql-0"],
      ["10.20.0.80", "is in a sandbox of pod shop/web"],
    ] as const) {
      const { code, stdout, stderr } = await data.call("explain", address, "-n", "bank");
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(
        stderr,
        new RegExp(`^Error: address ${address} ${words}, which is not in namespace bank;`),
      );
      assert.match((await data.call("explain", address, "-n", "shop")).stdout, new RegExp(`^${address} is `));
    }
    assert.equal((await data.call("explain", "10.20.0.99", "-n", "bank")).code, 0);
  });

  for (const [what, podUID] of [
    ["with its UID", "uid-of-mysql-0"],
    ["whose UID the runtime did not say", ""],
  ] as const)
    it(`says of a pod ${what} and with a sandbox that is up that it has its addresses`, async (t) => {
      const claim = claimRecord({
        binding: { ...bindingTo("mysql-0", "this-host"), podUID },
        status: { attachment: { ...attachmentOf("mysql-0"), podUID } },
      });
      const data = await Folder.of(t, {
        pools: [DB_POOL],
        claims: [claim],
        reservations: reservationsOf(claim),
        // as on one host: nobody has written a node into it
        objects: [pod("mysql-0", { uid: "uid-of-mysql-0", annotations: { "berth.dev/claim": "mysql-0" } })],
      });
      const { code, stdout } = await data.call("explain", "pod", "shop/mysql-0");
      assert.equal(stdout.split("\n")[0], "pod/shop/mysql-0 has its addresses");
      assert.equal(code, 0);
    });

  for (const [what, name, claim] of [
    [
      "that its Deployment's pod has by its token",
      "c-nudvtkyqhg3n",
      claimRecord({
        name: "c-nudvtkyqhg3n",
        identity: { kind: "Deployment", apiVersion: "apps/v1", name: "c" },
        binding: bindingTo("c-5d9c7b-x", "node-a", { token: "token-of-another" }),
      }),
    ],
    [
      "that is kept for the ordinal of a StatefulSet",
      "mysql-1",
      claimRecord({
        name: "mysql-1",
        identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 1 },
        retained: { since: NOW, because: "deleted" },
      }),
    ],
  ] as const) {
    it(`does not give a pod that asked for nothing the claim of its name ${what}`, async (t) => {
      const data = await Folder.of(t, {
        pools: [DB_POOL],
        claims: [claim],
        reservations: reservationsOf(claim),
        objects: [pod(name, { uid: "uid-of-a-bare-pod" })],
      });
      const { code, stdout } = await data.call("explain", `pod/shop/${name}`);
      assert.deepEqual(
        [code, stdout.split("\n")[0]],
        [
          0,
          `pod/shop/${name} asks for no fixed address, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: make a pool with blockSize (docs/blocks.md)`,
        ],
      );
      const ofClaim = await data.call("explain", `claim/shop/${name}`);
      assert.doesNotMatch(ofClaim.stdout, /wanted by|uid-of-a-bare-pod/);
    });
  }

  it("says of a pod that asks for nothing which pool it gets an address from, and why", async (t) => {
    const cut = (name: string, n: number, spec: object) =>
      poolRecord(name, `10.${n}.0.0/24`, { blockSize: { ipv4: 26 }, ...spec });
    const shop = { matchLabels: { "kubernetes.io/metadata.name": "shop" } };
    const data = await Folder.of(t, {
      pools: [cut("web", 1, { namespaceSelector: shop }), cut("rest", 2, { default: true })],
      objects: [pod("a", { uid: "u" }), pod("dns", { uid: "u", namespace: "kube-system" })],
    });
    const from = async (name: string) => (await data.call("explain", name)).stdout.split("\n")[0];
    const tail = "from a block of its node, unless its network names pools or has ranges of its own";
    assert.equal(
      await from("pod/shop/a"),
      `pod/shop/a asks for no fixed address; it gets any of pool "web" (which selects it) ${tail}`,
    );
    assert.equal(
      await from("pod/kube-system/dns"),
      `pod/kube-system/dns asks for no fixed address; it gets any of pool "rest" (the default) ${tail}`,
    );
  });

  it("gives a pod without annotations the claim of its name that it is bound to", async (t) => {
    const claim = claimRecord({
      binding: bindingTo("mysql-0", "this-host"),
      status: { attachment: attachmentOf("mysql-0") },
    });
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [claim],
      reservations: reservationsOf(claim),
      objects: [pod("mysql-0", { uid: "uid-of-mysql-0" })],
    });
    const { stdout } = await data.call("explain", "pod/shop/mysql-0");
    assert.equal(stdout.split("\n")[0], "pod/shop/mysql-0 has its addresses");
  });

  it("leads from a pod that nobody applied to its claim", async (t) => {
    const claim = claimRecord({
      name: "db-abc",
      nonce: "n2",
      addresses: addrs("10.20.0.71"),
      binding: bindingTo("db-0", "this-host"),
    });
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [claimRecord(), claim],
      reservations: [...reservationsOf(claimRecord()), ...reservationsOf(claim)],
    });
    const list = "see what there is with: berthctl get pods -A";
    const said = async (name: string) => (await data.call("explain", `pod/shop/${name}`)).stderr;
    const own = "there is a claim of that name: berthctl explain claim/shop/mysql-0";
    assert.equal(await said("mysql-0"), `Error: there is no pod shop/mysql-0; ${list}; ${own}\n`);
    const bound = "a claim is bound to it: berthctl explain claim/shop/db-abc";
    assert.equal(await said("db-0"), `Error: there is no pod shop/db-0; ${list}; ${bound}\n`);
  });

  it("takes a MAC address, as who does", async (t) => {
    const [mac] = addrs("fe80::ff:fe00:51");
    assert.ok(mac);
    const request = { addresses: [mac], interfaces: { "mac-eth0": [mac] } };
    const claim = claimRecord({ addresses: [mac], request });
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [claim],
      reservations: reservationsOf(claim),
    });
    const { code, stdout } = await data.call("explain", "02:00:00:00:00:51");
    assert.deepEqual([code, stdout.split("\n")[0]], [0, "MAC address 02:00:00:00:00:51 is held"]);
    const released = await data.call("release", "02:00:00:00:00:51", "--dry-run");
    assert.equal(released.code, 0, released.stderr);
    assert.match(released.stdout, /^ipclaim\/shop\/mysql-0 released/);
  });

  for (const [argv, code, message] of [
    [["pod/shop/x"], 1, "there is no pod shop/x; see what there is with: berthctl get pods -A"],
    [["claim/shop/x"], 1, "there is no claim shop/x; see what there is with: berthctl get claims -A"],
    [["10.9.0.1"], 1, 'address 10.9.0.1 is in no pool; pools have: "db" 10.20.0.50-10.20.0.199'],
    [["pod/x"], 1, "there is no pod default/x; see what there is with: berthctl get pods -A"],
    [["pod", "shop/x"], 1, "there is no pod shop/x; see what there is with: berthctl get pods -A"],
    [
      ["sts/shop/x"],
      2,
      '"sts/shop/x" has pods and no address of its own: explain one of them, pod/[NAMESPACE/]NAME, or with -f FILE what its pods would get',
    ],
    [["pool/db"], 2, '"pool/db" cannot be explained; what there is of it: berthctl get pool/db -o yaml'],
    [
      ["mysql-0"],
      2,
      '"mysql-0" is neither pod/[NAMESPACE/]NAME, claim/[NAMESPACE/]NAME nor an address; did you mean pod/mysql-0 or claim/mysql-0?',
    ],
    [["pod"], 2, "say which pod: explain pod [NAMESPACE/]NAME"],
    [
      ["ipclaim.berth.dev/shop/x"],
      1,
      "there is no claim shop/x; see what there is with: berthctl get claims -A",
    ],
    [["pod", "a/b", "a/c"], 2, '"a/c" is one argument too many'],
    [[], 2, "say what to explain: pod [NAMESPACE/]NAME, claim [NAMESPACE/]NAME, an address, or -f FILE"],
  ] as const) {
    it(`answers explain ${argv.join(" ")} in a line`, async (t) => {
      const data = await folderOfOneClaim(t);
      const reported = { code, stdout: "", stderr: `Error: ${message}\n` };
      assert.deepEqual(await data.call("explain", ...argv), reported);
    });
  }
});
