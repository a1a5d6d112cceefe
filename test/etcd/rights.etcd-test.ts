// SPDX-License-Identifier: Apache-2.0
// What a thief of the role that docs/etcd.md grants can do at etcd, besides the keys that are its own, and what somebody without
// any user can. The document has both as tables, of the version that is built here.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { GrpcConnection } from "../../allocator/store/etcd/grpc-connection.ts";
import { GrpcError } from "../../allocator/store/etcd/grpc-frames.ts";
import { authenticateRequest, METHODS, readToken } from "../../allocator/store/etcd/messages.ts";
import { MessageWriter } from "../../allocator/store/etcd/protobuf.ts";
import { createClock } from "../../system/clock.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { enableAuth } from "./auth.ts";
import { type Members, startMembers } from "./members.ts";

const OWN = "/berth/v1/claim/shop/a";
const OTHERS = "/registry/secret";
/** Of these etcd checks no right before 3.6.9. */
const UNCHECKED = "3.6.8";

const message = () => new MessageWriter();
const put = (key: string) => message().text(1, key).text(2, "evil");
const range = (key: string) => message().text(1, key);
const txn = (operation: MessageWriter) => message().message(2, operation);
const nested = (operation: MessageWriter) => txn(message().message(4, txn(operation)));

/** What a call does, its path and its message. */
type Act = readonly [what: string, path: string, request: MessageWriter];

/** What is for administrators alone, whatever the version. */
const CLOSED: readonly Act[] = [
  ["reads another key", "KV/Range", range(OTHERS)],
  ["writes another key", "KV/Put", put(OTHERS)],
  ["deletes another key", "KV/DeleteRange", range(OTHERS)],
  ["writes another key in a transaction", "KV/Txn", txn(message().message(2, put(OTHERS)))],
  ["compares another key", "KV/Txn", message().message(1, message().int(2, 2).text(3, OTHERS).int(6, 1))],
  ["takes a snapshot", "Maintenance/Snapshot", message()],
  ["reads sizes and versions of a member", "Maintenance/Status", message()],
  ["hashes the data", "Maintenance/HashKV", message()],
  ["defragments", "Maintenance/Defragment", message()],
  ["moves the leader", "Maintenance/MoveLeader", message().int(1, 1)],
  ["adds a member", "Cluster/MemberAdd", message().text(1, "http://127.0.0.1:1")],
  ["removes a member", "Cluster/MemberRemove", message().int(1, 1)],
  ["lists users", "Auth/UserList", message()],
  ["reads another user", "Auth/UserGet", message().text(1, "root")],
  ["reads another role", "Auth/RoleGet", message().text(1, "root")],
  ["changes its own password", "Auth/UserChangePassword", message().text(1, "berth").text(2, "other")],
  ["gives itself a role", "Auth/UserGrantRole", message().text(1, "berth").text(2, "root")],
  ["turns users off", "Auth/AuthDisable", message()],
];

/** What the role has and the document names. */
const OPEN: readonly Act[] = [
  ["writes keys of Berth", "KV/Put", put(OWN)],
  ["reads keys of Berth", "KV/Range", range(OWN)],
  ["grants a lease", "Lease/LeaseGrant", message().int(1, 600).int(2, 777)],
  ["lists leases", "Lease/LeaseLeases", message()],
  ["compacts the history", "KV/Compact", message().int(1, 2)],
  ["reads alarms", "Maintenance/Alarm", message().int(1, 0)],
  ["lists members", "Cluster/MemberList", message()],
  ["reads its own user", "Auth/UserGet", message().text(1, "berth")],
  ["reads its own role", "Auth/RoleGet", message().text(1, "of-berth")],
];

/** What an old version does for everybody. */
const FLAWS: readonly Act[] = [
  ["writes any key in a nested transaction", "KV/Txn", nested(message().message(2, put(OTHERS)))],
  ["reads any key in a nested transaction", "KV/Txn", nested(message().message(1, range(OTHERS)))],
  ["grants leases", "Lease/LeaseGrant", message().int(1, 600).int(2, 778)],
  ["revokes leases", "Lease/LeaseRevoke", message().int(1, 778)],
  ["raises an alarm", "Maintenance/Alarm", message().int(1, 1).int(3, 1)],
  ["clears an alarm", "Maintenance/Alarm", message().int(1, 2).int(3, 1)],
  ["lists the members", "Cluster/MemberList", message()],
  ["compacts the history", "KV/Compact", message().int(1, 3)],
];

if (havePartsOrSkip(["etcd"])) {
  describe("an etcd with users", () => {
    let members: Members;
    let connection: GrpcConnection;
    let version: string;
    before(async () => {
      members = await startMembers({ count: 1 });
      const [url = ""] = members.urls;
      ({ etcdserver: version } = (await (await fetch(`${url}/version`)).json()) as { etcdserver: string });
      const encoded = Buffer.from(OTHERS).toString("base64");
      await members.ask("kv/put", { key: encoded, value: encoded });
      await enableAuth(url, {}, [{ name: "berth", password: "known", prefix: "/berth/v1/" }]);
      connection = new GrpcConnection(url, () => ({}), createClock());
    });
    after(async () => {
      await connection?.close();
      await members?.close();
    });

    async function allowed(acts: readonly Act[], token?: string): Promise<readonly string[]> {
      const done: string[] = [];
      for (const [what, path, request] of acts) {
        try {
          const headers = token === undefined ? {} : { token };
          await connection.unary(`/etcdserverpb.${path}`, request.bytes(), { headers, timeoutMs: 10_000 });
          done.push(what);
        } catch (error) {
          assert.ok(error instanceof GrpcError, String(error));
          assert.match(error.message, /permission denied|user name is empty|invalid auth token/, what);
        }
      }
      return done;
    }

    const all = (acts: readonly Act[]) => acts.map(([what]) => what);

    it("lets a thief of the role have its keys, leases and alarms, and nothing of others", async () => {
      const request = authenticateRequest("berth", "known").bytes();
      const token = readToken(
        await connection.unary(METHODS.authenticate, request, { headers: {}, timeoutMs: 10_000 }),
      );
      assert.deepEqual(await allowed(CLOSED, token), []);
      const open = await allowed(OPEN, token);
      if (version === UNCHECKED) assert.deepEqual(open, all(OPEN));
      else assert.deepEqual(open.slice(0, 2), all(OPEN).slice(0, 2));
    });

    it("lets somebody without a user have nothing, but for what versions before 3.6.9 do not check", async () => {
      assert.deepEqual(await allowed(CLOSED), []);
      assert.deepEqual(await allowed(OPEN.slice(0, 2)), []);
      const flaws = await allowed(FLAWS);
      assert.deepEqual(flaws, version === UNCHECKED ? all(FLAWS) : []);
    });
  });
}
