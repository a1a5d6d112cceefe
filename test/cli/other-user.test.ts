// SPDX-License-Identifier: Apache-2.0
// Another user of the host of an embedded stack: reads nothing of it, and changes nothing.
import assert from "node:assert/strict";
import { chmod, chown, lchown, mkdir, mkdtemp, readdir, readFile, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createClock } from "../../system/clock.ts";
import { FOLDER_CLIENT } from "../../webhook/certificates/folder.ts";
import { issueAuthority, issueClient } from "../../webhook/certificates/issue.ts";
import { namespace, pod, pool } from "../support/manifests.ts";
import { ChildStack } from "../support/stack.ts";
import { doAs, type Probe } from "./other-user.ts";
import { berthctl, newFolder, removeFolder } from "./stack.ts";

const isRoot = process.getuid?.() === 0;
const CLOSED = "EACCES";
/** A pool is kept by its review alone. */
const PLANTED = JSON.stringify({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: {
    uid: "u-1",
    kind: { group: "berth.dev", version: "v1", kind: "IPPool" },
    resource: { group: "berth.dev", version: "v1", resource: "ippools" },
    name: "planted",
    operation: "CREATE",
    userInfo: { username: "other", groups: [] },
    object: { ...pool("planted", ["10.99.0.0/24"]) },
    oldObject: null,
    dryRun: false,
  },
});

