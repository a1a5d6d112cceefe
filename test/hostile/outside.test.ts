// SPDX-License-Identifier: Apache-2.0
// A whole stack, asked for paths and names that lead elsewhere: nothing is written but in its own folders.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { BODY_LIMIT } from "../../webhook/review/request-body.ts";
import { namespace, pool } from "../support/manifests.ts";
import { type Ended, run } from "../support/process.ts";
import { SeededRandom } from "../support/random.ts";
import { networkOf } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";
import { BASES } from "./reviews.ts";
import { EVIL_TEXTS, SEED } from "./values.ts";

const BERTH = fileURLToPath(new URL("../../build/berth", import.meta.url));
/** What host-local would write to if it were asked the same. */
const ELSEWHERE = "/var/lib/cni/networks/hostile";

/** What is longer may not be in the kernel's buffers by the time that Berth has answered. */
const LONG = 1 << 20;

interface Answer {
  readonly status: number;
  readonly said: string;
}

/** Everything below a folder: path -> what it is. A file by its contents. */
async function snapshot(
  folder: string,
  without: readonly string[] = [],
): Promise<ReadonlyMap<string, string>> {
  const seen = new Map<string, string>();
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (without.some((own) => path === own || path.startsWith(`${own}/`))) continue;
    const contents = entry.isFile()
      ? createHash("sha256")
          .update(await readFile(path))
          .digest("hex")
      : "";
    seen.set(path, `${(await stat(path)).mode} ${contents}`);
  }
  return seen;
}

