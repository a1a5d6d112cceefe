// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { addrs, attachmentOf, bindingTo, claimRecord } from "../../test/support/fixtures.ts";
import { unreportedInterfaces, usesOf } from "./attachment-report.ts";
import { toAuditAttachment } from "./embedded-backend.ts";

const binding = bindingTo("mysql-0", "node-a");
const attached = claimRecord({
  addresses: addrs("10.20.0.70", "fd00:20::70"),
  binding,
  status: { attachment: attachmentOf("mysql-0") },
});

it("tells the sandboxes that claims report, as the audit compares them", () => {
  const [use, ...more] = usesOf([attached]);
  assert.ok(use);
  assert.deepEqual(more, []);
  assert.deepEqual(use.pod, { namespace: "shop", name: "mysql-0", uid: "uid-of-mysql-0" });
  assert.deepEqual(toAuditAttachment(use, "here"), {
    node: "node-a",
    network: "/",
    containerID: "sandbox-of-mysql-0",
    interface: "eth0",
    claim: "shop/mysql-0",
    addresses: ["10.20.0.70", "fd00:20::70"],
  });
});

it("tells the interface that the sandbox was reported with, and of which others nothing is known", () => {
  const [v4, v6] = attached.addresses;
  assert.ok(v4 && v6);
  const interfaces = { eth0: [v6], net1: [v4] };
  const claim = { ...attached, request: { addresses: [v4, v6], interfaces } };
  const uses = usesOf([claim]);
  assert.deepEqual(
    uses.map((use) => [
      use.containerID,
      use.interface,
      use.result.addresses.map(({ address }) => address).join(),
    ]),
    [["sandbox-of-mysql-0", "eth0", v6]],
  );
  assert.deepEqual(unreportedInterfaces(claim), ["net1"]);
  assert.deepEqual(unreportedInterfaces(attached), []);
});

it("tells networks of one name apart by their dataDir, as the agent does", () => {
  const [use] = usesOf([attached]);
  assert.ok(use);
  const scopes = ["/a", "/b"].map((dataDir) => ({ network: "net", dataDir }));
  const networks = scopes.map((scope) => toAuditAttachment({ ...use, scope }, "here").network);
  assert.deepEqual(networks, ["/a/net", "/b/net"]);
});

it("leaves out what was seen to end, and never was", () => {
  const ended = attachmentOf("mysql-0", { detached: true });
  assert.deepEqual(usesOf([{ ...attached, status: { attachment: ended } }, claimRecord()]), []);
});

it("does not name the present pod for the sandbox of an earlier one", () => {
  const [use] = usesOf([{ ...attached, binding: { ...binding, podUID: "uid-of-the-next" } }]);
  assert.equal(use?.pod, undefined);
});
