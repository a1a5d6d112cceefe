// SPDX-License-Identifier: Apache-2.0
// A container whose network namespace a process names, which ends without a DEL, and whose claim somebody releases by force.
import assert from "node:assert/strict";
import { readlink } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { skipWithoutNetwork } from "../support/netns.ts";
import { start } from "../support/process.ts";
import { failureOf, type NetworkConfig } from "../support/runtime.ts";
import { berthctl, HostProcess, listed } from "./host-process.ts";
import { type Members, startMembers } from "./members.ts";

const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";
const withNetwork = await skipWithoutNetwork();

if (havePartsOrSkip(["etcd"])) {
  describe("a container whose end nobody sees", { skip: withNetwork.skip }, () => {
    let members: Members;
    let host: HostProcess;
    before(async () => {
      members = await startMembers({ count: 1 });
      const range = { subnet: "10.10.20.0/24", rangeStart: "10.10.20.50", rangeEnd: "10.10.20.55" };
      const ipam = { type: "etcd", etcdConfig: { etcdURL: members.urls.join(",") }, ...range };
      const network: NetworkConfig = { cniVersion: "1.0.0", name: "lan", type: "bridge", ipam };
      host = await HostProcess.start({ urls: members.urls, network, node: "host-a" });
    });
    after(async () => {
      await host?.remove();
      await members?.close();
    });

    it("keeps its host from serving once its claim is released by force, and everybody is told what helps", async () => {
      const container = start("unshare", ["--net", "sleep", "600"], { env: { PATH } });
      const netns = `/proc/${container.child.pid}/ns/net`;
      const box = { ...host.container(), netns };
      await eventually("it has a namespace of its own", async () => {
        return (await readlink(netns)) === (await readlink("/proc/self/ns/net")) ? undefined : true;
      });
      const [given = ""] = await host.runtime.attach(box);
      const address = given.replace("/24", "");
      const [key = ""] = await listed(members.urls, "claims");
      const helps =
        /a process named its network namespace: \/proc\/\d+\/ns\/net\).*send its DEL on host host-a/;
      container.child.kill("SIGKILL");
      await container.ended;
      const refused = await berthctl(members.urls, "release", key);
      assert.equal(refused.rc, 1, refused.stderr);
      assert.match(refused.stderr, helps);
      const alive = await berthctl(members.urls, "release", key, "--force");
      assert.equal(alive.rc, 1, alive.stderr);
      assert.match(alive.stderr, /on host host-a, which is alive: /);
      assert.match(alive.stderr, helps);
      const forced = await berthctl(members.urls, "release", key, "--force", "--even-if-alive");
      assert.equal(forced.rc, 0, forced.stderr);
      assert.match(forced.stderr, helps);
      const told = await eventually("its host says so while it serves", () =>
        host.log.split("\n").find((line) => line.includes("does not keep for this host any more")),
      );
      assert.match(told, helps);
      for (const named of [box.containerID, address, `default/${key}`]) assert.ok(told.includes(named), told);
      await host.kill9();
      await host.up();
      const { msg } = await eventually("it has asked etcd", async () => {
        const failure = failureOf(await host.runtime.add(host.container()));
        return failure.msg.startsWith("etcd does not have") ? failure : undefined;
      });
      assert.ok(
        msg.includes(
          `container ${box.containerID} (eth0) of network lan has ${address} by claim default/${key}`,
        ),
      );
      assert.match(msg, helps);
      await host.runtime.detach(box, { network: { ipam: { type: "etcd" } } });
      await eventually("it serves again", async () => {
        return (await host.runtime.add(host.container())).kind === "succeeded" || undefined;
      });
    });
  });
}
