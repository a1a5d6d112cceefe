// SPDX-License-Identifier: Apache-2.0
// Who makes certificates, and what a token of that account, or of the webhook's, is worth to a thief. The API server is real, and
// so are roles and policies.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import type { Call, Connection } from "../../kube/api/connection.ts";
import { CONFIGURATIONS, type KubeItem, SECRETS } from "../../kube/api/resource.ts";
import { createClock } from "../../system/clock.ts";
import { issueAuthority, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { eventually } from "../support/eventually.ts";
import { type Account, accountConfig, installPolicies } from "./accounts.ts";
import { merge, reported } from "./agent-calls.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { AuditLog, CERTIFICATES, rightsOf, UNUSED } from "./audit-log.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { rehearse } from "./rolling-load.ts";
import { CA_SECRET, RollingWebhook, SECRET, type SecretObject } from "./rolling-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

type Entry = Record<string, unknown> & { clientConfig: Record<string, unknown> };
const PATHS = CONFIGURATIONS.map(({ plural }) => `/apis/admissionregistration.k8s.io/v1/${plural}`);
const NAME = "berth-webhook.berth-system.svc";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the account that makes certificates", () => {
    let audit: AuditLog;
    const clock = createClock();
    let plane: ControlPlane;
    let webhook: RollingWebhook;
    let old: { readonly authority: string; readonly leaf: string };

    before(async () => {
      plane = await openControlPlane();
      audit = new AuditLog(plane);
      await installDefinitions(plane.connect());
      await makeNamespaces(plane.connect(), [NAMESPACE]);
      webhook = await RollingWebhook.install(plane, { count: 1 });
      await installPolicies(plane.connect());
    });
    after(async () => {
      await webhook?.close();
      await plane?.close();
    });

    const encoded = (text: string) => Buffer.from(text).toString("base64");
    const secret = async (place: typeof SECRET) => {
      const found = await new Client(plane.connect(), SECRETS).get(place);
      return Object.fromEntries(
        Object.entries((found as unknown as SecretObject).data ?? {}).map(([key, text]) => [
          key,
          Buffer.from(text, "base64").toString(),
        ]),
      );
    };
    const thief = async (account: Account) => plane.connectWith(await accountConfig(plane, account), "thief");

    it("takes the authority over that an older version kept beside the certificate, and its key away from there", async () => {
      const authority = await issueAuthority(clock);
      const leaf = await issueServingCertificate(
        authority,
        { dnsNames: [NAME, `${NAME}.cluster.local`], addresses: [] },
        clock,
      );
      old = { authority: authority.cert, leaf: leaf.cert };
      const texts = {
        "ca.crt": authority.cert,
        "ca.key": authority.key,
        "tls.crt": leaf.cert,
        "tls.key": leaf.key,
      };
      const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, encoded(text)]));
      await new Client(plane.connect(), SECRETS).patch(SECRET, { type: "merge", body: { data } });
      await webhook.start();
      const served = await secret(SECRET);
      assert.deepEqual(Object.keys(served).sort(), ["ca.crt", "tls.crt", "tls.key"]);
      assert.equal(served["tls.crt"], old.leaf, "what is served stays");
      const kept = await secret(CA_SECRET);
      assert.deepEqual([kept["ca.crt"], kept["ca.key"]], [authority.cert, authority.key]);
      assert.match((await rehearse(plane.connect(), 1)) ?? "", /there is no pool/);
    });

    it("rotates it there: no key of an authority is ever where the webhook reads", async () => {
      await webhook.rotate("leaf");
      await eventually("there is another certificate", async () =>
        (await secret(SECRET))["tls.crt"] === old.leaf ? undefined : true,
      );
      await webhook.rotate("authority");
      await eventually(
        "there is another authority",
        async () => {
          const [kept, served] = [await secret(CA_SECRET), await secret(SECRET)];
          assert.equal(served["ca.key"], undefined);
          return kept["ca.crt"] !== old.authority && kept["ca.crt"] === served["ca.crt"] ? true : undefined;
        },
        30_000,
      );
    });

    describe("with the issuer's token", () => {
      let own: Connection;
      before(async () => {
        own = await thief("berth-issuer");
        // it puts right what is written here
        await webhook.issuer.stop("SIGTERM");
      });

      for (const [n, path = ""] of PATHS.entries()) {
        const entries = async () => {
          const [resource] = CONFIGURATIONS.slice(n);
          assert.ok(resource);
          const found = await new Client(plane.connect(), resource).get({ name: "berth" });
          return (found as KubeItem & { webhooks: readonly Entry[] }).webhooks;
        };
        /** By way of a merge patch of the whole list, with one entry changed. */
        const written = async (change: (entry: Entry) => object, more: object = {}) => {
          const [first, ...rest] = await entries();
          assert.ok(first);
          const body = { webhooks: [change(first), ...rest], ...more };
          return await reported(own, merge(`${path}/berth`, body));
        };
        const DENIED =
          /^403 .*'trust\.berth\.dev' .* denied request: berth's issuer changes the caBundle of berth's webhook configurations and nothing else/;

        it(`the caBundle can be written: ${path.split("/").at(-1)}`, async () => {
          const caBundle = encoded(old.authority);
          const answer = await written((entry) => ({
            ...entry,
            clientConfig: { ...entry.clientConfig, caBundle },
          }));
          assert.equal(answer, "200");
          assert.ok((await entries()).some(({ clientConfig }) => clientConfig["caBundle"] === caBundle));
        });

        for (const [what, change] of [
          [
            "another URL",
            ({ clientConfig: { service, ...rest }, ...entry }) => ({
              ...entry,
              clientConfig: { ...rest, url: "https://thief.example/" },
            }),
          ],
          [
            "another Service",
            (entry) => ({
              ...entry,
              clientConfig: {
                ...entry.clientConfig,
                service: { namespace: "shop", name: "thief", port: 443 },
              },
            }),
          ],
          [
            "every object of the cluster",
            (entry) => ({
              ...entry,
              rules: [
                { apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"], scope: "*" },
              ],
            }),
          ],
          ["nobody's failure", (entry) => ({ ...entry, failurePolicy: "Ignore" })],
          ["other namespaces", ({ namespaceSelector, ...entry }) => entry],
          ["no conditions", (entry) => ({ ...entry, matchConditions: [] })],
          ["another timeout", (entry) => ({ ...entry, timeoutSeconds: 29 })],
          ["another name", (entry) => ({ ...entry, name: "thief.example.com" })],
        ] as readonly (readonly [string, (entry: Entry) => object])[]) {
          it(`not ${what}: ${path.split("/").at(-1)}`, async () => {
            assert.match(await written(change), DENIED);
          });
        }

        it(`no entry more or less, no annotation, no other configuration: ${path.split("/").at(-1)}`, async () => {
          const all = await entries();
          for (const body of [
            { webhooks: all.slice(1) },
            { webhooks: [] },
            { webhooks: [...all, { ...all[0], name: "more.example.com" }] },
            { webhooks: [...all].reverse() },
            { metadata: { annotations: { "cert-manager.io/inject-ca-from": "shop/thief" } } },
            { metadata: { labels: { a: "b" } } },
          ])
            assert.match(await reported(own, merge(`${path}/berth`, body)), DENIED);
          const words = /^403 .*cannot (patch|create|delete) resource/;
          assert.match(await reported(own, merge(`${path}/other`)), words);
          const body = {
            ...((await plane.connect().call({ method: "GET", path: `${path}/berth` })).body as object),
            metadata: { name: "own" },
          };
          assert.match(await reported(own, { method: "POST", path, body }), words);
          assert.match(await reported(own, { method: "DELETE", path: `${path}/berth` }), words);
        });
      }

      it("no other secret, no record of Berth's, no pod", async () => {
        const secrets = "/api/v1/namespaces/berth-system/secrets";
        for (const path of [
          secrets,
          `${secrets}/other`,
          "/api/v1/secrets",
          "/api/v1/pods",
          "/apis/berth.dev/v1alpha1/ipclaims",
        ])
          assert.match(await reported(own, { method: "GET", path }), /^403 /);
      });
    });

    it("is what the webhook's token is not: neither the authority's key nor any configuration is its", async () => {
      const stolen = await thief("berth-webhook");
      const ca = "/api/v1/namespaces/berth-system/secrets";
      for (const call of [
        { method: "GET", path: `${ca}/berth-webhook-ca` },
        { method: "GET", path: ca, query: { fieldSelector: "metadata.name=berth-webhook-ca" } },
        merge(`${ca}/berth-webhook-tls`),
        ...PATHS.map((path) => merge(`${path}/berth`)),
        {
          method: "POST",
          path: "/api/v1/namespaces/berth-system/serviceaccounts/berth-issuer/token",
          body: {},
        },
      ] as readonly Call[])
        assert.match(await reported(stolen, call), /^403 /, call.path);
    });

    it("made use of every right that it has, and was refused nothing; so was the webhook, of certificates", async () => {
      // a watch is told of when it ends
      for (const { process } of webhook.all) await process.stop("SIGTERM");
      const own = audit.requests().filter(({ userAgent }) => userAgent !== "thief");
      const forbidden = own.filter(({ responseStatus }) => [401, 403].includes(responseStatus?.code ?? 0));
      assert.deepEqual(
        forbidden.map(({ user, requestURI }) => `${user.username} ${requestURI}`),
        [],
      );
      const superfluous = rightsOf("berth-issuer").filter(
        (right) => !audit.usedBy("berth-issuer").has(right),
      );
      assert.deepEqual(
        superfluous.filter((right) => !UNUSED["berth-issuer"].includes(right)),
        [],
      );
      const watched = CERTIFICATES.map((resource) => `watch ${resource}`);
      assert.deepEqual(
        watched.filter((right) => !audit.usedBy("berth-webhook").has(right)),
        [],
      );
    });
  });
}
