// SPDX-License-Identifier: Apache-2.0
// berthctl on pools and claims in etcd, and the fixed address of a container that its runtime names.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { addressesIn, failureOf } from "../support/runtime.ts";
import { berthctl, HostProcess } from "./host-process.ts";
import { type Members, startMembers } from "./members.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples");

if (havePartsOrSkip(["etcd"])) {
  describe("berthctl --etcd", () => {
    const folder = mkdtempSync(join(tmpdir(), "berthctl-"));
    let members: Members;
    let a: HostProcess;
    let b: HostProcess;
    before(async () => {
      members = await startMembers({ count: 1 });
      const ipam = { type: "berth", pools: ["cameras"] };
      const network = { cniVersion: "1.0.0", name: "yard", type: "bridge", ipam };
      a = await HostProcess.start({ node: "host-a", urls: members.urls, network });
      b = await HostProcess.start({ node: "host-b", urls: members.urls, network });
    });
    after(async () => {
      for (const host of [a, b]) await host?.remove();
      await members?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    /** Its output, once it has ended with `code`. */
    async function reported(code: number, ...args: readonly string[]): Promise<string> {
      const { rc, stdout, stderr } = await berthctl(members.urls, ...args);
      assert.equal(rc, code, stdout + stderr);
      return stdout + stderr;
    }

    const recorder = (host: HostProcess) => ({
      ...host.container(),
      pod: { namespace: "default", name: "recorder", uid: "" },
    });

    it("applies pools and claims by the rules of the webhook, and no pods", async () => {
      const made = await reported(0, "apply", "-f", join(EXAMPLES, "etcd/pools.yaml"));
      assert.match(
        made,
        /^ippool\/cameras created .*\nipclaim\/default\/recorder created +10\.10\.30\.60\n$/,
      );
      assert.match(
        await reported(0, "apply", "-f", join(EXAMPLES, "etcd/pools.yaml")),
        /ippool\/cameras unchanged/,
      );
      const other = join(folder, "other.yaml");
      writeFileSync(
        other,
        "{apiVersion: berth.dev/v1alpha1, kind: IPPool, metadata: {name: other}, spec: {ranges: [{cidr: 10.10.30.0/24}]}}\n",
      );
      assert.match(await reported(1, "apply", "-f", other), /pools other and cameras both contain/);
      assert.match(await reported(2, "apply", "-f", join(EXAMPLES, "pods.yaml")), /cannot be kept in etcd/);
    });

    let spare = ""; // one that no container has

    it("gives a container the claim of its name, on one host at a time, and others any address", async () => {
      const [here, there] = [recorder(a), b.container()];
      const asPodman = { args: "IgnoreUnknown=1;K8S_POD_NAME=recorder" };
      assert.deepEqual(addressesIn(await a.runtime.add(here)), ["10.10.30.60/24"]);
      assert.match(
        failureOf(await b.runtime.add(there, asPodman)).msg,
        /default\/recorder \(10\.10\.30\.60\) is still bound to recorder on host host-a, .*: berthctl fence host-a$/,
      );
      const [any = ""] = addressesIn(await b.runtime.add(b.container()));
      assert.match(any, /^10\.10\.30\.(5\d|6\d|70)\/24$/);
      assert.notEqual(any, "10.10.30.60/24");
      spare = any === "10.10.30.61/24" ? "10.10.30.62" : "10.10.30.61";
      await a.runtime.detach(here);
      const moved = async () => addressesIn(await b.runtime.add(there, asPodman))[0];
      assert.equal(await eventually("the address is on the other host", moved), "10.10.30.60/24");
    });

    it("says who has what, and lets a person keep and give back", async () => {
      assert.match(await reported(0, "who", "10.10.30.60"), /recorder/);
      const inUse = await reported(0, "explain", "claim/recorder");
      assert.match(inUse, /is in use on host host-b, heard of \d+s ago\n/);
      assert.doesNotMatch(inUse, /->/, "its host is well");
      const kept = await reported(0, "reserve", "default/spare", "--address", spare);
      assert.ok(kept.includes(spare), kept);
      assert.match(
        await reported(1, "reserve", "default/thief", "--address", "10.10.30.60"),
        /is held by default\/recorder/,
      );
      assert.match(
        await reported(1, "release", "default/recorder"),
        /is bound to recorder on host host-b, whose sandbox may be alive; stop the container first/,
      );
      assert.match(
        await reported(1, "delete", "claim", "recorder"),
        /is in use by recorder on host host-b; stop the container first/,
      );
      assert.match(await reported(0, "release", "default/spare"), /released/);
      assert.match(await reported(0, "check"), /^ok/);
      assert.match(
        await reported(0, "get", "hosts"),
        /^NAME +ADDRESSES +HEARD +STATE\nhost-a +0 +\d+s ago +up\nhost-b +2 +\d+s ago +up\n$/,
      );
      assert.match(
        await reported(0, "get", "host", "host-b", "-o", "yaml"),
        /kind: Host\n(?:.*\n)*.*addresses: 2/,
      );
    });
  });
}
