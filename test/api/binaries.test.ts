// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { cacheFolder, findPart, havePartsOrSkip } from "./binaries.ts";

describe("the parts of a control plane", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-binaries-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function put(...path: readonly string[]): string {
    const file = join(folder, ...path);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, "");
    chmodSync(file, 0o755);
    return file;
  }

  it("are looked for by name, in the folder of assets, and in the cache of their versions", () => {
    const cache = cacheFolder({ XDG_CACHE_HOME: folder });
    assert.match(cache, /\/berth\/control-plane\/v1\.\d+\.\d+-etcd-v3\.\d+\.\d+$/);
    const cached = put(cache.slice(folder.length), "etcd");
    const asset = put("assets", "etcd");
    const environment = { XDG_CACHE_HOME: folder };
    assert.equal(findPart("etcd", environment), cached);
    const withAssets = { ...environment, KUBEBUILDER_ASSETS: join(folder, "assets") };
    assert.equal(findPart("etcd", withAssets), asset);
    assert.equal(findPart("etcd", { ...withAssets, TEST_ASSET_ETCD: "/somewhere/etcd" }), "/somewhere/etcd");
    assert.equal(findPart("kube-apiserver", { ...environment, TEST_ASSET_KUBE_APISERVER: "/k" }), "/k");
    assert.equal(findPart("kube-apiserver", withAssets), undefined);
  });

  it("must not be missing where CI runs, and are missed in words elsewhere", () => {
    const said: string[] = [];
    const skip = (why: string) => void said.push(why);
    const words =
      /^no etcd, kubectl: build them with `make control-plane`, or set KUBEBUILDER_ASSETS to a folder/;
    const environment = { XDG_CACHE_HOME: folder };
    assert.throws(() => havePartsOrSkip(["etcd", "kubectl"], { ...environment, CI: "true" }), {
      message: words,
    });
    assert.equal(havePartsOrSkip(["etcd", "kubectl"], environment, skip), false);
    assert.match(said.join("\n"), words);
    const found = { ...environment, TEST_ASSET_ETCD: "/e", TEST_ASSET_KUBECTL: "/k", CI: "true" };
    assert.equal(havePartsOrSkip(["etcd", "kubectl"], found, skip), true);
    assert.equal(said.length, 1);
  });
});
