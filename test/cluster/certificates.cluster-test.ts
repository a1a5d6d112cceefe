// SPDX-License-Identifier: Apache-2.0
// The chart with certificates that somebody else makes: cert-manager's own controllers, outside of the cluster.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { connect } from "node:tls";
import { fileURLToPath } from "node:url";
import { partOf } from "../api/binaries.ts";
import { Daemon } from "../api/daemon.ts";
import { definitionsOf } from "../api/operators.ts";
import { inheritedEnv, run } from "../support/process.ts";
import { BERTH_NAMESPACE, installBerth } from "./berth.ts";
import { caseOptions, Times } from "./cases.ts";
import { Lab } from "./lab.ts";
import { pod } from "./objects.ts";

const BUILD = fileURLToPath(new URL("../control-plane/build.sh", import.meta.url));
const IN_BERTH = { namespace: BERTH_NAMESPACE };
const WEBHOOKS = ["mutatingwebhookconfiguration/berth", "validatingwebhookconfiguration/berth"];
/** The kubelet looks once a minute whether what it has mounted is still so. */
const RENEWED_MS = 180_000;

const CASE = caseOptions({ machines: true, slow: true, timeoutMs: 600_000 });

let lab: Lab;
before(async () => {
  if (CASE.skip === false) await buildCertManager();
  lab = await Lab.open("certificates");
});
after(async () => await lab?.close());

/** Outside of the case, whose time is limited: where it was never built it takes minutes. */
async function buildCertManager(): Promise<void> {
  const built = await run("bash", [BUILD, "cert-manager"], { env: inheritedEnv() });
  assert.equal(built.rc, 0, `cert-manager cannot be built:\n${built.stderr}`);
}

/** cert-manager, with its kinds, until the test is over. */
async function startCertManager(): Promise<Daemon> {
  for (const definition of await definitionsOf("cert-manager")) {
    // too large for the annotation that `apply` leaves
    await lab.kubectl(["create", "-f", "-"], { stdin: JSON.stringify(definition) });
    await lab.must(["wait", "--for=condition=Established", `crd/${definition.metadata.name}`]);
  }
  const { path, kubeconfig } = lab.cluster.state;
  const command = ["/usr/bin/env", "-i", `KUBECONFIG=${kubeconfig}`, `HOME=${path}`, partOf("cert-manager")];
  const daemon = new Daemon("cert-manager", command, lab.cluster.state.file("logs/cert-manager.log"));
  daemon.start();
  return daemon;
}

/** SHA-256 of the certificates that the replicas serve, each once; empty for one that does not answer, as it is about to go. */
async function served(): Promise<ReadonlySet<string>> {
  const label = "app.kubernetes.io/component=webhook";
  const columns = '-o=jsonpath={range .items[*]}{.status.podIP}{"\\n"}{end}';
  const lines = await lab.must(["get", "pods", "-l", label, columns], IN_BERTH);
  const addresses = lines.split("\n").filter((address) => address !== "");
  return new Set(await Promise.all(addresses.map((address) => fingerprint(address).catch(() => ""))));
}

/** The one that all of them serve, once it is another than that. */
async function servedByAll(but: string): Promise<string> {
  let one = "";
  const look = async () => {
    const [first = "", ...others] = await served();
    one = first;
    return others.length === 0 && first !== "" && first !== but;
  };
  await lab.until("all replicas serve one certificate, and another", look, RENEWED_MS);
  return one;
}

async function fingerprint(address: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const options = { host: address, port: 8443, rejectUnauthorized: false, timeout: 5_000 };
  const socket = connect(options, () => {
    resolve(socket.getPeerCertificate().fingerprint256);
    socket.destroy();
  });
  socket.once("error", reject);
  socket.once("timeout", () => socket.destroy(new Error(`${address} does not answer`)));
  return await promise;
}

/** PEM of what the API server trusts, of each entry that is another. */
async function bundles(): Promise<readonly string[]> {
  const path = '-o=jsonpath={range .webhooks[*]}{.clientConfig.caBundle}{"\\n"}{end}';
  const found = await Promise.all(WEBHOOKS.map((name) => lab.must(["get", name, path])));
  const lines = found.flatMap((text) => text.split("\n").filter((line) => line !== ""));
  return [...new Set(lines)].map(decoded);
}

function decoded(base64: string): string {
  return Buffer.from(base64, "base64").toString();
}

/** A pod is admitted, started and gone; at once, unless the certificates have just changed hands. */
async function admits(name: string): Promise<void> {
  const object = pod(name, { annotations: { "berth.dev/ips": "10.40.1.98" } });
  await lab.until(`${name} is admitted`, async () => (await lab.tryApply([object])).rc === 0);
  const { addresses } = await lab.runsAgain(name);
  assert.deepEqual(addresses, ["10.40.1.98"]);
  await lab.must(["delete", "pod", name]);
}

describe("certificates", () => {
  it(
    "E0555 cert-manager makes the webhook's certificate, renews it, and gives way to Berth again",
    CASE,
    async () => {
      const times = new Times("E0555");
      const own = await bundles();
      const daemon = await startCertManager();
      times.step("cert-manager runs");
      try {
        await installBerth(lab.cluster, ["--set", "certificates.mode=cert-manager"]);
        const issued = "-o=jsonpath={.data.ca\\.crt}";
        const secret = await lab.must(["get", "secret", "berth-webhook-cert", issued], IN_BERTH);
        const ca = decoded(secret).trim();
        assert.ok(!own.some((bundle) => bundle.includes(ca)));
        // beside those that were there before
        await lab.until("the API server trusts its authority", async () => {
          return (await bundles()).every((bundle) => bundle.includes(ca));
        });
        await admits("issued");
        times.step("issued");
        const before = await servedByAll("");
        await renew();
        await servedByAll(before);
        await admits("renewed");
        times.step("renewed");
      } finally {
        await installBerth(lab.cluster);
        await daemon.stop();
        const kinds = (await definitionsOf("cert-manager")).map(({ metadata }) => `crd/${metadata.name}`);
        await lab.must(["delete", ...kinds, "--timeout=60s"]);
      }
      await admits("own");
      times.step("Berth's own");
      await lab.check();
      times.end();
    },
  );
});

/** As `cmctl renew` asks for it. */
async function renew(): Promise<void> {
  const condition = { type: "Issuing", status: "True", reason: "ManuallyTriggered", message: "by a test" };
  const operations = [
    { op: "add", path: "/status/conditions/-", value: { ...condition, lastTransitionTime: new Date() } },
  ];
  const patch = ["--subresource=status", "--type=json", "-p", JSON.stringify(operations)];
  await lab.must(["patch", "certificate/berth-webhook", ...patch], IN_BERTH);
}
