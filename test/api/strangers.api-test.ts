// SPDX-License-Identifier: Apache-2.0
// Who reaches the webhook's port, and a tenant with the largest bodies that an API server passes on, while an API server's reviews go on.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Connection } from "../../kube/api/connection.ts";
import { collectionPath, itemPath, POOLS } from "../../kube/api/resource.ts";
import { Companion } from "../overload/companion.ts";
import type { Deeds, StrangersOrder } from "../overload/strangers.ts";
import { eventually } from "../support/eventually.ts";
import { pod, poolObject } from "../support/objects.ts";
import { isFull } from "../support/runs.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { makeNamespaces } from "./crds.ts";
import { type OwnControlPlane, startControlPlane } from "./harness.ts";
import { WEBHOOK_USER } from "./plane.ts";
import { clientFlag, issueClient } from "./rolling-clients.ts";
import { rehearse } from "./rolling-load.ts";
import { RollingWebhook } from "./rolling-webhook.ts";

const TENANT = { name: "tenant", groups: ["system:authenticated"] };
/** At length with more of them: test/overload/strangers.test.ts, and `make proof`. */
const STRANGERS = isFull ? 150 : 40;
/** One after the other, again and again until strangers were answered. */
const REVIEWS = isFull ? 100 : 40;
const MIB = 1024 * 1024;

const DOORS = [
  { name: "where the API server shows a certificate", isProven: true, told: "403", open: "False" },
  { name: "where anybody may send reviews", isProven: false, told: "200", open: "True" },
] as const;

/** The status of an answer to who verifies nothing. */
function scrape(port: number, headers: Readonly<Record<string, string>>): Promise<number | undefined> {
  const options = { host: "127.0.0.1", port, path: "/metrics", headers, rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const asked = get({ ...options, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.once("error", reject);
  });
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  for (const { name, isProven, told: reported, open } of DOORS)
    describe(`an API server among strangers, ${name}`, () => {
      let folder = "";
      let plane: OwnControlPlane;
      let connection: Connection;
      let webhook: RollingWebhook;

      before(async () => {
        folder = mkdtempSync(join(tmpdir(), "berth-strangers-"));
        const { authority: ca, client } = await issueClient();
        const file = join(folder, "clients.crt");
        writeFileSync(file, ca);
        const token = join(folder, "token");
        writeFileSync(token, "scraper");
        plane = await startControlPlane({
          users: [WEBHOOK_USER, TENANT],
          apiServerFlags: isProven ? [clientFlag(folder, client)] : [],
          definitions: true,
        });
        connection = plane.connect();
        await makeNamespaces(connection, [NAMESPACE]);
        webhook = await RollingWebhook.install(plane, {
          count: 1,
          env: isProven ? { BERTH_CLIENT_CA: file, BERTH_METRICS_TOKEN: token } : {},
        });
        await webhook.start();
        await make(collectionPath(POOLS), poolObject("db", { ranges: [{ cidr: "10.20.0.0/24" }] }));
        await eventually("the pool is known", async () =>
          (await rehearse(connection, 0)) === undefined ? true : undefined,
        );
      });
      after(async () => {
        await webhook?.close();
        await plane?.close();
        rmSync(folder, { recursive: true, force: true });
      });

      async function make(path: string, body: object): Promise<void> {
        const { status } = await connection.call({ method: "POST", path, body });
        assert.equal(status, 201, path);
      }

      it("says so of every pool", async () => {
        await eventually("the condition", async () => {
          const { body } = await connection.call({ method: "GET", path: itemPath(POOLS, { name: "db" }) });
          const { status } = body as { status?: { conditions?: { type: string; status: string }[] } };
          const found = status?.conditions?.find(({ type }) => type === "ReviewsOpen");
          return found?.status === open ? true : undefined;
        });
      });

      it(`gives metrics ${isProven ? "to who shows the token" : "to whoever asks, where no token is set"}`, async () => {
        const [{ port } = assert.fail()] = webhook.all;
        assert.equal(await scrape(port, { Authorization: "Bearer scraper" }), 200);
        assert.equal(await scrape(port, { Authorization: "Bearer other" }), isProven ? 401 : 200);
        assert.equal(await scrape(port, {}), isProven ? 401 : 200);
      });

      it("has each of its reviews decided while they send what no API server sends", async () => {
        const crowd = new Companion("./strangers.ts");
        try {
          const [{ port } = assert.fail()] = webhook.all;
          const order: StrangersOrder = { port, count: STRANGERS, large: true };
          await crowd.ask<string>(JSON.stringify(order));
          crowd.say("go");
          let deeds: Deeds = {};
          while ((deeds[reported] ?? 0) < STRANGERS) {
            for (let n = 1; n <= REVIEWS; n++) assert.equal(await rehearse(connection, n), undefined);
            deeds = await crowd.ask<Deeds>();
          }
        } finally {
          await crowd.end();
        }
      });

      it("has them decided while a tenant rehearses pods of a MiB that are full of __proto__", async () => {
        const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`;
        const metadata = { name: "tenant" };
        await make(`${rbac}/roles`, {
          metadata,
          rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["create"] }],
        });
        await make(`${rbac}/rolebindings`, {
          metadata,
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "tenant" },
          subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: TENANT.name }],
        });
        const tenant = plane.connect(TENANT.name);
        const value = "__proto__".repeat(MIB / 9);
        const large = {
          ...pod("large", { namespace: NAMESPACE, annotations: { "berth.dev/pools": "db" } }),
          spec: {
            containers: [{ name: "main", image: "app", env: [{ name: "TEXT", value }] }],
            automountServiceAccountToken: false,
          },
        };
        const path = `/api/v1/namespaces/${NAMESPACE}/pods`;
        for (let n = 0; n < 10; n++) {
          const asked = tenant.call({ method: "POST", path, query: { dryRun: "All" }, body: large });
          assert.equal(await rehearse(connection, REVIEWS + n), undefined);
          const { status, warnings = [] } = await asked;
          assert.equal(status, 201);
          assert.ok(
            warnings.some((words) => words.includes("would")),
            warnings.join(),
          );
        }
      });
    });
}
