// SPDX-License-Identifier: Apache-2.0
// Berth as its own authority, by the roles of the chart: what stands in the Secret and in the configurations, and what
// the API server makes of it.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/client.ts";
import { EVENTS } from "../../kube/event-sink.ts";
import { authoritiesIn } from "../../webhook/certificate-bundle.ts";
import { readPair } from "../../webhook/certificate-pair.ts";
import { SECRETS } from "../../webhook/certificate-records.ts";
import { eventually } from "../support/eventually.ts";
import { havePartsOrSkip } from "./binaries.ts";
import type { ControlPlane } from "./harness.ts";
import { forceDelete } from "./replica-objects.ts";
import { rehearse } from "./rolling-load.ts";
import { installConfigurations, type RollingWebhook, SECRET, startRollingPlane } from "./rolling-webhook.ts";

const PATIENCE_MS = 60_000;
/** A certificate of half a minute: API servers and replicas are given 3 s. */
const LIVES = { BERTH_LEAF_LIFE: "30s", BERTH_AUTHORITY_LIFE: "90s" };

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("certificates of Berth's own", () => {
    let plane: ControlPlane;
    let webhook: RollingWebhook;
    before(async () => {
      ({ plane, webhook } = await startRollingPlane({ count: 3, env: LIVES }));
    });
    after(async () => {
      await webhook?.close();
      await plane?.close();
    });

    const data = async (key: string) => {
      const { secret } = await webhook.objects();
      return Buffer.from(secret.data?.[key] ?? "", "base64").toString();
    };
    /** Every entry of both configurations has what the Secret has, and that verifies its certificate. */
    const inOrder = async () => {
      const { secret, bundles } = await webhook.objects();
      if (!bundles.every((bundle) => bundle === secret.data?.["ca.crt"])) return undefined;
      const [authority] = authoritiesIn(await data("ca.crt"));
      const leaf = readPair({ cert: await data("tls.crt"), key: await data("tls.key") });
      return authority !== undefined && leaf.verify(authority.publicKey) ? true : undefined;
    };
    const put = async (values: Readonly<Record<string, string>>) => {
      const encoded = Object.entries(values).map(([key, text]) => [
        key,
        Buffer.from(text).toString("base64"),
      ]);
      const body = { data: Object.fromEntries(encoded) };
      await new Client(plane.connect(), SECRETS).patch(SECRET, { type: "merge", body });
    };
    /** An event on the Secret. */
    const told = (reason: string, words: RegExp) =>
      eventually(`${reason} is told`, async () => {
        const { items } = await new Client(plane.connect(), EVENTS).page(
          { namespace: SECRET.namespace },
          { limit: 500, next: "" },
        );
        const events = items as unknown as readonly { reason: string; note: string }[];
        return events.some((one) => one.reason === reason && words.test(one.note)) || undefined;
      });
    /** The review came through: the webhook has answered, that there is no pool. */
    const reviewed = async () => assert.match((await rehearse(plane.connect(), 1)) ?? "", /there is no pool/);

    it("three replicas that start at once on an empty secret agree, and are ready when they are trusted", async () => {
      await webhook.start();
      assert.ok(await inOrder());
      await reviewed();
      await told("AuthorityMade", /there was none; it signed a certificate/);
    });

    it("a caBundle that somebody clears is put right again, in every entry", async () => {
      await installConfigurations(plane.connect(), webhook.service.port);
      await eventually("it is put right", inOrder, PATIENCE_MS);
      await eventually(
        "reviews come through",
        async () => (/there is no pool/.test((await rehearse(plane.connect(), 1)) ?? "") ? true : undefined),
        PATIENCE_MS,
      );
    });

    it("a certificate that cannot be used is replaced, and the event says why", async () => {
      await put({ "tls.crt": "half a certif" });
      await told("CertificateIssued", /a new certificate was issued: the certificate cannot be read/);
      await eventually("there is another", inOrder, PATIENCE_MS);
      await reviewed();
    });

    it("an authority whose key is lost is replaced; the old one stays trusted, and no review fails", async () => {
      const before = await data("ca.crt");
      await put({ "ca.key": "" });
      await told("AuthorityMade", /cannot be used; it signs once every API server trusts it/);
      await reviewed();
      const [known] = authoritiesIn(before);
      await eventually(
        "the new one signs",
        async () => {
          await reviewed();
          const now = authoritiesIn(await data("ca.crt"));
          return now.length > 1 && now[0]?.fingerprint256 !== known?.fingerprint256
            ? await inOrder()
            : undefined;
        },
        PATIENCE_MS,
      );
      await reviewed();
    });

    it("old authorities retire by themselves", async () => {
      await eventually(
        "one authority is left",
        async () => (authoritiesIn(await data("ca.crt")).length === 1 ? await inOrder() : undefined),
        2 * PATIENCE_MS,
      );
      await told("AuthorityRetired", /nothing of them is served/);
    });

    it("without its secret it serves on and says so; one that is made again, empty, is filled", async () => {
      await forceDelete(plane.connect(), SECRETS, SECRET);
      await told("SecretMissing", /make it again, empty/);
      await reviewed();
      await new Client(plane.connect(), SECRETS).create(SECRET, { type: "Opaque" });
      await eventually(
        "it is filled",
        async () => ((await data("tls.crt")) === "" ? undefined : await inOrder()),
        PATIENCE_MS,
      );
      await reviewed();
    });
  });
}
