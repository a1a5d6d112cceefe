// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readEnvironment } from "./environment.ts";
import { isCniError } from "./errors.ts";

const FULL = {
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "c1",
  CNI_NETNS: "/run/netns/c1",
  CNI_IFNAME: "eth0",
  CNI_ARGS: "A=b",
  CNI_PATH: "/opt/cni/bin",
};
const NAMES = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH"];

function read(changes: Record<string, string> = {}) {
  return readEnvironment(new Map(Object.entries({ ...FULL, ...changes })));
}

function refusalOf(changes: Record<string, string>): readonly [number, string, string] {
  const error = read(changes);
  assert.ok(isCniError(error), JSON.stringify(changes));
  return [error.code, error.msg, error.details];
}

describe("environment", () => {
  it("reads what the runtime says", () => {
    assert.deepEqual(read(), {
      command: "ADD",
      containerID: "c1",
      netns: "/run/netns/c1",
      ifname: "eth0",
      args: "A=b",
      netnsOverride: false,
    });
  });

  it("needs these variables and no others; empty is missing", () => {
    const needed: Record<string, readonly string[]> = {
      ADD: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"],
      CHECK: ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"],
      DEL: ["CNI_CONTAINERID", "CNI_IFNAME"],
      GC: ["CNI_PATH"],
      STATUS: [],
      VERSION: [],
      add: [],
    };
    for (const [command, names] of Object.entries(needed)) {
      for (const name of NAMES) {
        const refused = isCniError(read({ CNI_COMMAND: command, [name]: "" }));
        assert.equal(refused, names.includes(name), `${command} without ${name}`);
      }
    }
  });

  it("names everything that is missing in one message, in the order of the SPEC", () => {
    const none = { CNI_CONTAINERID: "", CNI_NETNS: "", CNI_IFNAME: "", CNI_PATH: "", CNI_ARGS: "" };
    assert.deepEqual(refusalOf(none), [
      4,
      "required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing",
      "",
    ]);
    assert.equal(
      refusalOf({ ...none, CNI_COMMAND: "DEL" })[1],
      "required env variables [CNI_CONTAINERID,CNI_IFNAME,CNI_PATH] missing",
    );
  });

  it("refuses a bad value before it looks for missing ones", () => {
    assert.deepEqual(refusalOf({ CNI_CONTAINERID: "a/b", CNI_NETNS: "" }), [
      4,
      "invalid characters in containerID",
      "a/b",
    ]);
  });

  it("takes container ids of letters, digits, _ . and -, of any length, that begin with a letter or digit", () => {
    for (const id of ["a", "0", "a_.-", "x".repeat(5000)])
      assert.ok(!isCniError(read({ CNI_CONTAINERID: id })), id);
    for (const id of ["-a", ".a", "_a", "a/..", "a b", "ä", "a\n"])
      assert.equal(refusalOf({ CNI_CONTAINERID: id })[0], 4, id);
  });

  it("takes interface names as Linux does, counted in bytes", () => {
    for (const name of ["a", "123456789012345", "ééééééé", "...", "eth0.100"]) {
      assert.ok(!isCniError(read({ CNI_IFNAME: name })), name);
    }
    const long = "interface name is too long";
    for (const name of ["1234567890123456", "éééééééé"])
      assert.equal(refusalOf({ CNI_IFNAME: name })[1], long, name);
    for (const name of [".", ".."])
      assert.equal(refusalOf({ CNI_IFNAME: name })[1], "interface name is . or ..");
    for (const name of ["a/b", "a:b", "a b", "a\tb", "a\u0085b", "a\u00a0b", "a\u3000b"]) {
      assert.equal(
        refusalOf({ CNI_IFNAME: name })[1],
        "interface name contains / or : or whitespace characters",
        name,
      );
    }
  });

  it("does not look at the attachment's variables where there is no attachment", () => {
    for (const command of ["GC", "STATUS", "VERSION"]) {
      assert.ok(
        !isCniError(read({ CNI_COMMAND: command, CNI_CONTAINERID: "-", CNI_IFNAME: "a/b" })),
        command,
      );
    }
  });

  it("knows the ways to say that the host's own namespace is meant", () => {
    for (const [value, expected] of [
      ["1", true],
      ["TRUE", true],
      ["true", true],
      ["0", false],
      ["yes", false],
    ] as const) {
      const invocation = read({ CNI_NETNS_OVERRIDE: value });
      assert.ok(!isCniError(invocation));
      assert.equal(invocation.netnsOverride, expected, value);
    }
  });
});
