// SPDX-License-Identifier: Apache-2.0
// A root folder with berthctl of a release, the libraries that it loads, and nothing else.
import assert from "node:assert/strict";
import { run } from "../support/process.ts";

const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

/** Where a command of berthctl runs. */
export interface Machine {
  readonly dataDir: string;
  readonly examples: string;
  /** The program and arguments that run berthctl there. */
  command(args: readonly string[]): readonly string[];
}

const UNSHARE = ["unshare", "--mount", ...(process.getuid?.() === 0 ? [] : ["--map-root-user"])];

/** Empty, or why no process can be given another root folder here. */
export async function whyNotRootFolder(): Promise<string> {
  const [program = "", ...args] = [...UNSHARE, "true"];
  const { rc, stderr } = await run(program, args, { env: { PATH } });
  return rc === 0 ? "" : `no mount namespace: ${stderr.trim()}`;
}

/** Makes that folder from the files of a release, with the examples of its archive. */
export async function withoutCheckout(
  root: string,
  release: string,
  version: string,
  arch: string,
): Promise<Machine> {
  const script = `set -euo pipefail
    mkdir -p "$1"/{proc,dev,tmp,home}
    cp "$2/berthctl-$3-linux-$4" "$1/berthctl"
    tar -C "$1/home" -xzf "$2/berth-examples-$3.tgz"
    ldd "$1/berthctl" | grep -o '/[^ )]*' | while IFS= read -r library; do
      mkdir -p "$1\${library%/*}"; cp -L "$library" "$1$library"
    done
    : >"$1/dev/null"`;
  const { rc, stderr } = await run("bash", ["-c", script, "bash", root, release, version, arch], {
    env: { PATH },
  });
  assert.equal(rc, 0, stderr);
  // its own environment is empty: no PATH, no HOME
  const enter =
    'mount --rbind /proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec env -i "$(command -v chroot)" "$0" /berthctl "$@"';
  return {
    dataDir: "/tmp/berth",
    examples: "/home/examples",
    command: (args) => [...UNSHARE, "sh", "-c", enter, root, ...args],
  };
}
