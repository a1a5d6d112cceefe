// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type NetworkConfig, networkKeyOf, readConfig, readValidAttachments, readVersion } from "./config.ts";
import { type CniError, isCniError } from "./errors.ts";

function configOf(value: object): NetworkConfig {
  const config = readConfig(JSON.stringify({ name: "net", ...value }));
  assert.ok(!isCniError(config));
  return config;
}

function codeAndWords(value: unknown): readonly [number, string] {
  assert.ok(isCniError(value));
  const { code, msg }: CniError = value;
  return [code, msg];
}

describe("network configuration", () => {
  it("needs one JSON object with a name", () => {
    assert.equal(configOf({}).network, "net");
    assert.deepEqual(codeAndWords(readConfig("{}")), [7, "missing network name"]);
    assert.deepEqual(codeAndWords(readConfig("null")), [7, "missing network name"]);
    assert.deepEqual(codeAndWords(readConfig('{"name": "te%%st"}')), [
      7,
      "invalid characters found in network name",
    ]);
    assert.deepEqual(codeAndWords(readConfig('{"name": 5}')), [
      6,
      "error unmarshall network config: json: cannot unmarshal number into field name of type string",
    ]);
    assert.equal(codeAndWords(readConfig("[]"))[0], 6);
  });

  it("is of version 0.1.0 when it does not say", () => {
    for (const value of [{}, { cniVersion: "" }, { cniVersion: null }])
      assert.equal(readVersion(configOf(value), "ADD"), "0.1.0");
    assert.equal(readVersion(configOf({ cniversion: "1.1.0" }), "ADD"), "1.1.0");
    assert.deepEqual(codeAndWords(readVersion(configOf({ cniVersion: 1 }), "ADD")), [
      6,
      "decoding version from network config: json: cannot unmarshal number into field cniVersion of type string",
    ]);
  });

  it("names a space of addresses by network and dataDir", () => {
    const scopes = [{}, { ipam: {} }, { ipam: { dataDir: "" } }, { ipam: { dataDir: 5 } }, { ipam: "x" }];
    for (const value of scopes) {
      assert.deepEqual(networkKeyOf(configOf(value)), { network: "net", dataDir: "/var/lib/cni/networks" });
    }
    for (const dataDir of ["/x/y", "/x/y/", "/x//y", "/x/z/../y"]) {
      assert.equal(networkKeyOf(configOf({ ipam: { dataDir } })).dataDir, "/x/y", dataDir);
    }
  });
});

describe("valid attachments", () => {
  const read = (value: object) => readValidAttachments(configOf(value).fields);
  const ONE = [{ containerID: "c", ifname: "eth0" }];

  it("are unknown when the key is absent, and none when it is null or empty", () => {
    assert.equal(read({}), undefined);
    assert.deepEqual(read({ "cni.dev/valid-attachments": null }), []);
    assert.deepEqual(read({ "cni.dev/valid-attachments": [] }), []);
  });

  it("come under either key, the one of the final SPEC first", () => {
    assert.deepEqual(read({ "cni.dev/valid-attachments": ONE }), ONE);
    assert.deepEqual(read({ "cni.dev/attachments": ONE }), ONE);
    assert.deepEqual(read({ "cni.dev/attachments": [], "cni.dev/valid-attachments": ONE }), ONE);
  });

  it("are refused as a whole when one is malformed", () => {
    for (const list of ["x", {}, 5, [null], ["c"], [{ containerID: 5, ifname: "eth0" }]]) {
      assert.equal(codeAndWords(read({ "cni.dev/valid-attachments": list }))[0], 6, JSON.stringify(list));
    }
    for (const entry of [{}, { containerID: "c" }, { containerID: "", ifname: "eth0" }]) {
      assert.deepEqual(codeAndWords(read({ "cni.dev/valid-attachments": [...ONE, entry] })), [
        7,
        "cni.dev/valid-attachments[1] needs containerID and ifname; nothing was freed",
      ]);
    }
  });
});
