// SPDX-License-Identifier: Apache-2.0
// What a tenant learns of others from what he is refused: under RBAC, as kubectl prints it.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { eventually } from "../support/eventually.ts";
import { claimObject, type Json, pod, poolObject } from "../support/objects.ts";
import { connectAs } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { makeNamespaces } from "./crds.ts";
import { statefulSet } from "./manifests.ts";
import { openStore } from "./open-store.ts";
import { type ControlPlane, FIELDS_UNSEEN } from "./plane.ts";
import { makeNode } from "./replica-objects.ts";
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
const SECRETS = /bank|ledger|vault|10\.40\.|team|rack-7|10\.50\.0\.8\/29/;
/** A node has the block that it is in. */
const OF_A_NODE = "10.50.0.9";
/** Controllers that apply what tenants wrote: with the rights of the tenants of shop, and with all. */
const DEPLOYER = "system:serviceaccount:gitops:shop-deployer";
const GITOPS = "system:serviceaccount:gitops:controller";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("what a tenant is told", () => {
    let plane: ControlPlane;
    let running: RunningWebhook;

    before(async () => {
      plane = await openControlPlane();
      await makeNamespaces(plane.connect(), ["berth-system", "shop", "bank", "gitops"]);
      running = await runWebhook(plane);
      await mustKubectl("create", "role", "keeper", "-n", "shop", "--verb=get,list,create,delete", ...KEPT);
      for (const user of [TENANT, NEIGHBOUR]) await bind("--role=keeper", user, "shop");
      await bind("--clusterrole=berth-view", NEIGHBOUR, "bank");
      await mustKubectl(
        ...["create", "rolebinding", "deployer", "-n", "shop"],
        ...["--role=keeper", "--serviceaccount=gitops:shop-deployer"],
      );
      await mustKubectl(
        ...["create", "clusterrolebinding", "gitops", "--clusterrole=cluster-admin"],
        "--serviceaccount=gitops:controller",
      );
      await must("db", poolObject("db", { ranges: [{ cidr: "10.20.0.0/24" }] }));
      await must(
        "vault",
        poolObject("vault", {
          ranges: [{ cidr: "10.40.0.0/24" }],
          namespaceSelector: { matchLabels: { team: "bank" } },
        }),
      );
      await must(
        "rack",
        poolObject("rack", { ranges: [{ cidr: "10.50.0.0/24" }], blockSize: { ipv4: 29 }, default: true }),
      );
      const nodeCIDRs = { use: "Cilium", blockSize: { ipv4: 27 } };
      await must("agents", poolObject("agents", { ranges: [{ cidr: "10.60.0.0/24" }], nodeCIDRs }));
      await giveBlock();
      await eventually("the pools are known", async () =>
        (await create(asking(HELD, "ledger", "bank"), "admin")) === "" ? true : undefined,
      );
    });
    after(async () => {
      await running?.close();
      await plane?.close();
    });

    /** As the webhook does when a node's pods need one. */
    async function giveBlock(): Promise<void> {
      const connection = await connectAs(plane, "berth-webhook");
      const store = openStore(connection);
      // a block of a node that is not there is taken back after a while
      const { metadata } = await makeNode(plane.connect(), "rack-7");
      const of = { pool: "rack", node: "rack-7", nodeUID: metadata.uid, holes: [], granted: true };
      await store.create("block", { ...of, cidr: "10.50.0.8/29" });
      await store.close();
    }

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
      const { rc, stderr } = await plane.kubectl(["create", FIELDS_UNSEEN, "-f", "-", ...flags], {
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

    it("an address that a node has in a block: that, where else, and no node", async () => {
      const named = /is in block 10\.50\.0\.8\/29 of node rack-7/;
      await eventually("the block is known", async () =>
        named.test(await create(asking(OF_A_NODE), "admin", "--dry-run=server")) ? true : undefined,
      );
      // who may read all that is in two namespaces may list no blocks, which are of the cluster
      for (const user of [TENANT, NEIGHBOUR]) {
        for (const object of [asking(OF_A_NODE), stateful(OF_A_NODE)]) {
          const said = await create(object, user);
          assert.match(
            said,
            /10\.50\.0\.9 in pool "rack" is for pods that need no fixed address; free nearby: /,
          );
          assert.doesNotMatch(said, SECRETS, user);
        }
      }
      assert.match(await create(asking(OF_A_NODE), "admin"), named);
    });

    it("whoever applies for others is told what it may read itself: all, or as little as the tenant", async () => {
      for (const [ips, secret, short] of [
        [HELD, /is held by bank\/ledger/, /is held in another namespace/],
        [OF_A_NODE, /of node rack-7/, /is for pods that need no fixed address/],
      ] as const) {
        assert.match(await create(asking(ips), "admin", `--as=${GITOPS}`), secret);
        const said = await create(asking(ips), "admin", `--as=${DEPLOYER}`);
        assert.match(said, short);
        assert.doesNotMatch(said, SECRETS);
      }
    });

    it("the same, word for word, of a pool that is closed, one that does not exist and addresses of both", async () => {
      const reported = new Set<string>();
      for (const object of [
        askingPools("vault"),
        askingPools("nowhere"),
        asking("10.40.0.7"),
        asking("10.40.0.0"),
        asking("192.0.2.1"),
      ]) {
        for (const flags of [[], ["--dry-run=server"]]) reported.add(await create(object, TENANT, ...flags));
      }
      const [said = ""] = reported;
      assert.equal(reported.size, 1, [...reported].join("\n"));
      assert.match(
        said,
        /what is asked for is in no pool that is open to it in namespace shop; open to all: "db"/,
      );
      assert.doesNotMatch(said, SECRETS);
      assert.match(await create(askingPools("vault"), "admin"), /vault/);
    });

    it("an address of a pool that Cilium's agents pick from: that they do, and what to do instead", async () => {
      const asked = [asking("10.60.0.9"), stateful("10.60.0.9"), askingPools("agents")];
      for (const user of [TENANT, "admin"])
        for (const object of asked)
          for (const flags of [[], ["--dry-run=server"]]) {
            const said = await create(object, user, ...flags);
            assert.match(
              said,
              /pool "agents" is for CIDRs of nodes \(its nodeCIDRs\) and gives pods no address; Cilium's agents pick the address of each pod out of it, and nothing can fix one there; name a pool without nodeCIDRs, for an interface that Berth serves/,
              `${user} ${JSON.stringify(object)}`,
            );
            assert.doesNotMatch(said, SECRETS);
          }
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
