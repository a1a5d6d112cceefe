// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addrs,
  claimRecord,
  DB_POOL,
  parsed,
  poolRecord,
  reservationRecord,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { type AuditInput, audit } from "./audit.ts";
import type { AuditedAttachment } from "./audited-attachment.ts";

const db = parsed(DB_POOL);
const mysql = claimRecord({ addresses: addrs("10.20.0.70", "fd00:20::7") });
const attachment: AuditedAttachment = {
  node: "node-a",
  network: "lan",
  containerID: "c1",
  interface: "eth0",
  claim: "shop/mysql-0",
  addresses: addrs("10.20.0.70", "fd00:20::7"),
};
const CLEAN: AuditInput = {
  pools: [db],
  claims: [mysql],
  reservations: reservationsOf(mysql),
  attachments: [attachment],
};

function found(over: Partial<AuditInput>): string[] {
  return audit({ ...CLEAN, ...over }).map(({ severity, kind, subject, message }) => {
    assert.match(message, /^[a-z].*[^.]$/);
    return `${severity} ${kind} ${subject}: ${message}`;
  });
}

const other = claimRecord({ name: "mysql-1", nonce: "n2", addresses: addrs("10.20.0.71") });

describe("audit", () => {
  it("finds nothing in records that agree", () => {
    assert.deepEqual(found({}), []);
    assert.deepEqual(audit({ pools: [], claims: [], reservations: [], attachments: [] }), []);
  });

  it("takes the name of an interface for nothing else, whatever it is", () => {
    for (const name of ["constructor", "toString", "valueOf"]) {
      const interfaces = { eth0: mysql.addresses.slice(0, 1), [name]: mysql.addresses.slice(1) };
      const claim = { ...mysql, interfaces, request: { interfaces: { eth0: interfaces.eth0 } } };
      assert.deepEqual(found({ claims: [claim] }), [], name);
    }
  });

  it("finds nothing wrong with what is given back and cools", () => {
    const cooling = reservationRecord("10.20.0.90", {
      claim: { namespace: "shop", name: "gone" },
      releasedAt: 5,
    });
    assert.deepEqual(found({ reservations: [...CLEAN.reservations, cooling] }), []);
    // its pool was deleted or moved meanwhile; nobody relies on it
    assert.deepEqual(found({ reservations: [...CLEAN.reservations, { ...cooling, pool: "old" }] }), []);
    const away = reservationRecord("10.99.0.1", { pool: "old", releasedAt: 5 });
    assert.deepEqual(found({ reservations: [...CLEAN.reservations, away] }), []);
  });

  const rows: readonly (readonly [string, Partial<AuditInput>, readonly string[]])[] = [
    [
      "two claims that list one address",
      { claims: [mysql, { ...other, addresses: addrs("10.20.0.70") }] },
      [
        "defect double-claim 10.20.0.70: address 10.20.0.70 is listed by claims shop/mysql-0 and shop/mysql-1",
        "defect unreserved 10.20.0.70: claim shop/mysql-1 lists 10.20.0.70, which is not reserved for it",
      ],
    ],
    [
      "two sandboxes that use one address",
      {
        attachments: [
          attachment,
          { ...attachment, node: "node-b", containerID: "c2", addresses: addrs("10.20.0.70") },
        ],
      },
      [
        "defect double-use 10.20.0.70: address 10.20.0.70 is used by c1 eth0 on node-a and by c2 eth0 on node-b",
      ],
    ],
    [
      "a claim without its reservation",
      { reservations: reservationsOf(mysql).slice(0, 1) },
      ["defect unreserved fd00:20::7: claim shop/mysql-0 lists fd00:20::7, which is not reserved for it"],
    ],
    [
      "a claim whose reservation cools",
      {
        reservations: reservationsOf(mysql).map((r) =>
          r.address === "fd00:20::7" ? { ...r, releasedAt: 1 } : r,
        ),
      },
      ["defect unreserved fd00:20::7: claim shop/mysql-0 lists fd00:20::7, which is not reserved for it"],
    ],
    [
      "a claim whose reservation is of another attempt",
      { reservations: reservationsOf({ ...mysql, nonce: "n9" }) },
      [
        "defect unreserved 10.20.0.70: claim shop/mysql-0 lists 10.20.0.70, which is not reserved for it",
        "defect unreserved fd00:20::7: claim shop/mysql-0 lists fd00:20::7, which is not reserved for it",
        "pending orphan 10.20.0.70: address 10.20.0.70 is reserved for shop/mysql-0, which does not rely on it",
        "pending orphan fd00:20::7: address fd00:20::7 is reserved for shop/mysql-0, which does not rely on it",
      ],
    ],
    [
      "a reservation without a claim",
      { reservations: [...CLEAN.reservations, ...reservationsOf(other)] },
      [
        "pending orphan 10.20.0.71: address 10.20.0.71 is reserved for shop/mysql-1, which does not rely on it",
      ],
    ],
    [
      "a reservation that the claim gave up",
      { reservations: [...CLEAN.reservations, reservationRecord("10.20.0.90")] },
      [
        "pending orphan 10.20.0.90: address 10.20.0.90 is reserved for shop/mysql-0, which does not rely on it",
      ],
    ],
    [
      "a reservation outside every pool",
      { pools: [parsed(poolRecord("db", "10.20.0.0/24"))], attachments: [] },
      ["defect outside fd00:20::7: address fd00:20::7 is reserved for shop/mysql-0 and in no pool"],
    ],
    [
      "a reservation of a gateway",
      {
        pools: [
          parsed({
            name: "db",
            spec: { ranges: [{ cidr: "10.20.0.0/24", gateway: "10.20.0.70" }, { cidr: "fd00:20::/64" }] },
          }),
        ],
      },
      [
        "defect outside 10.20.0.70: address 10.20.0.70 is reserved for shop/mysql-0, and pool db does not give it out",
      ],
    ],
    [
      "a reservation of an excluded address",
      {
        pools: [
          parsed({
            name: "db",
            spec: { ranges: [{ cidr: "10.20.0.0/24", exclude: ["10.20.0.70"] }, { cidr: "fd00:20::/64" }] },
          }),
        ],
      },
      [
        "defect outside 10.20.0.70: address 10.20.0.70 is reserved for shop/mysql-0, and pool db does not give it out",
      ],
    ],
    [
      "a reservation filed under another pool",
      { reservations: reservationsOf(mysql, "web") },
      [
        "defect misfiled 10.20.0.70: address 10.20.0.70 is filed under pool web and belongs to db",
        "defect misfiled fd00:20::7: address fd00:20::7 is filed under pool web and belongs to db",
      ],
    ],
    [
      "a claim with two addresses of a family",
      {
        claims: [{ ...mysql, addresses: addrs("10.20.0.70", "10.20.0.71", "fd00:20::7") }],
        reservations: reservationsOf({
          ...mysql,
          addresses: addrs("10.20.0.70", "10.20.0.71", "fd00:20::7"),
        }),
      },
      [
        "defect two-of-a-family shop/mysql-0: claim shop/mysql-0 has 10.20.0.70, 10.20.0.71, fd00:20::7, two of one family",
      ],
    ],
    [
      "two of one family on one of its interfaces",
      {
        claims: [
          {
            ...mysql,
            addresses: addrs("10.20.0.70", "10.20.0.71", "fd00:20::7"),
            request: { pools: ["db"] },
            interfaces: { eth0: addrs("fd00:20::7"), net1: addrs("10.20.0.70", "10.20.0.71") },
          },
        ],
        reservations: reservationsOf({
          ...mysql,
          addresses: addrs("10.20.0.70", "10.20.0.71", "fd00:20::7"),
        }),
      },
      [
        "defect two-of-a-family shop/mysql-0: claim shop/mysql-0 has 10.20.0.70@net1, 10.20.0.71@net1, fd00:20::7@eth0, two of one family",
      ],
    ],
    [
      "a sandbox whose claim is gone",
      { claims: [], reservations: [] },
      [
        "defect unclaimed-use 10.20.0.70: address 10.20.0.70 is used by c1 eth0 on node-a, and claim shop/mysql-0 does not have it",
        "defect unclaimed-use fd00:20::7: address fd00:20::7 is used by c1 eth0 on node-a, and claim shop/mysql-0 does not have it",
      ],
    ],
    [
      "a sandbox with an address that its claim gave up",
      {
        claims: [{ ...mysql, addresses: addrs("10.20.0.70") }],
        reservations: reservationsOf(mysql).slice(0, 1),
      },
      [
        "defect unclaimed-use fd00:20::7: address fd00:20::7 is used by c1 eth0 on node-a, and claim shop/mysql-0 does not have it",
      ],
    ],
    [
      "a claim on its way out",
      { claims: [{ ...mysql, releasing: true }] },
      ["pending half-released shop/mysql-0: claim shop/mysql-0 is being given back"],
    ],
    [
      "a claim made by hand that waits",
      { claims: [mysql, claimRecord({ name: "asked", addresses: [], nonce: "", handMade: true })] },
      ["pending unreserved-request shop/asked: claim shop/asked was made by hand and has no addresses yet"],
    ],
  ];
  for (const [title, over, findings] of rows) {
    it(title, () => assert.deepEqual(found(over), findings));
  }

  it("has a row for every kind of finding", () => {
    const kinds = new Set(rows.flatMap(([, , findings]) => findings.map((finding) => finding.split(" ")[1])));
    assert.deepEqual([...kinds].sort(), [
      "double-claim",
      "double-use",
      "half-released",
      "misfiled",
      "orphan",
      "outside",
      "two-of-a-family",
      "unclaimed-use",
      "unreserved",
      "unreserved-request",
    ]);
  });

  it("lets a releasing claim's addresses cool one by one", () => {
    const claims = [{ ...mysql, releasing: true }];
    const [first, second] = reservationsOf(mysql);
    assert.ok(first && second);
    for (const reservations of [[{ ...first, releasedAt: 1 }, second], [second], []]) {
      assert.deepEqual(found({ claims, reservations, attachments: [] }), [
        "pending half-released shop/mysql-0: claim shop/mysql-0 is being given back",
      ]);
    }
  });

  it("tells addresses that only a node knows apart by node and network, and claimed ones not at all", () => {
    const { claim: _, ...plain } = attachment;
    const local = { ...plain, addresses: addrs("10.88.0.2") };
    const attachments = [
      attachment,
      local,
      { ...local, containerID: "c2", network: "wan" },
      { ...local, containerID: "c3", node: "node-b" },
    ];
    assert.deepEqual(found({ attachments }), []);
    assert.deepEqual(found({ attachments: [...attachments, { ...local, containerID: "c4" }] }), [
      "defect double-use 10.88.0.2: address 10.88.0.2 is used by c1 eth0 on node-a and by c4 eth0 on node-a",
    ]);
    const elsewhere = { ...attachment, node: "node-b", network: "wan", containerID: "c5" };
    assert.equal(found({ attachments: [attachment, elsewhere] }).length, 2);
  });
});
