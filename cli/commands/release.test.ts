// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  reservationRecord,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { pod, workload } from "../../test/support/objects.ts";
import { attachment, type Contents, Folder } from "../testing/folder.ts";

const claim = claimRecord({ addresses: addrs("10.20.0.70", "fd00:20::70") });

function folder(t: TestContext, over: Contents = {}): Promise<Folder> {
  return Folder.of(t, { pools: [DB_POOL], claims: [claim], reservations: reservationsOf(claim), ...over });
}

async function state(data: Folder, address: string): Promise<string> {
  return JSON.parse((await data.call("who", address, "-o", "json")).stdout).state;
}

async function holder(data: Folder, address: string): Promise<string> {
  const { claim: by } = JSON.parse((await data.call("who", address, "-o", "json")).stdout);
  return typeof by === "string" ? by : `${by.namespace}/${by.name}`;
}

const RECEIPT =
  "ipclaim/shop/mysql-0 released\n" +
  "  10.20.0.70 is free for others in 30 s, at 2026-01-01T00:00:30Z\n" +
  "  fd00:20::70 is free for others in 30 s, at 2026-01-01T00:00:30Z\n";

const WANTED =
  "Warning: StatefulSet shop/mysql still has ordinal 0: nothing is kept for its pod mysql-0 any more, which asks anew when it is created; to free the addresses for others, scale it down or change its list first\n";

