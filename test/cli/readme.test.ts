// SPDX-License-Identifier: Apache-2.0
// The README's section "On one host", pasted whole into a shell.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { fileURLToPath } from "node:url";
import { run } from "../support/process.ts";
import { ENV, folderFor } from "./stack.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The commands of the section, on another folder, and without the build that every suite begins with. */
function pasted(dataDir: string): string {
  const [, section = ""] = readFileSync(join(ROOT, "README.md"), "utf8").split("\n## On one host\n");
  const block = /\n```\n(.*?)\n```\n/s.exec(section)?.[1] ?? "";
  const [build = "", ...lines] = block.replaceAll("/tmp/berth", dataDir).split("\n");
  assert.match(build, /^make build /);
  assert.ok(lines.length >= 5 && block.includes("/tmp/berth"), block);
  return lines.join("\n");
}

it("the README's commands for one host can be pasted as one block", async (t) => {
  const dataDir = join(await folderFor(t), "data");
  const script = `cd '${ROOT}' || exit\n${pasted(dataDir)}\nlast=$?\nkill %1\nwait %1\nexit $last\n`;
  const { rc, stdout, stderr } = await run("/bin/bash", ["-c", script], { env: ENV });
  assert.equal(rc, 1, stderr); // the last line explains a refusal
  assert.doesNotMatch(stderr, /^Error: /m);
  for (const line of [
    /^ready$/m,
    /^pod\/shop\/licence created {3}10\.20\.0\.51$/m,
    /^statefulset\/shop\/mysql created {3}mysql-0 10\.20\.0\.71/m,
    /^shop +licence +10\.20\.0\.51 /m,
    /^10\.20\.0\.71 is held/m,
    /^pod\/shop\/imitator +refused +address 10\.20\.0\.51 in pool "db" is held by shop\/licence/m,
  ])
    assert.match(stdout, line);
});
