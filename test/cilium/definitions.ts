// SPDX-License-Identifier: Apache-2.0
// Cilium's own definitions, as its Go module has them: of the version that go.mod here pins, and of one before.
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Definition } from "../api/crds.ts";
import { inheritedEnv, run } from "../support/process.ts";
import { parseYaml } from "../support/yaml.ts";

const MODULE = "github.com/cilium/cilium";
const FOLDER = "pkg/k8s/apis/cilium.io/client/crds";

/** The version that go.mod pins. */
export const CILIUM = pinned();
/** The oldest one whose definitions are tried. */
export const CILIUM_BEFORE = "v1.15.0";
/** The last one whose agents grow in mode cluster-pool, and are told the marks. */
export const CILIUM_GROWING = "v1.14.0";

/** The CustomResourceDefinitions of CiliumNode and CiliumPodIPPool; undefined: the module cannot be had here. */
export async function ciliumDefinitions(version = CILIUM): Promise<readonly Definition[] | undefined> {
  const folder = await moduleFolder(version);
  if (folder === undefined) return undefined;
  const files = ["v2/ciliumnodes.yaml", "v2alpha1/ciliumpodippools.yaml"];
  return files.map((file) => parseYaml(readFileSync(join(folder, FOLDER, file), "utf8")) as Definition);
}

/** Of the module in Go's own cache, which is filled once; the pinned version is checked against go.sum. */
async function moduleFolder(version: string): Promise<string | undefined> {
  const [place, module] =
    version === CILIUM ? [import.meta.dirname, MODULE] : [tmpdir(), `${MODULE}@${version}`];
  const asked = ["-C", place, "mod", "download", "-json", module];
  const ended = await run("go", asked, { env: { ...inheritedEnv(), GOWORK: "off" } }).catch(() => undefined);
  if (ended?.rc !== 0) return undefined;
  const { Dir: folder } = JSON.parse(ended.stdout) as { readonly Dir?: string };
  return folder;
}

function pinned(): string {
  const text = readFileSync(join(import.meta.dirname, "go.mod"), "utf8");
  const version = new RegExp(`${MODULE} (v[0-9.]+)`).exec(text)?.[1];
  if (version === undefined) throw new Error(`test/cilium/go.mod names no version of ${MODULE}`);
  return version;
}
