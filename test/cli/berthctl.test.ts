// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { eventually } from "../support/eventually.ts";
import { claimObject, namespaceObject, pod, statefulPod, workload } from "../support/objects.ts";
import { applyAtOnce, IPS, NO_STACK, POOL, SET } from "./shop.ts";
import { berthctl, newFolder, removeFolder, Stack } from "./stack.ts";

describe("berthctl on a running stack", () => {
  let stack: Stack;

  before(async () => {
    stack = await Stack.up(await newFolder());
  });
  after(async () => {
    await stack.stop();
    await removeFolder(stack.dataDir);
  });

  it("applies what others need first, and tells the addresses", async () => {
    const service = { apiVersion: "v1", kind: "Service", metadata: { name: "mysql" } };
    const { rc, stdout, stderr } = await stack.apply(
      statefulPod("mysql", 0, IPS),
      SET,
      service,
      POOL,
      namespaceObject("shop"),
    );
    assert.deepEqual(
      { rc, stderr },
      { rc: 0, stderr: "skipped Service mysql (v1): berth has no say about it\n" },
    );
    assert.deepEqual(stdout.split("\n"), [
      "namespace/shop created",
      "ippool/db created   10.20.0.50-10.20.0.199 of 10.20.0.0/24, fd00:20::/64",
      "statefulset/shop/mysql created   mysql-0 10.20.0.51+fd00:20::51, mysql-1 10.20.0.52+fd00:20::52",
      "pod/shop/mysql-0 created   10.20.0.51, fd00:20::51",
      "",
    ]);
  });

  it("names a workload that it does not read and whose pods ask, does the others, and ends with 1", async () => {
    const daemons = workload("DaemonSet", "edge", { annotations: { "berth.dev/pools": "db" } });
    const { rc, stdout, stderr } = await stack.apply(daemons, namespaceObject("shop"));
    assert.deepEqual([rc, stdout], [1, "namespace/shop unchanged\n"]);
    assert.match(
      stderr,
      /^Error: DaemonSet edge \(apps\/v1\): berth\.dev\/pools in its template asks for nothing on one host/,
    );
  });

  it("changes nothing when the same is applied again", async () => {
    const { rc, stdout } = await stack.apply(
      namespaceObject("shop"),
      POOL,
      SET,
      statefulPod("mysql", 0, IPS),
    );
    assert.equal(rc, 0);
    assert.deepEqual(
      stdout.split("\n").map((line) => line.split(" ").slice(0, 2).join(" ")),
      [
        "namespace/shop unchanged",
        "ippool/db unchanged",
        "statefulset/shop/mysql unchanged",
        "pod/shop/mysql-0 unchanged",
        "",
      ],
    );
  });

  it("refuses one object and goes on with the others", async () => {
    const taken = pod("thief", { annotations: { "berth.dev/ips": "10.20.0.51" } });
    const { rc, stdout, stderr } = await stack.apply(
      taken,
      pod("", { generateName: "web-", annotations: { "berth.dev/ips": "10.20.0.60" } }),
    );
    assert.equal(rc, 1);
    assert.match(stdout, /^pod\/shop\/web-[bcdfghjklmnpqrstvwxz2456789]{5} created {3}10\.20\.0\.60\n$/);
    assert.match(
      stderr,
      /^Error: pod\/shop\/thief: address 10\.20\.0\.51 in pool "db" is held by shop\/mysql-0 \(StatefulSet mysql, ordinal 0\)/,
    );
    assert.equal(stderr.split("\n").length, 2);
  });

  it("tells the list of a Deployment, of which nothing is reserved before a pod comes", async () => {
    for (const [annotation, told] of [
      [
        "10.20.0.151/fd00:20::151;10.20.0.152/fd00:20::152",
        "10.20.0.151+fd00:20::151, 10.20.0.152+fd00:20::152: one for each pod",
      ],
      ["10.20.0.150", "10.20.0.150: for one pod"],
      [
        "10.20.0.151-10.20.0.160",
        `${[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `10.20.0.15${n}`).join(", ")}, and 2 more: one for each pod`,
      ],
    ] as const) {
      const listed = workload("Deployment", "listed", {
        replicas: 1,
        annotations: { "berth.dev/ips": annotation },
        spec: { strategy: { type: "Recreate" } },
      });
      const { stdout } = await stack.apply(listed);
      assert.equal(stdout, `deployment/shop/listed created   ${told}\n`);
      assert.equal((await stack.call("delete", "deployment/shop/listed")).rc, 0);
    }
  });

  it("tells no list of a Deployment whose pods get no address", async () => {
    const annotations = { "berth.dev/ips": "10.20.0.150" };
    const listed = workload("Deployment", "listed", { annotations, namespace: "kube-system" });
    const { stdout, stderr } = await stack.apply(namespaceObject("kube-system"), listed);
    assert.equal(stdout, "namespace/kube-system created\ndeployment/kube-system/listed created\n");
    assert.match(stderr, /^Warning: berth\.dev\/ips asks for nothing in kube-system: /);
  });

  it("passes warnings on", async () => {
    const misplaced = workload("Deployment", "web", { own: { "berth.dev/ips": "10.20.0.70" } });
    const { rc, stdout, stderr } = await stack.apply(misplaced);
    assert.deepEqual({ rc, stdout }, { rc: 0, stdout: "deployment/shop/web created\n" });
    assert.match(stderr, /^Warning: annotation berth\.dev\/ips on the Deployment itself has no effect/);
  });

  it("writes nothing on a dry run", async () => {
    const dry = pod("dry", { annotations: { "berth.dev/ips": "10.20.0.77" } });
    assert.deepEqual(await berthctl(stack.dataDir, ["apply", "--dry-run", "-f", "-"], JSON.stringify(dry)), {
      rc: 0,
      signal: null,
      stdout: "pod/shop/dry created (dry run)\n  this pod would get 10.20.0.77 from pool db\n",
      stderr: "",
    });
    assert.match((await stack.call("who", "10.20.0.77")).stdout, /^10\.20\.0\.77 is free\n/);
    assert.equal((await stack.call("get", "pod", "dry", "-n", "shop")).rc, 1);
  });

  it("warns on a dry run of what the pod asks of other systems, as apply does", async () => {
    const annotations = {
      "berth.dev/ips": "10.20.0.77",
      "cni.projectcalico.org/allowedSourcePrefixes": '["10.0.0.0/8"]',
    };
    const text = JSON.stringify(pod("foreign", { annotations }));
    const { rc, stdout, stderr } = await berthctl(stack.dataDir, ["apply", "--dry-run", "-f", "-"], text);
    assert.equal(rc, 0, stderr);
    assert.match(
      stdout,
      /^ {2}this pod would get 10\.20\.0\.77 from pool db\n {2}.*cni\.projectcalico\.org\/allowedSourcePrefixes/m,
    );
  });

  it("refuses on a dry run what an object before it in the file would get", async () => {
    const [one, two] = ["one", "two"].map((name) =>
      pod(name, { annotations: { "berth.dev/ips": "10.20.0.78" } }),
    );
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: [one, two] });
    assert.deepEqual(await berthctl(stack.dataDir, ["apply", "--dry-run", "-f", "-"], list), {
      rc: 1,
      signal: null,
      stdout: "pod/shop/one created (dry run)\n  this pod would get 10.20.0.78 from pool db\n",
      stderr:
        'Error: pod/shop/two: address 10.20.0.78 in pool "db" is asked for twice, by shop/one and by shop/two; give one of them another\n',
    });
  });

  it("counts on a dry run the pools of the same files, as explain does", async () => {
    const fresh = {
      apiVersion: "berth.dev/v1alpha1",
      kind: "IPPool",
      metadata: { name: "fresh" },
      spec: { ranges: [{ cidr: "10.77.0.0/24" }] },
    };
    const its = pod("its", { annotations: { "berth.dev/ips": "10.77.0.7" } });
    const set = workload("StatefulSet", "its-set", {
      replicas: 2,
      annotations: { "berth.dev/ips": "10.77.0.8;10.77.0.9" },
    });
    const items = [fresh, its, set, pod("beside", { annotations: { "berth.dev/ips": "10.78.0.7" } })];
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
    assert.deepEqual(await berthctl(stack.dataDir, ["apply", "--dry-run", "-f", "-"], list), {
      rc: 1,
      signal: null,
      stdout: [
        "ippool/fresh created (dry run)",
        "statefulset/shop/its-set created (dry run)",
        "  pod/shop/its-set-0 would get 10.77.0.8 from pool fresh, with the pools of these files",
        "  pod/shop/its-set-1 would get 10.77.0.9 from pool fresh, with the pools of these files",
        "pod/shop/its created (dry run)",
        "  pod/shop/its would get 10.77.0.7 from pool fresh, with the pools of these files",
        "",
      ].join("\n"),
      stderr:
        'Error: pod/shop/beside: address 10.78.0.7 is in no pool; name one of a pool: "db" 10.20.0.50-10.20.0.199, "fresh" 10.77.0.1-10.77.0.254\n',
    });
    const explained = await berthctl(stack.dataDir, ["explain", "-f", "-"], list);
    assert.deepEqual(
      [
        explained.rc,
        /^pod\/shop\/its +10\.77\.0\.7 +pool fresh: asked for by address$/m.test(explained.stdout),
      ],
      [1, true],
    );
  });

  it("explains what pods would get", async () => {
    const text = JSON.stringify(
      workload("StatefulSet", "kafka", { replicas: 1, annotations: { "berth.dev/ips": "10.20.0.52" } }),
    );
    const { rc, stdout } = await berthctl(stack.dataDir, ["explain", "-f", "-"], text);
    assert.equal(rc, 1);
    assert.match(
      stdout,
      /^pod\/shop\/kafka-0 {3}refused {3}address 10\.20\.0\.52 in pool "db" is held by shop\/mysql-1/,
    );
  });

  it("reserves by hand, for the pod that comes later", async () => {
    const made = await stack.call("reserve", "shop/vip", "--address", "10.20.0.80,fd00:20::80");
    assert.deepEqual([made.rc, made.stdout], [0, "ipclaim/shop/vip created   10.20.0.80, fd00:20::80\n"]);
    const again = await stack.call("reserve", "shop/vip", "--address", "10.20.0.80,fd00:20::80");
    assert.deepEqual([again.rc, again.stdout], [0, "ipclaim/shop/vip unchanged   10.20.0.80, fd00:20::80\n"]);
    const other = await stack.call("reserve", "shop/vip", "--address", "10.20.0.81");
    assert.equal(
      other.stderr,
      "Error: ipclaim/shop/vip: it exists already and holds 10.20.0.80, fd00:20::80; release it first with: berthctl release shop/vip\n",
    );
    assert.equal((await stack.apply(pod("vip"))).stdout, "pod/shop/vip created   10.20.0.80, fd00:20::80\n");
    const any = await stack.call("reserve", "shop/any", "--pool", "db");
    assert.match(any.stdout, /^ipclaim\/shop\/any created {3}10\.20\.0\.\d+, fd00:20::[0-9a-f]+\n$/);
  });

  it("sees a sandbox come and go, and lets its address go only then", async () => {
    const added = await stack.cni("ADD", "mysql-0");
    assert.equal(added.rc, 0, added.stdout);
    assert.deepEqual(
      JSON.parse(added.stdout).ips.map((ip: { address: string }) => ip.address),
      ["10.20.0.51/24", "fd00:20::51/64"],
    );
    assert.match(
      (await stack.call("get", "attachments", "-n", "shop")).stdout,
      /^shop +mysql-0 +10\.20\.0\.51, fd00:20::51 +shop\/mysql-0 +net +sandbox-of-m +eth0 /m,
    );
    const found = JSON.parse((await stack.call("who", "10.20.0.51", "-o", "json")).stdout);
    assert.equal(found.phase, "Attached");
    assert.equal(found.node, "node-a");
    assert.equal(found.sandboxes[0].containerID, "sandbox-of-mysql-0");
    assert.match(
      (await stack.call("check")).stdout,
      /^ok: 1 pool, 5 claims, 9 reservations, 1 attachment\n$/,
    );
    const refused = await stack.call("release", "10.20.0.51");
    assert.equal(refused.rc, 1);
    assert.match(refused.stderr, /^Error: claim shop\/mysql-0 .* is bound to pod mysql-0 on node node-a/);
    assert.equal((await stack.cni("DEL", "mysql-0")).rc, 0);
    assert.equal((await stack.call("get", "attachments")).stderr, "no attachments\n");
    await eventually("the claim hears of it", async () => {
      const { phase } = JSON.parse((await stack.call("who", "10.20.0.51", "-o", "json")).stdout);
      return phase === "Detached" ? true : undefined;
    });
  });

  it("releases behind the running stack's back, which knows at once", async () => {
    const refused = await stack.call("release", "shop/mysql-0");
    assert.equal(refused.rc, 1);
    assert.match(
      refused.stderr,
      /is kept for pod mysql-0, which is there and asks for it: it could not start/,
    );
    const { rc, stdout, stderr } = await stack.call("release", "shop/mysql-0", "--force");
    assert.equal(rc, 0, stderr);
    assert.match(
      stdout,
      /^ipclaim\/shop\/mysql-0 released\n {2}10\.20\.0\.51 is free for others in 3600 s, at /,
    );
    assert.equal(
      stderr,
      "Warning: pod shop/mysql-0 was admitted with this claim and cannot start without it; create it anew\n" +
        "Warning: StatefulSet shop/mysql still has ordinal 0: nothing is kept for its pod mysql-0 any more, which asks anew when it is created; to free the addresses for others, scale it down or change its list first\n",
    );
    const thief = await stack.apply(pod("thief", { annotations: { "berth.dev/ips": "10.20.0.51" } }));
    assert.match(
      thief.stderr,
      /10\.20\.0\.51 in pool "db" was given back by shop\/mysql-0 and is cooling down/,
    );
  });

  it("deletes by name and by file, and keeps what is in use", async () => {
    const used = await stack.call("delete", "ippool/db", "namespace/shop");
    assert.equal(used.rc, 1);
    assert.match(used.stderr, /^Error: ippool\/db: pool db is in use: it still holds /);
    assert.match(used.stderr, /^Error: namespace\/shop: \d+ objects are still in it, /m);
    const list = JSON.stringify({
      apiVersion: "v1",
      kind: "List",
      items: [SET, statefulPod("mysql", 0, IPS)],
    });
    const deleted = await berthctl(stack.dataDir, ["delete", "-f", "-"], list);
    assert.deepEqual(
      [deleted.rc, deleted.stdout],
      [0, "pod/shop/mysql-0 deleted\nstatefulset/shop/mysql deleted\n"],
    );
    const twice = await stack.call("delete", "pod/shop/mysql-0");
    assert.deepEqual(
      [twice.rc, twice.stderr],
      [1, "Error: pod/shop/mysql-0: there is none; see what there is with: berthctl get pods -A\n"],
    );
    assert.equal((await stack.apply(claimObject("any2", { request: { pools: ["db"] } }))).rc, 0);
    assert.equal((await stack.call("delete", "claim/shop/any2")).stdout, "ipclaim/shop/any2 deleted\n");
  });

  it("is one stack to a folder", async () => {
    const { rc, stdout, stderr } = await stack.call("up");
    assert.deepEqual({ rc, stdout }, { rc: 2, stdout: "" });
    assert.match(stderr, /^Error: a berth stack \(pid \d+\) runs on .* already; stop it first, /);
  });

  it("stops cleanly, having said one word", async () => {
    const { rc, signal, stdout, stderr } = await stack.stop();
    assert.deepEqual({ rc, signal, stdout }, { rc: 0, signal: null, stdout: "ready\n" });
    for (const line of stderr.split("\n").filter((text) => text !== "")) {
      assert.doesNotMatch(JSON.parse(line).level, /error/, line);
    }
    const left = ["agent.sock.journal", "berth.db", "run", "stack.lock", "tls"];
    assert.deepEqual((await readdir(stack.dataDir)).sort(), left);
  });

  it("can be read and repaired when it is down, and not written", async () => {
    assert.equal((await stack.call("get", "claims", "-n", "shop")).rc, 0);
    assert.match((await stack.call("who", "10.20.0.80")).stdout, /^10\.20\.0\.80 is held\n/);
    assert.match((await stack.call("check")).stdout, /^ok: /m);
    assert.equal((await stack.call("release", "shop/vip")).rc, 0);
    assert.match((await stack.call("who", "10.20.0.80")).stdout, /^10\.20\.0\.80 was given back/);
    const refused = await applyAtOnce(stack.dataDir, pod("late"));
    assert.deepEqual([refused.rc, refused.stderr], [2, NO_STACK(stack.dataDir)]);
  });
});
