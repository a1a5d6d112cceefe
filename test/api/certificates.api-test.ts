// SPDX-License-Identifier: Apache-2.0
// Berth as its own authority, by the roles of the chart: what stands in the Secret and in the configurations, and what
// the API server makes of it.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import { EVENTS, SECRETS } from "../../kube/api/resource.ts";
import { readPair } from "../../system/pem/pair.ts";
import { parseBundle } from "../../webhook/certificates/ca-bundle.ts";
import { eventually } from "../support/eventually.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { listItems } from "./list-items.ts";
import type { ControlPlane } from "./plane.ts";
import { forceDelete } from "./replica-objects.ts";
import { rehearse } from "./rolling-load.ts";
import {
  CA_SECRET,
  installConfigurations,
  type RollingWebhook,
  SECRET,
  type SecretObject,
  startRollingPlane,
} from "./rolling-webhook.ts";

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

    const text = (secret: SecretObject, key: string) =>
      Buffer.from(secret.data?.[key] ?? "", "base64").toString();
    const data = async (key: string) => text((await webhook.objects()).secret, key);
    const secrets = () => new Client(plane.connect(), SECRETS);
    /**
     * Every entry of both configurations has what the Secret has, and that verifies its certificate. All of it from
     * one version of the Secret: between two reads there may come another certificate, with another key.
     */
    const inOrder = async () => {
      const { secret, bundles } = await webhook.objects();
      const own = (await secrets().get(CA_SECRET)) as unknown as SecretObject | undefined;
      if (own?.data?.["ca.crt"] !== secret.data?.["ca.crt"]) return undefined;
      if (!bundles.every((bundle) => bundle === secret.data?.["ca.crt"])) return undefined;
      const [ca] = parseBundle(text(secret, "ca.crt"));
      const leaf = readPair({ cert: text(secret, "tls.crt"), key: text(secret, "tls.key") });
      return ca !== undefined && leaf.verify(ca.publicKey) ? true : undefined;
    };
    const put = async (place: typeof SECRET, values: Readonly<Record<string, string>>) => {
      const encoded = Object.entries(values).map(([key, text]) => [
        key,
        Buffer.from(text).toString("base64"),
      ]);
      const body = { data: Object.fromEntries(encoded) };
      await secrets().patch(place, { type: "merge", body });
    };
    /** An event on the Secret. */
    const reported = (reason: string, words: RegExp) =>
      eventually(`${reason} is told`, async () => {
        const items = await listItems(new Client(plane.connect(), EVENTS), { namespace: SECRET.namespace });
        const events = items as unknown as readonly { reason: string; note: string }[];
        return events.some((one) => one.reason === reason && words.test(one.note)) || undefined;
      });
    /** The review came through: the webhook has answered, that there is no pool. */
    const reviewed = async () => assert.match((await rehearse(plane.connect(), 1)) ?? "", /there is no pool/);

    it("three replicas that start at once on an empty secret agree, and are ready when they are trusted", async () => {
      await webhook.start();
      assert.ok(await inOrder());
      await reviewed();
      await reported("AuthorityMade", /there was none; it signed a certificate/);
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
      await put(SECRET, { "tls.crt": "half a certif" });
      await reported("CertificateIssued", /a new certificate was issued: the certificate cannot be read/);
      await eventually("there is another", inOrder, PATIENCE_MS);
      await reviewed();
    });

    it("an authority whose key is lost is replaced; the old one stays trusted, and no review fails", async () => {
      const before = await data("ca.crt");
      await put(CA_SECRET, { "ca.key": "" });
      await reported("AuthorityMade", /cannot be used; it signs once every API server trusts it/);
      await reviewed();
      const [known] = parseBundle(before);
      await eventually(
        "the new one signs",
        async () => {
          await reviewed();
          const now = parseBundle(await data("ca.crt"));
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
        async () => (parseBundle(await data("ca.crt")).length === 1 ? await inOrder() : undefined),
        2 * PATIENCE_MS,
      );
      await reported("AuthorityRetired", /nothing of them is served/);
    });

    for (const [whose, place] of [
      ["the certificate's", SECRET],
      ["the authority's", CA_SECRET],
    ] as const) {
      it(`without ${whose} secret it serves on and says so; one that is made again, empty, is filled`, async () => {
        await forceDelete(plane.connect(), SECRETS, place);
        await reported("SecretMissing", /make it again, empty/);
        await reviewed();
        await secrets().create(place, { type: "Opaque" });
        await eventually(
          "it is filled",
          async () => ((await data("tls.crt")) === "" ? undefined : await inOrder()),
          PATIENCE_MS,
        );
        await reviewed();
      });
    }

    it("without an issuer they serve on, and start again", async () => {
      await webhook.issuer.stop("SIGKILL");
      const [replica] = webhook.all;
      assert.ok(replica);
      await webhook.replace(replica, "SIGTERM");
      await reviewed();
      webhook.issuer.start();
    });
  });
}
