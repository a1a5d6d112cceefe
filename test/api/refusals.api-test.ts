// SPDX-License-Identifier: Apache-2.0
// What a tenant learns of others from what he is refused: under RBAC, as kubectl prints it.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { eventually } from "../support/eventually.ts";
import { claimObject, type Json, pod, poolObject } from "../support/objects.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { makeNamespaces } from "./crds.ts";
import { statefulSet } from "./manifests.ts";
import type { ControlPlane } from "./plane.ts";
import { type RunningWebhook, runWebhook } from "./running-webhook.ts";
import { openControlPlane } from "./shared-plane.ts";

/** May edit in shop, where it may read, and nothing anywhere else. */
const TENANT = "shopkeeper";
/** The same, and may read in bank. */
const NEIGHBOUR = "releaser";
const HELD = "10.20.0.51";
/** What Kubernetes' own role edit would let them do, which nobody fills in here. */
const KEPT = ["pods", "events", "statefulsets.apps", "ipclaims.berth.dev"].map(
  (what) => `--resource=${what}`,
);
/** What nobody in shop knows. */
const SECRETS = /bank|ledger|vault|10\.40\.|team/;

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("what a tenant is told", () => {
    let plane: ControlPlane;
    let running: RunningWebhook;

    before(async () => {
      plane = await openControlPlane();
      await makeNamespaces(plane.connect(), ["berth-system", "shop", "bank"]);
      running = await runWebhook(plane);
      await mustKubectl("create", "role", "keeper", "-n", "shop", "--verb=get,list,create,delete", ...KEPT);
      for (const user of [TENANT, NEIGHBOUR]) await bind("--role=keeper", user, "shop");
      await bind("--clusterrole=berth-view", NEIGHBOUR, "bank");
      await must("db", poolObject("db", { ranges: [{ cidr: "10.20.0.0/24" }] }));
      await must(
        "vault",
        poolObject("vault", {
          ranges: [{ cidr: "10.40.0.0/24" }],
          namespaceSelector: { matchLabels: { team: "bank" } },
        }),
      );
      await eventually("the pools are known", async () =>
        (await create(asking(HELD, "ledger", "bank"), "admin")) === "" ? true : undefined,
      );
    });
    after(async () => {
      await running?.close();
      await plane?.close();
    });

    async function mustKubectl(...args: readonly string[]): Promise<void> {
      const { rc, stderr } = await plane.kubectl(args);
      assert.equal(rc, 0, stderr);
    }

    async function bind(role: string, user: string, namespace: string): Promise<void> {
      await mustKubectl("create", "rolebinding", `${user}-there`, role, `--user=${user}`, "-n", namespace);
    }

    async function must(what: string, object: Json): Promise<void> {
      assert.equal(await create(object, "admin"), "", what);
    }

    /** What kubectl prints where it is refused; empty: the object was made. */
    async function create(object: Json, user: string, ...flags: readonly string[]): Promise<string> {
      const as = user === "admin" ? {} : { user };
      const { rc, stderr } = await plane.kubectl(["create", "-f", "-", ...flags], {
        stdin: JSON.stringify(object),
        ...as,
      });
      return rc === 0 ? "" : stderr;
    }

    function asking(ips: string, name = "curious", namespace = "shop"): Json {
      return pod(name, { namespace, annotations: { "berth.dev/ips": ips } });
    }

    function askingPools(pools: string): Json {
      return pod("curious", { namespace: "shop", annotations: { "berth.dev/pools": pools } });
    }

    function stateful(ips: string): Json {
      const set = statefulSet("curious", 1, { "berth.dev/ips": ips });
      return { ...set, metadata: { ...(set["metadata"] as Json), namespace: "shop" } };
    }

    it("has no right to read any of it", async () => {
      for (const what of ["ippools", "ipreservations", "ipclaims", "pods"]) {
        const { rc, stderr } = await plane.kubectl(["get", what, "-A"], { user: TENANT });
        assert.notEqual(rc, 0, what);
        assert.match(stderr, /forbidden/i);
      }
      const { rc } = await plane.kubectl(["get", "ipclaims", "-n", "shop"], { user: TENANT });
      assert.equal(rc, 0, "its own it may read");
    });

    it("an address that another namespace holds: that, where else, and nobody's name", async () => {
      for (const flags of [[], ["--dry-run=server"]]) {
        for (const object of [asking(HELD), stateful(HELD)]) {
          const said = await create(object, TENANT, ...flags);
          assert.match(
            said,
            /address 10\.20\.0\.51 in pool "db" is held in another namespace; free nearby: /,
          );
          assert.doesNotMatch(said, SECRETS, String(object["kind"]));
        }
      }
    });

    it("an address that its own namespace holds: whose it is", async () => {
      await must("mine", asking("10.20.0.60", "mine"));
      assert.match(await create(asking("10.20.0.60"), TENANT), /is held by shop\/mine \(Pod mine\)/);
    });

    it("who may read there: whose it is", async () => {
      for (const user of [NEIGHBOUR, "admin"]) {
        assert.match(await create(asking(HELD), user), /is held by bank\/ledger \(Pod ledger\)/, user);
      }
    });

    it("the same, word for word, of a pool that is closed, one that does not exist and addresses of both", async () => {
      const told = new Set<string>();
      for (const object of [
        askingPools("vault"),
        askingPools("nowhere"),
        asking("10.40.0.7"),
        asking("10.40.0.0"),
        asking("192.0.2.1"),
      ]) {
        for (const flags of [[], ["--dry-run=server"]]) told.add(await create(object, TENANT, ...flags));
      }
      const [said = ""] = told;
      assert.equal(told.size, 1, [...told].join("\n"));
      assert.match(
        said,
        /what is asked for is in no pool that is open to it in namespace shop; open to all: "db"/,
      );
      assert.doesNotMatch(said, SECRETS);
      assert.match(await create(askingPools("vault"), "admin"), /vault/);
    });

    it("no more of a claim that it makes by hand, in its status and events neither", async () => {
      for (const [name, address] of [
        ["taken", HELD],
        ["closed", "10.40.0.9"],
      ] as const) {
        const object = claimObject(name, {
          identity: { kind: "Pod", apiVersion: "v1", name },
          request: { addresses: [address] },
        });
        const metadata = { ...(object["metadata"] as Json), namespace: "shop" };
        const said = await create({ ...object, metadata }, TENANT);
        assert.doesNotMatch(said, SECRETS);
        if (said !== "") continue;
        const seen = await eventually(`claim ${name} says why it has nothing`, async () => {
          const { stdout } = await plane.kubectl(["get", "ipclaim", name, "-n", "shop", "-o", "json"], {
            user: TENANT,
          });
          const { status }: { status?: { conditions?: readonly { message?: string }[] } } =
            JSON.parse(stdout);
          return status?.conditions?.some(({ message = "" }) => message !== "") ? stdout : undefined;
        });
        assert.doesNotMatch(seen.replaceAll(address, ""), SECRETS);
      }
      const { stdout } = await plane.kubectl(["get", "events", "-n", "shop", "-o", "json"]);
      assert.doesNotMatch(stdout.replaceAll("10.40.0.9", ""), SECRETS);
    });
  });
}