describe("another user of the host", { skip: isRoot ? false : "becoming another user needs root" }, () => {
  let stack: ChildStack;

  before(async () => {
    stack = await ChildStack.start({ manifests: [namespace("shop"), pool("db", ["10.20.0.0/24"])] });
    // the worst case: whoever made the folders let everybody in, and it is the stack's own files that are closed
    for (const folder of [tmpdir(), stack.folder, stack.dataDir]) await open(folder);
    const found = await doAs("nobody", [{ kind: "read", path: stack.poolsFile }]);
    assert.deepEqual(found, ["done true"]);
  });
  after(() => stack?.remove());

  /** To be passed and listed by everybody. */
  async function open(folder: string): Promise<void> {
    const { mode } = await stat(folder);
    if ((mode & 0o055) !== 0o055) await chmod(folder, (mode & 0o7777) | 0o055);
  }

  const folderOf = (name: string) => join(stack.dataDir, "tls", name);
  const read = (name: string) => readFile(folderOf(name), "utf8");

  async function poolNames(): Promise<readonly string[]> {
    return await stack.read(async ({ store }) => {
      const names: string[] = [];
      for await (const { record } of store.list("pool")) names.push(record.name);
      return names;
    });
  }

  async function port(changes: Partial<Extract<Probe, { kind: "port" }>>): Promise<Probe> {
    const url = `${stack.endpoint.url}/validate/pools`;
    return { kind: "port", url, method: "POST", body: PLANTED, ca: stack.endpoint.ca, ...changes };
  }

  it("finds every file that says something closed, in whatever folder, and puts nothing into one", async () => {
    const open = ["tls/ca.crt", "tls/client.crt", "tls/tls.crt"];
    const entries = await readdir(stack.dataDir, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map((one) => join(one.parentPath, one.name));
    const secret = files.filter((path) => !open.some((name) => path.endsWith(name)));
    assert.ok(secret.length >= 5, secret.join(" "));
    for (const path of secret) assert.equal((await stat(path)).mode & 0o077, 0, path);
    const folders = [stack.dataDir, join(stack.dataDir, "run"), join(stack.dataDir, "tls")];
    const probes: readonly Probe[] = [
      ...secret.flatMap((path): Probe[] => [
        { kind: "read", path },
        { kind: "write", path },
      ]),
      ...folders.map((path): Probe => ({ kind: "list", path })),
    ];
    assert.deepEqual(
      await doAs("nobody", probes),
      probes.map(() => CLOSED),
    );
    assert.deepEqual(
      (await doAs("root", probes.slice(0, 2))).map((outcome) => outcome.split(" ", 1)[0]),
      ["done", "done"],
    );
  });

  it("cannot open the sockets, even where folder and file would be found", async () => {
    const path = join(stack.dataDir, "run", "webhook.sock");
    const probes: readonly Probe[] = [
      { kind: "socket", path, body: "" },
      { kind: "socket", path: stack.socket, body: "" },
    ];
    assert.deepEqual(await doAs("nobody", probes), [CLOSED, CLOSED]);
    await chmod(join(stack.dataDir, "run"), 0o755);
    assert.deepEqual(await doAs("nobody", probes), [CLOSED, CLOSED]);
    await chmod(join(stack.dataDir, "run"), 0o700);
    const [said = ""] = await doAs("root", probes.slice(0, 1));
    assert.match(said, /^400 /);
  });

  it("is told by the port what it lacks, with no certificate or a wrong one, and changes nothing", async () => {
    const clock = createClock();
    const [own, stolen] = [
      await issueAuthority(clock),
      { cert: await read("ca.crt"), key: await read("ca.key") },
    ];
    const wrongName = { ...FOLDER_CLIENT, name: "somebody" };
    const wrongOrganization = { ...FOLDER_CLIENT, organization: "developers" };
    const advice =
      /; use \S+\/tls\/client\.crt and client\.key beside it, as the user that started the stack/;
    for (const [what, pair, why] of [
      ["no certificate", {}, /^403 berth takes reviews only from a client with a certificate/],
      [
        "another authority's",
        await issueClient(own, FOLDER_CLIENT, clock),
        /^403 berth does not trust the authority/,
      ],
      [
        "another name's",
        await issueClient(stolen, wrongName, clock),
        /^403 berth takes no reviews from a client certificate with CN=somebody /,
      ],
      [
        "another organization's",
        await issueClient(stolen, wrongOrganization, clock),
        /^403 berth takes no reviews .* O=developers;/,
      ],
      [
        "the server's own",
        { cert: await read("tls.crt"), key: await read("tls.key") },
        /^403 berth does not trust/,
      ],
    ] as const) {
      const reading = { url: `${stack.endpoint.url}/metrics`, method: "GET", body: "" };
      const probes = [await port(pair), await port({ ...reading, ...pair })];
      for (const outcome of await doAs("nobody", probes)) {
        assert.match(outcome, why, what);
        assert.match(outcome, advice, what);
      }
    }
    assert.deepEqual(await poolNames(), ["db"]);
    // and what was refused is what works for the one who may read the key
    const { cert, key } = stack.endpoint;
    const [said = ""] = await doAs("root", [await port({ cert, key })]);
    assert.match(said, /^200 .*"allowed":true/);
    assert.deepEqual(await poolNames(), ["db", "planted"]);
  });

  it("is told by berthctl who may, whatever it asks", async () => {
    const { dataDir } = stack;
    const manifest = JSON.stringify(pod("shop", "web", { "berth.dev/ips": "10.20.0.7" }));
    const { rc } = await berthctl(dataDir, ["apply", "-f", "-"], manifest);
    assert.equal(rc, 0);
    const probes: readonly Probe[] = [
      { kind: "berthctl", dataDir, args: ["apply", "-f", stack.poolsFile] },
      { kind: "berthctl", dataDir, args: ["delete", "pod/shop/web"] },
      { kind: "berthctl", dataDir, args: ["get", "claims", "-A"] },
      { kind: "berthctl", dataDir, args: ["who", "10.20.0.7"] },
      { kind: "berthctl", dataDir, args: ["release", "shop/web"] },
      { kind: "berthctl", dataDir, args: ["check"] },
    ];
    for (const [i, said] of (await doAs("nobody", probes)).entries()) {
      assert.match(said, /^2 Error: /, JSON.stringify(probes[i]));
      assert.match(said, /run as the user that started the stack/, JSON.stringify(probes[i]));
      assert.doesNotMatch(said, /delete it/, JSON.stringify(probes[i]));
    }
    await chmod(dataDir, 0o700);
    for (const said of await doAs("nobody", probes)) {
      assert.match(said, /^2 Error: .*run as the user that started the stack/);
    }
    assert.equal((await stack.claim("shop/web"))?.addresses.join(), "10.20.0.7");
  });
});

describe("a data folder that somebody else may write to", {
  skip: isRoot ? false : "chown needs root",
}, () => {
  const NOBODY = 65_534;

  for (const { name, spoil, why } of [
    {
      name: "it belongs to another user",
      spoil: (folder: string) => chown(folder, NOBODY, NOBODY),
      why: /belongs to the user with the id 65534, and berth runs as 0/,
    },
    {
      name: "everybody may write to it",
      spoil: (folder: string) => chmod(folder, 0o777),
      why: /chmod go-w /,
    },
  ]) {
    it(`is refused in words: ${name}`, async (t) => {
      const folder = await newFolder();
      t.after(() => removeFolder(folder));
      await spoil(folder);
      const { rc, stderr } = await berthctl(folder, ["up"]);
      assert.equal(rc, 2, stderr);
      assert.match(stderr, why);
      assert.match(stderr, /choose another --data folder/);
      assert.deepEqual(await readdir(folder), []);
    });
  }

  it("is refused behind another user's link, too", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "berth-link-"));
    t.after(() => removeFolder(folder));
    await mkdir(join(folder, "mine"));
    await symlink(join(folder, "mine"), join(folder, "theirs"));
    await lchown(join(folder, "theirs"), NOBODY, NOBODY);
    const { stderr } = await berthctl(join(folder, "theirs"), ["up"]);
    assert.match(stderr, /belongs to the user with the id 65534/);
    assert.deepEqual(await readdir(join(folder, "mine")), []);
  });

  it("is refused for the socket, too, beside which releases wait", async (t) => {
    const [folder, shared] = [await newFolder(), await newFolder()];
    t.after(async () => await Promise.all([folder, shared].map(removeFolder)));
    const socket = join(shared, "agent.sock");
    const refused = async () => {
      const { rc, stderr } = await berthctl(folder, ["up", "--socket", socket]);
      assert.equal(rc, 2, stderr);
      return stderr;
    };
    await chmod(shared, 0o1777); // as /tmp is
    assert.match(await refused(), /is not safe for releases that wait: others may write to it/);
    await chmod(shared, 0o755);
    // made while everybody could
    await mkdir(join(shared, "spool"));
    await chown(join(shared, "spool"), NOBODY, NOBODY);
    assert.match(await refused(), /spool is not safe .* belongs to the user with the id 65534/);
    assert.deepEqual(await readdir(shared), ["spool"]);
  });
});