describe("a stack that is led elsewhere", () => {
  const random = new SeededRandom(SEED);
  let stack: ChildStack;
  let outside: string;

  before(async () => {
    console.log(`seed ${SEED}`);
    outside = await mkdtemp(join(tmpdir(), "berth-outside-"));
    await writeFile(join(outside, "resolv.conf"), "nameserver 10.0.0.1\n");
    stack = await ChildStack.start({ manifests: [namespace("shop"), pool("db", ["10.20.0.0/16"])] });
  });
  after(async () => {
    await stack?.remove();
    await rm(outside, { recursive: true, force: true });
  });

  async function surroundings(): Promise<readonly unknown[]> {
    const own = [stack.dataDir, join(stack.folder, "spool"), stack.socket, `${stack.socket}.journal`];
    return await Promise.all([stack.folder, outside, ELSEWHERE].map((folder) => snapshot(folder, own)));
  }

  /** One call of the binary, with values that lead elsewhere and some that are good. */
  async function callBinary(verb: string) {
    const id = random.pick(["c1", "c2", `${outside}/x`, "../../x", ...EVIL_TEXTS.filter(isArgument)]);
    const ifname = random.pick(["eth0", "../x", "a/b", ...EVIL_TEXTS.filter(isArgument)]);
    const dataDir = random.pick([outside, "../..", "/", `${outside}/../../etc`, "/proc/self/fd"]);
    const resolvConf = random.pick(["", join(outside, "resolv.conf"), "/dev/zero/x", outside, "../../x"]);
    const ipam = {
      ranges: [[{ subnet: "10.77.0.0/16" }]],
      dataDir,
      ...(resolvConf === "" ? {} : { resolvConf }),
    };
    const name = random.pick(["hostile", "hostile", "../hostile", "a/b", "x".repeat(5_000)]);
    const env = {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: id,
      CNI_IFNAME: ifname,
      CNI_NETNS: random.pick(["/run/netns/x", `${outside}/ns`, "../ns"]),
      CNI_ARGS: random.pick(["", "IgnoreUnknown=1;K8S_POD_NAMESPACE=../..;K8S_POD_NAME=../../x", "IP=../x"]),
      CNI_PATH: outside,
      BERTH_SOCKET: stack.socket,
      BERTH_TIMEOUT_MS: "3000", // an ADD waits for two thirds of it for a stack that is down
    };
    return await run(BERTH, [], { env, stdin: { text: JSON.stringify(networkOf(ipam, { name })) } });
  }

  it("by CNI calls, while it runs and while it is down, writes nothing elsewhere", async () => {
    const before = await surroundings();
    const verbs = ["ADD", "ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"];
    const phases = [async () => {}, () => stack.kill9(), () => stack.start()];
    for (const begin of phases) {
      await begin();
      for (let i = 0; i < 60; i++) {
        const verb = random.pick(verbs);
        assertEnded(verb, await callBinary(verb));
      }
    }
    console.log(`${60 * phases.length} runs of the binary`);
    assert.deepEqual(await surroundings(), before);
    assert.equal(await stack.findings(), "");
  });

  it("by reviews, however long and in whatever form, writes nothing elsewhere and serves on", async () => {
    const before = await surroundings();
    const small = JSON.stringify(BASES[0]?.review);
    const bodies: readonly (string | Buffer)[] = [
      ...EVIL_TEXTS,
      small.slice(0, 100),
      small.replaceAll("licence", "../../licence"),
      small.replace("10.20.0.70", "x".repeat(BODY_LIMIT)),
      Buffer.alloc(BODY_LIMIT + 1, "{"),
      Buffer.alloc(2 * BODY_LIMIT, "["),
      Buffer.from(Array.from({ length: 5_000 }, () => random.below(256))),
    ];
    let answered = 0;
    for (const body of bodies) {
      for (const path of [
        "/mutate/pods",
        "/validate/pools",
        "/../../etc/passwd",
        "/mutate/pods?timeout=1e9s",
      ]) {
        const answer = await post(path, body);
        if (answer === "hung up") {
          assert.ok(
            Buffer.byteLength(body) > LONG,
            `hung up on ${Buffer.byteLength(body)} bytes for ${path}`,
          );
          continue;
        }
        const { status, said } = answer;
        answered++;
        if (path.includes("etc")) assert.equal(status, 404);
        else assert.equal(JSON.parse(said).kind, "AdmissionReview", said.slice(0, 200));
        assert.ok(status < 500, `${status} ${said.slice(0, 200)}`);
      }
    }
    console.log(`${answered} requests`);
    assert.ok(answered >= 4 * bodies.length - 12, "only long bodies may be left without an answer");
    const last = await post("/mutate/pods", small);
    assert.ok(last !== "hung up");
    assert.deepEqual([last.status, JSON.parse(last.said).response.allowed], [200, true]);
    assert.deepEqual(await surroundings(), before);
  });

  /** Who still writes what nobody reads may find the connection closed before the answer was read. */
  async function post(path: string, body: string | Buffer): Promise<Answer | "hung up"> {
    const { url, ...tls } = stack.endpoint;
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
    return await new Promise((resolve, reject) => {
      const to = { host: "127.0.0.1", port: new URL(url).port, path, method: "POST" };
      const call = request({ ...to, ...tls, headers });
      call.on("response", (response) => {
        text(response).then(
          (said) => resolve({ status: response.statusCode ?? 0, said }),
          () => resolve("hung up"),
        );
      });
      call.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "EPIPE" || error.code === "ECONNRESET") resolve("hung up");
        else reject(error);
      });
      call.end(body);
    });
  }
});

/** By itself, and if it failed, with an error that can be read; a DEL with none that runtimes forgive. */
function assertEnded(verb: string, { rc, signal, stdout }: Ended): void {
  assert.equal(signal, null);
  if (rc === 0) return;
  const { code, msg }: { code: number; msg: string } = JSON.parse(stdout);
  assert.ok(code > 0 && code !== 999 && msg !== "", stdout);
  if (verb === "DEL") assert.doesNotMatch(stdout, /not found|no such file or directory/i);
}

/** What an environment variable can hold. */
function isArgument(value: string): boolean {
  return !value.includes("\0");
}
