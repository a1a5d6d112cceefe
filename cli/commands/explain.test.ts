// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { claimRecord, DB_POOL, reservationsOf } from "../../test/support/fixtures.ts";
import { pod, workload } from "../../test/support/objects.ts";
import { Folder } from "../testing/folder.ts";

function folder(t: TestContext): Promise<Folder> {
  return Folder.of(t, {
    pools: [DB_POOL],
    claims: [claimRecord()],
    reservations: reservationsOf(claimRecord()),
  });
}

function list(...items: readonly unknown[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

describe("berthctl explain", () => {
  it("gives a line to each pod: address and reason, or the refusal", async (t) => {
    const data = await folder(t);
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
      "pod/shop/mysql-0   10.20.0.70, fd00:20::70   10.20.0.70: pool db: its claim holds it already; fd00:20::70: pool db: asked for by address",
      "pod/shop/a         10.20.0.71                pool db: asked for by address",
      'pod/shop/b         refused                   there is no pool "nope"; there are "db"',
      "pod/shop/c         -                         it asks for no fixed address; the network's configuration gives it any",
      "",
    ]);
  });

  it("tells a named pool from one that is merely open", async (t) => {
    const data = await folder(t);
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
    const data = await folder(t);
    const set = workload("StatefulSet", "mysql", { own: { "berth.dev/ips": "10.20.0.71" } });
    assert.deepEqual(await data.callWith(JSON.stringify(set), "explain", "-f", "-"), {
      code: 0,
      stdout: "statefulset/shop/mysql   -   its template asks for no fixed address\n",
      stderr:
        "Warning: annotation berth.dev/ips on StatefulSet mysql itself has no effect; move it to its template\n",
    });
  });

  it("names an object that has no name", async (t) => {
    const data = await folder(t);
    const { code, stderr } = await data.callWith('{"apiVersion":"v1","kind":"Pod"}', "explain", "-f", "-");
    assert.deepEqual({ code, stderr }, { code: 1, stderr: "Error: pod: metadata.name is missing\n" });
  });
});
