// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { COMMANDS } from "../../cli/run.ts";
import { Client } from "../../kube/api/client.ts";
import { eventually } from "../support/eventually.ts";
import { addrs, claimRecord } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { BerthctlCluster, BUILD, callWith, settingOf, steady } from "./berthctl-cluster.ts";
import { havePartsOrSkip, partOf } from "./binaries.ts";
import { ROLE_BINDINGS, ROLES } from "./cluster-resources.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("berthctl finds its cluster", () => {
    let cluster: BerthctlCluster;

    before(async () => {
      cluster = await BerthctlCluster.start();
    });
    after(() => cluster?.close());

    describe("by its names", () => {
      async function program(
        name: string,
        argv: readonly string[],
        env: Readonly<Record<string, string>> = {},
      ): Promise<{ rc: number; stdout: string; stderr: string }> {
        const home = join(cluster.plane.folder, "home");
        mkdirSync(home, { recursive: true });
        const path = [BUILD, dirname(process.execPath), "/usr/bin", "/bin"].join(":");
        const { rc, stdout, stderr } = await run(name, argv, { env: { PATH: path, HOME: home, ...env } });
        return { rc, stdout: steady(stdout), stderr };
      }
      const row = /^shop +mysql-0 +10\.20\.0\.70, fd00:20::70 +StatefulSet mysql, ordinal 0 +Attached/m;

      it("works as berthctl, as kubectl-berth and as kubectl berth", async () => {
        const KUBECONFIG = cluster.kubeconfig("admin");
        const plain = await program(`${BUILD}berthctl`, ["get", "claims"], { KUBECONFIG });
        assert.match(plain.stdout, row);
        assert.deepEqual(
          await program(`${BUILD}kubectl-berth`, ["get", "claims", "--kubeconfig", KUBECONFIG], {
            BERTH_DATA: "/nonexistent/berth",
          }),
          plain,
        );
        assert.deepEqual(await program(partOf("kubectl"), ["berth", "get", "claims"], { KUBECONFIG }), plain);
      });

      it("leaves to kubectl what kubectl does, and to berthctl what is of data folders", async () => {
        const KUBECONFIG = cluster.kubeconfig("admin");
        for (const [argv, stderr] of [
          [
            ["apply", "-f", "x.yaml"],
            "kubectl berth has no apply, which is for a data folder; apply with: kubectl apply",
          ],
          [
            ["delete", "pod/shop/x"],
            "kubectl berth has no delete, which is for a data folder; delete with: kubectl delete",
          ],
          [["up"], "kubectl berth has no up, which is for a data folder; install Berth's chart instead"],
          [
            ["get", "claims", "--data", "x"],
            "kubectl berth is for the cluster and has no --data; use berthctl for a data folder",
          ],
        ] as const) {
          assert.deepEqual(await program(`${BUILD}kubectl-berth`, argv, { KUBECONFIG }), {
            rc: 2,
            stdout: "",
            stderr: `Error: ${stderr}\n`,
          });
        }
        const { stdout } = await program(`${BUILD}kubectl-berth`, ["get", "--help"], { KUBECONFIG });
        assert.match(stdout, /^Usage: kubectl berth get pools\|claims/m);
        assert.doesNotMatch(stdout, /--data|berthctl/);
      });

      it("says what to do when there is nothing", async () => {
        const { rc, stderr } = await program(`${BUILD}kubectl-berth`, ["get", "claims"]);
        assert.deepEqual(
          { rc, stderr },
          {
            rc: 2,
            stderr: "Error: there is no kubeconfig; name one with --kubeconfig FILE, or set KUBECONFIG\n",
          },
        );
      });
    });

    describe("what keeps it from the cluster", () => {
      it("is told of a kubeconfig that is wrong", async () => {
        const wrong = async (...argv: readonly string[]) => {
          const { code, stdout, stderr } = await cluster.call("get", "claims", ...argv);
          assert.deepEqual([code, stdout], [2, ""]);
          return stderr.replaceAll(cluster.plane.folder, "FOLDER").replaceAll(/[0-9a-f-]{36}/g, "FILE");
        };
        const broken = cluster.kubeconfig("admin", () => "{");
        assert.match(
          await wrong("--kubeconfig", broken),
          /^Error: kubeconfig FOLDER\/FILE\.kubeconfig cannot be read: .*\n$/,
        );
        assert.equal(
          await wrong("--kubeconfig", join(cluster.plane.folder, "none")),
          "Error: there is no kubeconfig FOLDER/none\n",
        );
        assert.equal(
          await wrong("--context", "prod"),
          'Error: kubeconfig FOLDER/FILE.kubeconfig has no context "prod"; it has test\n',
        );
        assert.equal(
          await wrong("--context", "prod", "--data", "x"),
          "Error: give --data for a data folder, or --kubeconfig and --context for a cluster, not both\n",
        );
        const elsewhere = cluster.kubeconfig("admin", (text) =>
          text.replace(cluster.plane.url, "https://127.0.0.1:1"),
        );
        assert.equal(
          await wrong("--kubeconfig", elsewhere),
          "Error: the API server at https://127.0.0.1:1 cannot be reached: connect ECONNREFUSED 127.0.0.1:1; " +
            'is it the cluster that you mean? It is that of context "test", choose another with --context\n',
        );
        const stranger = cluster.kubeconfig("admin", (text) =>
          text.replace(/"token":"[^"]*"/, '"token":"wrong"'),
        );
        assert.equal(
          await wrong("--kubeconfig", stranger),
          "Error: the API server refuses to list ipclaims with 401: Unauthorized; " +
            'log in again, or choose another user than that of context "test" with --context\n',
        );
      });

      it("is told of rights that a user does not have", async () => {
        const nobody = settingOf([cluster.kubeconfig("nobody")]);
        assert.deepEqual(await callWith(nobody, "get", "claims"), {
          code: 2,
          stdout: "",
          stderr:
            'Error: the API server refuses to list ipclaims with 403: ipclaims.berth.dev is forbidden: User "nobody" cannot list resource "ipclaims" ' +
            'in API group "berth.dev" in the namespace "shop"; ask for a role that allows it, or choose another user with --context\n',
        });
        for (const argv of [
          ["who", "10.20.0.70"],
          ["check"],
          ["explain", "pod/mysql-0"],
          ["release", "mysql-0"],
          ["reserve", "own", "--pool", "db"],
        ]) {
          const { code, stdout, stderr } = await callWith(nobody, ...argv);
          assert.deepEqual([code, stdout], [2, ""], argv.join(" "));
          assert.match(stderr, /^Error: the API server refuses to .* with 403: .*; ask for a role .*\n$/);
          assert.equal(stderr.split("\n").length, 2);
        }
      });

      it("lets a user with rights in one namespace work in it", async () => {
        const reading = {
          apiGroups: ["berth.dev", ""],
          resources: ["ipclaims", "pods"],
          verbs: ["get", "list"],
        };
        const place = { namespace: "shop", name: "reader" };
        await new Client(cluster.connection, ROLES).create(place, { rules: [reading] });
        await new Client(cluster.connection, ROLE_BINDINGS).create(place, {
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
          subjects: [{ kind: "User", name: "shopkeeper", apiGroup: "rbac.authorization.k8s.io" }],
        });
        const shopkeeper = settingOf([cluster.kubeconfig("shopkeeper")]);
        const listed = await eventually("the role to be in force", async () => {
          const tried = await callWith(shopkeeper, "get", "claim", "mysql-0");
          return tried.code === 0 ? tried : undefined;
        });
        assert.match(listed.stdout, row());
        assert.equal((await callWith(shopkeeper, "get", "attachments")).code, 0);
        assert.equal((await callWith(shopkeeper, "get", "claims", "-A")).code, 2);
      });

      /** Of a user who may read claims and pods of his namespace, and nothing else. */
      const OF_A_TENANT: Readonly<Record<string, readonly (readonly [0 | 1 | 2, ...string[]])[]>> = {
        get: [
          [0, "claims"],
          [0, "claim", "mysql-0", "-o", "yaml"],
          [0, "pods"],
          [0, "attachments"],
          [2, "claims", "-n", "bank"],
          [2, "pools"],
          [2, "reservations"],
          [2, "blocks"],
          [2, "workloads"],
        ],
        who: [
          [0, "10.20.0.70"],
          [2, "10.20.0.71"],
        ],
        explain: [
          [0, "pod/mysql-0"],
          [0, "claim/mysql-0"],
          [0, "pod/plain"],
          [0, "10.20.0.70"],
          [2, "10.20.0.71"],
          [2, "-f", "-"],
        ],
        check: [[2]],
        release: [
          [1, "mysql-0"],
          [2, "mysql-0", "--force"],
          [1, "mysql-0", "--to", "mysql-9", "--dry-run"],
          [2, "10.20.0.70"],
          [2, "bank/web"],
        ],
        reserve: [
          [2, "own", "--pool", "db"],
          [2, "own", "--address", "10.20.0.99", "--dry-run"],
          [2, "bank/own", "--pool", "db"],
        ],
      };

      /** Of an address of another namespace: not whose it is, nor whether it is free. */
      const UNSEEN =
        /^Error: address 10\.20\.0\.71 is of no claim or pod of namespace shop, and whose else it is, this user may not read; ask for a role that allows list on ippools\.berth\.dev, get on ipreservations\.berth\.dev, or .*\n$/;

      const WORDS = {
        1: /^Error: claim shop\/mysql-0 .* is bound to pod mysql-0 on node node-a, .*\n$/,
        2: /^Error: the API server refuses to .* with 403: .*; ask for a role .*\n$/,
      } as const;

      it("has every command that works in a cluster in the table of tenants", () => {
        const names = COMMANDS.filter(({ flags }) => flags["kubeconfig"] !== undefined).map(
          ({ name }) => name,
        );
        assert.deepEqual(Object.keys(OF_A_TENANT).sort(), names.sort());
      });

      for (const [name, calls] of Object.entries(OF_A_TENANT)) {
        it(`tells a tenant in one line what ${name} lacks`, async () => {
          const tenant = settingOf([cluster.kubeconfig("shopkeeper")]);
          for (const [expected, ...argv] of calls) {
            const { code, stdout, stderr } = await callWith(tenant, name, ...argv);
            assert.equal(code, expected, `${name} ${argv.join(" ")}: ${stderr}`);
            if (code === 0) continue;
            assert.equal(stdout, "", argv.join(" "));
            assert.match(stderr, argv[0] === "10.20.0.71" ? UNSEEN : WORDS[code]);
            assert.equal(stderr.split("\n").length, 2, stderr);
          }
        });
      }

      it("lets whoever may change claims of his namespace release and hand over, and says what it leaves out", async () => {
        const place = { namespace: "shop", name: "keeper" };
        const rule = { apiGroups: ["berth.dev"], resources: ["ipclaims"], verbs: ["create", "delete"] };
        await new Client(cluster.connection, ROLES).create(place, { rules: [rule] });
        await new Client(cluster.connection, ROLE_BINDINGS).create(place, {
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "keeper" },
          subjects: [{ kind: "User", name: "shopkeeper", apiGroup: "rbac.authorization.k8s.io" }],
        });
        const identity = { kind: "Pod", apiVersion: "v1", name: "foo" };
        const foo = { name: "foo", nonce: "n3", addresses: addrs("10.20.0.90"), handMade: true } as const;
        await cluster.keep(claimRecord({ ...foo, identity }));
        const tenant = settingOf([cluster.kubeconfig("shopkeeper")]);
        const handed = await eventually("the role to be in force", async () => {
          const tried = await callWith(tenant, "release", "foo", "--to", "foo2", "--dry-run");
          return tried.code === 2 ? undefined : tried;
        });
        assert.equal(
          handed.stdout,
          "ipclaim/shop/foo released (dry run)\nipclaim/shop/foo2 created (dry run)   10.20.0.90\n",
        );
        const said = (await callWith(tenant, "explain", "claim/foo")).stdout;
        assert.match(said, /^ipclaim\/shop\/foo keeps its addresses; nobody has them now\n/);
        assert.match(said, /^ {2}address +10\.20\.0\.90$/m);
        assert.match(
          (await callWith(tenant, "explain", "pod/plain")).stdout,
          /^pod\/shop\/plain asks for no fixed address; pools and blocks may not be read /,
        );
        assert.deepEqual(await callWith(tenant, "release", "foo"), {
          code: 0,
          stdout:
            "ipclaim/shop/foo released\n  10.20.0.90 is free for others when Berth has seen it, within 120 s\n",
          stderr: "",
        });
      });

      const row = () => /^shop +mysql-0 +10\.20\.0\.70, fd00:20::70 /m;
    });
  });
}
