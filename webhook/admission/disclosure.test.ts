// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Answer, Call, Connection } from "../../kube/api/connection.ts";
import { HastyClock } from "../../test/support/clock.ts";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import { pod, review } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { codeOf, type UserInfo } from "../review/admission-review.ts";
import type { ReadAccess, Subject } from "./disclosure.ts";
import { ReviewedReadAccess } from "./read-access.ts";
import { createHandlers } from "./routes.ts";

const SECRET = poolRecord("secret", "10.40.0.0/24", {
  namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "bank" } },
});
const MINE = { username: "tenant", uid: "1", groups: ["system:authenticated"] };
const CONTROLLER = {
  username: "system:serviceaccount:kube-system:statefulset-controller",
  uid: "2",
  groups: ["system:serviceaccounts"],
};

/** What a pod of a namespace that asks for an address is told; `may` says what the user may read. */
async function toldTo(
  world: World,
  may: readonly Subject[] | "all",
  asks: {
    readonly namespace: string;
    readonly ips?: string;
    readonly pools?: string;
    readonly user?: UserInfo;
  },
): Promise<string> {
  const readAccess: ReadAccess = {
    mayRead: async (_, subject) =>
      may === "all" || may.some((one) => JSON.stringify(one) === JSON.stringify(subject)),
  };
  const { namespace, ips, pools, user = MINE } = asks;
  const annotations = {
    ...(ips === undefined ? {} : { "berth.dev/ips": ips }),
    ...(pools === undefined ? {} : { "berth.dev/pools": pools }),
  };
  const object = pod("curious", { namespace, annotations });
  const request = review(object, "CREATE", { namespace, userInfo: user });
  const handle = createHandlers({ ...world.admission, readAccess })["/mutate/pods"];
  const response = await handle(request, new AbortController().signal);
  return `${codeOf(response)}: ${response.status?.message ?? "allowed"}`;
}

async function worldWithHolder(): Promise<World> {
  const world = await openWorld({ pools: [DB_POOL, SECRET] });
  const object = pod("ledger", { namespace: "bank", annotations: { "berth.dev/ips": "10.20.0.70" } });
  const request = review(object, "CREATE", { namespace: "bank" });
  const made = await createHandlers(world.admission)["/mutate/pods"](request, new AbortController().signal);
  assert.equal(made.allowed, true, made.status?.message);
  await world.settle();
  return world;
}

const CLAIMS_OF_BANK: Subject = { verb: "get", resource: "ipclaims", namespace: "bank" };
const POOLS: Subject = { verb: "list", resource: "ippools", namespace: "" };

describe("what a refusal tells", () => {
  it("names the holder in another namespace to who may read its claims, and to nobody else", async () => {
    await using world = await worldWithHolder();
    const asks = { namespace: "shop", ips: "10.20.0.70" };
    assert.match(
      await toldTo(world, [CLAIMS_OF_BANK], asks),
      /^ADDRESS_TAKEN: .*held by bank\/ledger \(Pod ledger\)/,
    );
    const words = await toldTo(world, [POOLS], asks);
    assert.match(
      words,
      /^ADDRESS_TAKEN: address 10\.20\.0\.70 in pool "db" is held in another namespace; free nearby: /,
    );
    assert.doesNotMatch(words, /bank|ledger/);
  });

  it("names what the own namespace holds to everybody in it", async () => {
    await using world = await worldWithHolder();
    assert.match(await toldTo(world, [], { namespace: "bank", ips: "10.20.0.70" }), /held by bank\/ledger/);
  });

  it("tells controllers of kube-system no more, whatever they may read: the namespace's events repeat it", async () => {
    await using world = await worldWithHolder();
    const words = await toldTo(world, "all", { namespace: "shop", ips: "10.20.0.70", user: CONTROLLER });
    assert.match(words, /is held in another namespace/);
    assert.doesNotMatch(words, /bank|ledger/);
  });

  it("is the same for pools that are closed, that do not exist and for addresses of either", async () => {
    await using world = await worldWithHolder();
    const told = new Set<string>();
    for (const asks of [
      { pools: "secret" },
      { pools: "nowhere" },
      { ips: "10.40.0.7" },
      { ips: "10.40.0.0" },
      { ips: "192.0.2.1" },
    ]) {
      told.add(await toldTo(world, [CLAIMS_OF_BANK], { namespace: "shop", ...asks }));
    }
    assert.deepEqual(
      [...told],
      [
        'POOL_FORBIDDEN: what is asked for is in no pool that is open to it in namespace shop; open to all: "db"; ask whoever runs the network',
      ],
    );
    assert.match(
      await toldTo(world, [POOLS], { namespace: "shop", pools: "secret" }),
      /^POOL_FORBIDDEN: pool "secret" is not open to namespace shop/,
    );
    assert.match(
      await toldTo(world, [POOLS], { namespace: "shop", ips: "192.0.2.1" }),
      /^ADDRESS_OUTSIDE: address 192\.0\.2\.1 is in no pool; name one of a pool: "db" 10\.20/,
    );
  });
});

/** An API server that answers so, and keeps what it was asked. */
class Reviewer implements Connection {
  readonly asked: Call[] = [];
  answer: () => Promise<Answer> = async () => ({ status: 201, body: { status: { allowed: true } } });

  async call(call: Call): Promise<Answer> {
    this.asked.push(call);
    return await this.answer();
  }

  stream(): Promise<Answer> {
    throw new TypeError("nothing is watched here");
  }

  close(): void {}
}

describe("whether somebody may read", () => {
  it("is for the API server to say, and remembered for 30 s, for 5 s when he may not", async () => {
    const [reviewer, clock] = [new Reviewer(), new HastyClock()];
    const access = new ReviewedReadAccess(reviewer, clock);
    const asks = async (allowed: boolean, calls: number) => {
      assert.deepEqual([await access.mayRead(MINE, CLAIMS_OF_BANK), reviewer.asked.length], [allowed, calls]);
    };
    await asks(true, 1);
    const [asked = assert.fail()] = reviewer.asked;
    assert.deepEqual((asked.body as { spec: unknown }).spec, {
      ...{ user: "tenant", uid: "1", groups: ["system:authenticated"] },
      resourceAttributes: { verb: "get", group: "berth.dev", resource: "ipclaims", namespace: "bank" },
    });
    clock.advance(29_999);
    await asks(true, 1);
    reviewer.answer = async () => ({ status: 201, body: { status: { allowed: false } } });
    clock.advance(1);
    await asks(false, 2);
    clock.advance(5_000);
    await asks(false, 3);
  });

  it("is no where the API server does not say, and asks it a bounded number of times at once", async () => {
    const reviewer = new Reviewer();
    const access = new ReviewedReadAccess(reviewer, new HastyClock());
    reviewer.answer = () => Promise.reject(new Error("away"));
    assert.equal(await access.mayRead(MINE, POOLS), false);
    const { promise: never, resolve } = Promise.withResolvers<Answer>();
    reviewer.answer = () => never;
    const many = Array.from({ length: 100 }, (_, n) => access.mayRead({ ...MINE, username: `u${n}` }, POOLS));
    assert.equal(reviewer.asked.length, 17);
    resolve({ status: 403, body: "no" });
    assert.deepEqual(new Set(await Promise.all(many)), new Set([false]));
  });
});
