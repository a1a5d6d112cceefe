// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { claimRecord, DB_POOL, NOW, reservationRecord, reservationsOf } from "../../test/support/fixtures.ts";
import { attachment, Folder } from "../testing/folder.ts";

const claim = claimRecord();

describe("berthctl check", () => {
  it("counts what is sound", async (t) => {
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [claim],
      reservations: reservationsOf(claim),
      attachments: [attachment("mysql-0", "10.20.0.70", "shop/mysql-0")],
    });
    assert.deepEqual(await data.call("check"), {
      code: 0,
      stdout: "ok: 1 pool, 1 claim, 1 reservation, 1 attachment\n",
      stderr: "",
    });
    assert.equal(data.clock.now(), NOW, "nothing was looked at twice");
  });

  it("lists what is under way, and does not fail for it", async (t) => {
    const data = await Folder.of(t, { pools: [DB_POOL], reservations: [reservationRecord("10.20.0.70")] });
    assert.deepEqual(await data.call("check"), {
      code: 0,
      stdout:
        "pending   orphan   address 10.20.0.70 is reserved for shop/mysql-0, which does not rely on it\n" +
        "-> pending: an act is under way, or broke off, and Berth ends it within two minutes; what is still there then: berthctl explain of the claim or address, and the log of berthctl up\n" +
        "ok: 1 pool, 0 claims, 1 reservation, 0 attachments\n",
      stderr: "",
    });
  });

  it("fails for a journal that another one has served after", async (t) => {
    const data = await Folder.of(t, { pools: [DB_POOL] });
    const bootId = (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
    const path = join(data.dataDir, "agent.sock.journal");
    const mark = (boot: string) => writeFile(path, JSON.stringify({ bootId: boot, journal: "another" }));
    await mark(bootId);
    const { code, stdout } = await data.call("check");
    assert.equal(code, 1);
    assert.ok(stdout.startsWith("defect   journal-refused   the journal "), stdout);
    assert.match(stdout, /is not the one that has served this node since it booted: .*"berthctl adopt"/);
    await mark("an-earlier-boot");
    assert.equal((await data.call("check")).code, 0, "the sandboxes of an earlier boot are gone");
    await mark(bootId);
    const stack = { pid: process.pid, webhook: "https://127.0.0.1:1", ca: "ca", socket: "/none/agent.sock" };
    await writeFile(join(data.dataDir, "stack.json"), JSON.stringify(stack));
    assert.equal((await data.call("check")).code, 0, "its stack had its socket elsewhere");
  });

  it("fails for defects that stay", async (t) => {
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [claim],
      attachments: [attachment("web", "10.20.0.71", "shop/web")],
    });
    const { code, stdout } = await data.call("check");
    assert.equal(code, 1);
    assert.deepEqual(stdout.split("\n"), [
      "defect   unreserved      claim shop/mysql-0 lists 10.20.0.70, which is not reserved for it",
      "defect   unclaimed-use   address 10.20.0.71 is used by sandbox-of-web eth0 on this node, and claim shop/web does not have it",
      "-> unreserved: Berth reserves it again within two minutes, unless another has it by now: then end the claim's pod, and the next one has an address reserved anew",
      "-> unclaimed-use: another pod may be given the address: end the pod that has it (berthctl who ADDRESS says which)",
      "2 defects: 1 pool, 1 claim, 0 reservations, 1 attachment",
      "",
    ]);
    const { stdout: json } = await data.call("check", "-o", "json");
    const { ok, claims, findings } = JSON.parse(json);
    assert.deepEqual(
      { ok, claims, kinds: findings.map((f: { kind: string }) => f.kind) },
      {
        ok: false,
        claims: 1,
        kinds: ["unreserved", "unclaimed-use"],
      },
    );
  });

  it("names an address that a claim has and a sandbox, of its network's own ranges", async (t) => {
    const contents = (pool: object) => ({
      pools: [pool as typeof DB_POOL],
      claims: [claim],
      reservations: reservationsOf(claim),
      attachments: [attachment("web", "10.20.0.70")],
    });
    const data = await Folder.of(t, contents(DB_POOL));
    const { code, stdout } = await data.call("check");
    assert.equal(code, 1);
    assert.equal(
      stdout.split("\n")[0],
      "defect   double-use   address 10.20.0.70 is used by sandbox-of-web eth0 on this node, which has it of the configuration of network net, and claim shop/mysql-0 has it of pool db",
    );
    const other = await Folder.of(
      t,
      contents({ ...DB_POOL, spec: { ...DB_POOL.spec, networks: ["another"] } }),
    );
    assert.equal((await other.call("check")).code, 0);
  });

  it("names pods that ask where Berth does not look", async (t) => {
    const annotations = { "berth.dev/ips": "10.20.0.70" };
    const metadata = (namespace: string, name: string) => ({ namespace, name, uid: name, annotations });
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      objects: [
        { kind: "Pod", metadata: metadata("shop", "probe"), spec: { hostNetwork: true } },
        { kind: "Pod", metadata: metadata("kube-system", "dns"), spec: {} },
      ],
    });
    const { code, stdout } = await data.call("check");
    assert.deepEqual(
      [code, stdout.split("\n").sort()],
      [
        0,
        [
          "",
          "ok, but 2 pods ask in vain: 1 pool, 0 claims, 0 reservations, 0 attachments",
          "pending   asks-in-vain   pod kube-system/dns: berth.dev/ips asks for nothing in kube-system: berth reserves no address for its pods; use another namespace",
          "pending   asks-in-vain   pod shop/probe: berth.dev/ips asks for nothing beside hostNetwork: such a pod has the addresses of its node; take one of the two away",
        ],
      ],
    );
    const { stdout: reported } = await data.call("explain", "pod/shop/probe");
    assert.match(
      reported,
      /on its host's network, or a mirror pod; berth\.dev\/ips asks for nothing beside hostNetwork/,
    );
  });

  it("judges nothing when a pool cannot be used", async (t) => {
    const data = await Folder.of(t, { pools: [{ name: "bad", spec: { ranges: [] } }] });
    assert.deepEqual(await data.call("check"), {
      code: 2,
      stdout: "",
      stderr:
        "Error: pool bad cannot be used: spec.ranges is empty; give at least one range; apply it anew\n",
    });
  });
});