describe("berthctl release", () => {
  for (const operand of ["shop/mysql-0", "10.20.0.70", "fd00:20::0:70"]) {
    it(`lets ${operand} go, whole, and says when others may have it`, async (t) => {
      const data = await folder(t);
      assert.deepEqual(await data.call("release", operand), { code: 0, stdout: RECEIPT, stderr: "" });
      assert.equal(await state(data, "10.20.0.70"), "cooling");
      assert.equal(await state(data, "fd00:20::70"), "cooling");
      assert.equal((await data.call("get", "claims", "-A")).stderr, "no claims\n");
    });
  }

  for (const more of [[], ["--to", "other"]]) {
    it(`refuses an address that another namespace's claim holds: ${["-n", "bank", ...more].join(" ")}`, async (t) => {
      const data = await folder(t);
      assert.deepEqual(await data.call("release", "10.20.0.70", "-n", "bank", ...more), {
        code: 1,
        stdout: "",
        stderr:
          "Error: address 10.20.0.70 is held by claim shop/mysql-0, which is not in namespace bank; leave -n out if you mean that claim\n",
      });
      assert.equal(await state(data, "10.20.0.70"), "held");
      assert.equal((await data.call("release", "10.20.0.70", "-n", "shop", "--dry-run")).code, 0);
    });
  }

  for (const name of ["02-00-00-00-00-51", "0200.0000.0051"]) {
    it(`lets the claim called ${name} go, and not who has the MAC address that it looks like`, async (t) => {
      const [mac] = addrs("fe80::ff:fe00:51");
      assert.ok(mac);
      const named = claimRecord({ namespace: "default", name, addresses: addrs("10.20.0.70") });
      const request = { addresses: [mac], interfaces: { "mac-eth0": [mac] } };
      const other = claimRecord({ name: "other", nonce: "n2", addresses: [mac], request });
      const data = await Folder.of(t, {
        pools: [DB_POOL],
        claims: [named, other],
        reservations: [...reservationsOf(named), ...reservationsOf(other)],
      });
      const { stdout } = await data.call("release", name);
      assert.match(stdout, new RegExp(`^ipclaim/default/${name} released\n`));
      assert.equal((await data.call("release", "02:00:00:00:00:51", "--dry-run")).code, 0);
    });
  }

  it("refuses while the claim is bound", async (t) => {
    const bound = { ...claim, binding: bindingTo("mysql-0", "node-a") };
    const data = await folder(t, { claims: [bound] });
    assert.deepEqual(await data.call("release", "shop/mysql-0"), {
      code: 1,
      stdout: "",
      stderr:
        "Error: claim shop/mysql-0 (10.20.0.70, fd00:20::70) is bound to pod mysql-0 on node node-a, whose sandbox may be alive; " +
        "delete the pod first, or use --force if you know that its sandbox is gone\n",
    });
    assert.equal(await state(data, "10.20.0.70"), "held");
    assert.deepEqual(await data.call("release", "shop/mysql-0", "--force"), {
      code: 0,
      stdout: RECEIPT,
      stderr: "",
    });
  });

  it("refuses while the journal has a sandbox, whatever the claim says", async (t) => {
    const data = await folder(t, { attachments: [attachment("mysql-0", "10.20.0.70", "shop/mysql-0")] });
    const { code, stderr } = await data.call("release", "shop/mysql-0");
    assert.equal(code, 1);
    assert.match(stderr, /^Error: claim shop\/mysql-0 \(.*\) is bound to pod mysql-0 on node this one/);
  });

  it("lets go a bound claim whose sandbox was seen to end", async (t) => {
    const ended = {
      ...claim,
      binding: bindingTo("mysql-0", "node-a"),
      status: { phase: "Detached", attachment: attachmentOf("mysql-0", { detached: true }) },
    } as const;
    const data = await folder(t, { claims: [ended] });
    assert.equal((await data.call("release", "shop/mysql-0")).code, 0);
  });

  it("warns of a pod that was admitted with the claim", async (t) => {
    const admitted = pod("mysql-0", { annotations: { "berth.dev/claim": "mysql-0" } });
    const data = await folder(t, { objects: [admitted] });
    const { code, stderr } = await data.call("release", "shop/mysql-0");
    assert.equal(code, 0);
    assert.equal(
      stderr,
      "Warning: pod shop/mysql-0 was admitted with this claim and cannot start without it; create it anew\n",
    );
  });

  it("refuses while a pod is there that asks for the claim, unless it is forced", async (t) => {
    const asks = { "berth.dev/claim": "mysql-0", "berth.dev/ips": "10.20.0.70/fd00:20::70" };
    const data = await folder(t, { objects: [pod("mysql-0", { annotations: asks })] });
    assert.deepEqual(await data.call("release", "shop/mysql-0"), {
      code: 1,
      stdout: "",
      stderr:
        "Error: claim shop/mysql-0 (10.20.0.70, fd00:20::70) is kept for pod mysql-0, which is there and asks for it: it could not start without it; " +
        "delete the pod first with: berthctl delete pod/shop/mysql-0, or use --force\n",
    });
    assert.equal(await state(data, "10.20.0.70"), "held");
    assert.equal((await data.call("release", "shop/mysql-0", "--force")).code, 0);
    assert.equal(await state(data, "10.20.0.70"), "cooling");
  });

  it("keeps the claim of a pod of its name that asks, and that no review saw", async (t) => {
    const asks = { "berth.dev/pools": "db" };
    const data = await folder(t, { objects: [pod("mysql-0", { uid: "u2", annotations: asks })] });
    const { code, stderr } = await data.call("release", "shop/mysql-0");
    assert.equal(code, 1);
    assert.match(
      stderr,
      / is kept for pod mysql-0, which is there, asks for it and was not reviewed: nobody would make it again; delete the pod first, or use --force\n$/,
    );
    assert.equal(await state(data, "10.20.0.70"), "held");
    assert.equal((await data.call("release", "shop/mysql-0", "--force")).code, 0);
  });

  for (const [what, replicas, reported] of [
    ["still has", 1, WANTED],
    ["has no more", 0, ""],
  ] as const) {
    it(`says what becomes of an ordinal that its StatefulSet ${what}`, async (t) => {
      const set = workload("StatefulSet", "mysql", { replicas, annotations: { "berth.dev/sticky": "true" } });
      const data = await folder(t, { objects: [set] });
      const tried = await data.call("release", "shop/mysql-0", "--dry-run");
      assert.deepEqual([tried.code, tried.stderr], [0, reported]);
      assert.equal((await data.call("release", "shop/mysql-0")).stderr, reported);
    });
  }

  it("changes nothing on a dry run, and refuses what it would refuse", async (t) => {
    const data = await folder(t);
    assert.deepEqual(await data.call("release", "shop/mysql-0", "--dry-run"), {
      code: 0,
      stdout: RECEIPT.replace("released", "released (dry run)"),
      stderr: "",
    });
    assert.equal(await state(data, "10.20.0.70"), "held");
    const bound = await folder(t, { claims: [{ ...claim, binding: bindingTo("mysql-0", "node-a") }] });
    assert.equal((await bound.call("release", "shop/mysql-0", "--dry-run")).code, 1);
  });

  for (const [operand, message] of [
    ["shop/nope", "there is no claim shop/nope; see what there is with: berthctl get claims -A"],
    ["10.20.0.99", 'address 10.20.0.99 in pool "db" is held by nobody'],
    ["10.9.0.1", 'address 10.9.0.1 is in no pool; pools have: "db" 10.20.0.50-10.20.0.199'],
    ["10.20.0.80", "there is no claim shop/x; see what there is with: berthctl get claims -A"],
    [
      "10.20.0.81",
      "address 10.20.0.81 was given back by shop/mysql-0 already and is free for others at 2026-01-01T00:00:30Z",
    ],
    [
      "pod/mysql-0",
      "there is no claim pod/mysql-0; name the claim without its kind, as NAMESPACE/NAME or NAME -n NAMESPACE; which one a pod has: berthctl explain pod/mysql-0",
    ],
    [
      "ipclaim/mysql-0",
      "there is no claim ipclaim/mysql-0; name the claim without its kind, as NAMESPACE/NAME or NAME -n NAMESPACE",
    ],
    ["mysql-0", "there is no claim default/mysql-0; see what there is with: berthctl get claims -A"],
    ["a/b/c", '"a/b/c" is not of the form [NAMESPACE/]NAME'],
    [
      "ipclaim/shop/mysql-0",
      '"ipclaim/shop/mysql-0" is not of the form [NAMESPACE/]NAME: name the claim without its kind, as NAMESPACE/NAME or NAME -n NAMESPACE',
    ],
  ] as const) {
    it(`has nothing to let go for ${operand}`, async (t) => {
      const data = await folder(t, {
        reservations: [
          ...reservationsOf(claim),
          reservationRecord("10.20.0.80", { nonce: "lost", claim: { namespace: "shop", name: "x" } }),
          reservationRecord("10.20.0.81", { releasedAt: Date.UTC(2026, 0, 1) }),
        ],
      });
      assert.deepEqual(await data.call("release", operand), {
        code: operand.split("/").length > 2 ? 2 : 1,
        stdout: "",
        stderr: `Error: ${message}\n`,
      });
    });
  }

  describe("--to", () => {
    it("hands all addresses to a new claim, which has them at once", async (t) => {
      const data = await folder(t);
      assert.deepEqual(await data.call("release", "shop/mysql-0", "--to", "mysql-new"), {
        code: 0,
        stdout: "ipclaim/shop/mysql-0 released\nipclaim/shop/mysql-new created   10.20.0.70, fd00:20::70\n",
        stderr: "",
      });
      assert.equal(await state(data, "10.20.0.70"), "held");
      assert.equal(await holder(data, "fd00:20::70"), "shop/mysql-new");
      assert.equal((await data.call("check")).code, 0);
      assert.equal((await data.call("release", "10.20.0.70", "--to", "shop/third")).code, 0);
      assert.equal(await holder(data, "10.20.0.70"), "shop/third");
    });

    it("changes nothing on a dry run, and refuses what it would refuse", async (t) => {
      const data = await folder(t);
      const { code, stdout } = await data.call("release", "shop/mysql-0", "--to", "new", "--dry-run");
      assert.deepEqual(
        [code, stdout],
        [
          0,
          "ipclaim/shop/mysql-0 released (dry run)\nipclaim/shop/new created (dry run)   10.20.0.70, fd00:20::70\n",
        ],
      );
      assert.equal(await holder(data, "10.20.0.70"), "shop/mysql-0");
      assert.doesNotMatch((await data.call("get", "claims", "-A")).stdout, /new/);
      const closed = {
        ...DB_POOL,
        spec: { ...DB_POOL.spec, namespaceSelector: { matchLabels: { a: "b" } } },
      };
      const shut = await folder(t, { pools: [closed] });
      assert.equal((await shut.call("release", "shop/mysql-0", "--to", "new", "--dry-run")).code, 1);
    });

    it("tells a pod of the old claim who has its addresses now", async (t) => {
      const admitted = pod("mysql-0", { annotations: { "berth.dev/claim": "mysql-0" } });
      const data = await folder(t, { objects: [admitted] });
      assert.equal(
        (await data.call("release", "shop/mysql-0", "--to", "mysql-new")).stderr,
        "Warning: pod shop/mysql-0 was admitted with this claim and cannot start without it; its addresses are shop/mysql-new's now: delete it, or create it anew with other addresses\n",
      );
    });

    it("does so for a namespace that has all the addresses that it may have", async (t) => {
      const full = { ...DB_POOL, spec: { ...DB_POOL.spec, limits: { perNamespace: 2 } } };
      const data = await folder(t, { pools: [full] });
      assert.equal((await data.call("release", "shop/mysql-0", "--to", "mysql-new")).code, 0);
      assert.equal(await holder(data, "10.20.0.70"), "shop/mysql-new");
    });

    it("refuses what release refuses, and leaves everything as it is", async (t) => {
      const bound = { ...claim, binding: bindingTo("mysql-0", "node-a") };
      const data = await folder(t, { claims: [bound] });
      const { code, stderr } = await data.call("release", "shop/mysql-0", "--to", "mysql-new");
      assert.equal(code, 1);
      assert.match(stderr, /^Error: claim shop\/mysql-0 \(.*\) is bound to pod mysql-0 on node node-a/);
      assert.equal(await holder(data, "10.20.0.70"), "shop/mysql-0");
      assert.doesNotMatch((await data.call("get", "claims", "-A")).stdout, /mysql-new/);
      assert.equal((await data.call("release", "shop/mysql-0", "--to", "mysql-new", "--force")).code, 0);
    });

    it("refuses a successor that the pool is not open to", async (t) => {
      const closed = {
        ...DB_POOL,
        spec: { ...DB_POOL.spec, namespaceSelector: { matchLabels: { team: "bank" } } },
      };
      const data = await folder(t, { pools: [closed] });
      const { code, stderr } = await data.call("release", "shop/mysql-0", "--to", "mysql-new");
      assert.equal(code, 1);
      assert.match(stderr, /^Error: pool "db" /);
      assert.equal(await holder(data, "10.20.0.70"), "shop/mysql-0");
    });

    for (const [to, code, message] of [
      [
        "bank/other",
        1,
        "claim shop/mysql-0 can only be handed over within its namespace; to let bank have its addresses, release it, then: berthctl reserve bank/other --address 10.20.0.70,fd00:20::70",
      ],
      ["mysql-0", 2, "--to mysql-0 is the claim itself; name a new one"],
      ["taken", 1, "claim shop/taken exists already and holds 10.20.0.90; name a claim that does not exist"],
      ["a/b/c", 2, '--to: "a/b/c" is not of the form [NAMESPACE/]NAME'],
    ] as const) {
      it(`does not hand over to ${to}`, async (t) => {
        const taken = claimRecord({ name: "taken", nonce: "n2", addresses: addrs("10.20.0.90") });
        const data = await folder(t, {
          claims: [claim, taken],
          reservations: [...reservationsOf(claim), ...reservationsOf(taken)],
        });
        const called = await data.call("release", "shop/mysql-0", "--to", to);
        assert.deepEqual(called, { code, stdout: "", stderr: `Error: ${message}\n` });
        assert.equal(await holder(data, "10.20.0.70"), "shop/mysql-0");
      });
    }
  });
});
