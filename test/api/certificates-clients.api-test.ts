// SPDX-License-Identifier: Apache-2.0
// API servers that bring a client certificate, and such that do not.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { POOLS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { makeNamespaces } from "./crds.ts";
import { type OwnControlPlane, startControlPlane } from "./harness.ts";
import { WEBHOOK_USER } from "./plane.ts";
import { clientFlag, issueClient } from "./rolling-clients.ts";
import { rehearse } from "./rolling-load.ts";
import { RollingWebhook } from "./rolling-webhook.ts";

const NOBODY = /berth takes reviews only from a client with a certificate, and this one brought none/;
const STRANGER = /berth does not trust the authority of this client certificate; see BERTH_CLIENT_CA/;
const GRANTED = /^403 .*there is no pool "db"/;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the client certificate of an API server", () => {
    let folder = "";
    let plane: OwnControlPlane | undefined;
    let webhook: RollingWebhook | undefined;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), "berth-clients-"));
    });
    afterEach(async () => {
      await webhook?.close();
      await plane?.close();
      [plane, webhook] = [undefined, undefined];
      rmSync(folder, { recursive: true });
    });

    const trust = (...authorities: readonly string[]) =>
      writeFileSync(join(folder, "clients.crt"), authorities.join(""));

    /** A control plane with these flags, and a webhook that trusts what `clients.crt` says; gives what a review is told. */
    async function start(apiServerFlags: readonly string[]): Promise<() => Promise<string>> {
      plane = await startControlPlane({ users: [WEBHOOK_USER], apiServerFlags, definitions: true });
      const connection = plane.connect();
      await makeNamespaces(connection, [NAMESPACE]);
      const env = { BERTH_CLIENT_CA: join(folder, "clients.crt") };
      webhook = await RollingWebhook.install(plane, { count: 1, env });
      await webhook.start();
      return async () => (await rehearse(connection, 1)) ?? "";
    }

    it("is taken when it is of the authority that the administrator gives, refused in words when that changes", async () => {
      const [first, second] = [await issueClient(), await issueClient()];
      trust(first.authority);
      const review = await start([clientFlag(folder, first.client)]);
      assert.match(await review(), GRANTED);
      // a connection that stands goes on; the next one is judged by what the file says then
      trust(second.authority);
      const [replica = assert.fail()] = webhook?.all ?? [];
      await webhook?.replace(replica, "SIGTERM");
      assert.match(await review(), STRANGER);
      trust(second.authority, first.authority);
      await eventually("the file is read again", async () =>
        GRANTED.test(await review()) ? true : undefined,
      );
    });

    it("is refused in words when it is somebody else's of that authority", async () => {
      const developer = { name: "evil-developer", organization: "developers" };
      const { authority: ca, client } = await issueClient(developer);
      trust(ca);
      const review = await start([clientFlag(folder, client)]);
      assert.match(
        await review(),
        /berth takes no reviews from a client certificate with CN=evil-developer and O=developers; see BERTH_CLIENT_NAMES/,
      );
    });

    it("is the renewed one as soon as its files are and a new connection is made, without a restart of the API server", async () => {
      const [old, renewed] = [
        await issueClient({ name: "old", organization: "developers" }),
        await issueClient(),
      ];
      trust(old.authority, renewed.authority);
      const review = await start([clientFlag(folder, old.client)]);
      assert.match(await review(), /a client certificate with CN=old and O=developers/);
      clientFlag(folder, renewed.client);
      const [replica = assert.fail()] = webhook?.all ?? [];
      await webhook?.replace(replica, "SIGTERM");
      // the API server closes its connections when it sees the change, also the one that it sees it at
      await eventually("the API server shows the new certificate", async () =>
        GRANTED.test(await review()) ? true : undefined,
      );
    });

    it("is missed in words where the API server was given none", async () => {
      trust((await issueClient()).authority);
      const review = await start([]);
      assert.match(await review(), NOBODY);
      const pools = { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", metadata: { name: "db" } };
      const body = { ...pools, spec: { ranges: [{ cidr: "10.20.0.0/24" }] } };
      const path = `/apis/${POOLS.group}/${POOLS.version}/${POOLS.plural}`;
      const answer = await (plane ?? assert.fail()).connect().call({ method: "POST", path, body });
      assert.match((answer.body as { message: string }).message, NOBODY);
    });
  });
}
