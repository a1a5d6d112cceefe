// SPDX-License-Identifier: Apache-2.0
// A stand-in for Multus: a CNI plugin that gives a pod the cluster's network, and then every network that its annotation
// names, whose configurations are files of a folder in place of NetworkAttachmentDefinitions.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

type Json = Readonly<Record<string, unknown>>;

interface Configuration {
  readonly cniVersion: string;
  readonly name: string;
  /** That of the plugin for the cluster's network. */
  readonly delegate: Json;
  /** `<network>.json`, each a configuration. */
  readonly folder: string;
  readonly runtimeConfig?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

interface Attachment {
  readonly interface: string;
  readonly conf: Json;
}

const { CNI_COMMAND = "", CNI_IFNAME = "", CNI_PATH = "" } = process.env;
const given = JSON.parse(readFileSync(0, "utf8")) as Configuration;

function attachments(): readonly Attachment[] {
  const { cniVersion, name, delegate, folder, runtimeConfig = {} } = given;
  const asked = runtimeConfig["io.kubernetes.cri.pod-annotations"]?.["k8s.v1.cni.cncf.io/networks"] ?? "";
  const names = asked.split(",").flatMap((one) => (one.trim() === "" ? [] : [one.trim()]));
  const further = names.map((network, i) => {
    const conf = JSON.parse(readFileSync(join(folder, `${network}.json`), "utf8")) as Json;
    return { interface: `net${i + 1}`, conf: { ...conf, cniVersion, runtimeConfig } };
  });
  const first = { interface: CNI_IFNAME, conf: { ...delegate, cniVersion, name, runtimeConfig } };
  return [first, ...further];
}

function call(verb: string, { interface: name, conf }: Attachment) {
  const env = { ...process.env, CNI_COMMAND: verb, CNI_IFNAME: name };
  const input = JSON.stringify(conf);
  return spawnSync(join(CNI_PATH, String(conf["type"])), { env, input, encoding: "utf8" });
}

/** All of them or none. */
function add(): number {
  const done: Attachment[] = [];
  let result = "";
  for (const one of attachments()) {
    done.unshift(one);
    const { status, stdout } = call("ADD", one);
    if (status !== 0) {
      for (const other of done) call("DEL", other);
      process.stdout.write(stdout);
      return 1;
    }
    if (result === "") result = stdout;
  }
  process.stdout.write(result);
  return 0;
}

function del(): number {
  const failed = [...attachments()].reverse().filter((one) => call("DEL", one).status !== 0);
  return failed.length === 0 ? 0 : 1;
}

if (CNI_COMMAND === "VERSION")
  process.stdout.write(JSON.stringify({ cniVersion: "1.0.0", supportedVersions: ["1.0.0"] }));
else process.exitCode = CNI_COMMAND === "ADD" ? add() : del();
