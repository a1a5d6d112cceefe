// SPDX-License-Identifier: Apache-2.0
// API servers that bring a client certificate, and such that do not.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { POOLS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { startControlPlane } from "./harness.ts";
import { type ControlPlane, WEBHOOK_USER } from "./plane.ts";
import { clientFlag, issueClient } from "./rolling-clients.ts";
import { rehearse } from "./rolling-load.ts";
import { RollingWebhook } from "./rolling-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

const NOBODY = /berth takes reviews only from a client with a certificate, and this one brought none/;
const STRANGER = /berth does not trust the authority of this client certificate; see BERTH_CLIENT_CA/;
const GRANTED = /^403 .*there is no pool "db"/;

/** A webhook on the control plane that trusts what `clients.crt` of the folder says, and what a review is told. */
async function start(plane: ControlPlane, folder: string): Promise<[RollingWebhook, () => Promise<string>]> {
  const connection = plane.connect();
  await makeNamespaces(connection, [NAMESPACE]);
  const env = { BERTH_CLIENT_CA: join(folder, "clients.crt"), BERTH_DEPART: "100ms" };
  const webhook = await RollingWebhook.install(plane, { count: 1, env });
  await webhook.start();
  return [webhook, async () => (await rehearse(connection, 1)) ?? ""];
}

function trust(folder: string, ...authorities: readonly string[]): void {
  writeFileSync(join(folder, "clients.crt"), authorities.join(""));
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the client certificate of an API server", () => {
    let folder = "";
    let plane: ControlPlane | undefined;
    let webhook: RollingWebhook | undefined;
    let review: () => Promise<string>;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), "berth-clients-"));
      const { authority, client } = await issueClient();
      trust(folder, authority);
      const apiServerFlags = [clientFlag(folder, client)];
      plane = await startControlPlane({ users: [WEBHOOK_USER], apiServerFlags, definitions: true });
      [webhook, review] = await start(plane, folder);
    });
    after(async () => {
      await webhook?.close();
      await plane?.close();
      rmSync(folder, { recursive: true });
    });

    /** Connections that stand go on: the next is judged by what the files say then. */
    async function connectAnew(): Promise<void> {
      const [replica = assert.fail()] = webhook?.all ?? [];
      await webhook?.replace(replica, "SIGTERM");
    }

    /** The API server closes its connections when it sees that its certificate is another one, also the one that it sees it at. */
    async function isTold(words: RegExp): Promise<void> {
      let last = "";
      await eventually(`a review is told ${words}`, async () => {
        last = await review();
        return words.test(last) || undefined;
      }).catch((error: unknown) => assert.match(last, words, String(error)));
    }

    it("is taken when it is of the authority that the administrator gives, refused in words when that changes", async () => {
      const [first, second] = [await issueClient(), await issueClient()];
      trust(folder, first.authority);
      clientFlag(folder, first.client);
      await connectAnew();
      await isTold(GRANTED);
      trust(folder, second.authority);
      await connectAnew();
      assert.match(await review(), STRANGER);
      trust(folder, second.authority, first.authority);
      await isTold(GRANTED);
    });

    it("is refused in words when it is somebody else's of that authority", async () => {
      const developer = { name: "evil-developer", organization: "developers" };
      const { authority: ca, client } = await issueClient(developer);
      trust(folder, ca);
      clientFlag(folder, client);
      await connectAnew();
      await isTold(
        /berth takes no reviews from a client certificate with CN=evil-developer and O=developers; see BERTH_CLIENT_NAMES/,
      );
    });

    it("is the renewed one as soon as its files are and a new connection is made, without a restart of the API server", async () => {
      const [old, renewed] = [
        await issueClient({ name: "old", organization: "developers" }),
        await issueClient(),
      ];
      trust(folder, old.authority, renewed.authority);
      clientFlag(folder, old.client);
      await connectAnew();
      await isTold(/a client certificate with CN=old and O=developers/);
      clientFlag(folder, renewed.client);
      await connectAnew();
      await isTold(GRANTED);
    });
  });

  describe("the client certificate of an API server", () => {
    let folder = "";
    let plane: ControlPlane | undefined;
    let webhook: RollingWebhook | undefined;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), "berth-clients-"));
      plane = await openControlPlane();
      await installDefinitions(plane.connect());
    });
    after(async () => {
      await webhook?.close();
      await plane?.close();
      rmSync(folder, { recursive: true });
    });

    it("is missed in words where the API server was given none", async () => {
      trust(folder, (await issueClient()).authority);
      const own = plane ?? assert.fail();
      const [started, review] = await start(own, folder);
      webhook = started;
      assert.match(await review(), NOBODY);
      const pools = { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", metadata: { name: "db" } };
      const body = { ...pools, spec: { ranges: [{ cidr: "10.20.0.0/24" }] } };
      const path = `/apis/${POOLS.group}/${POOLS.version}/${POOLS.plural}`;
      const answer = await own.connect().call({ method: "POST", path, body });
      assert.match((answer.body as { message: string }).message, NOBODY);
    });
  });
}
