// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { alreadyExists, isAbsent, isConflict, needsRelist, statusOf, toBerthError } from "./status.ts";

const answer = (status: number, body: unknown = "") => ({ status, body });
const failure = (reason: string, message = "", details: object = {}) => ({
  kind: "Status",
  status: "Failure",
  reason,
  message,
  details,
});

describe("answers of the API server", () => {
  it("of an object that is not there are told from a path that is not served", () => {
    assert.ok(isAbsent(answer(404, failure("NotFound", "", { name: "a" })), "a"));
    assert.ok(
      !isAbsent(answer(404, failure("NotFound", "", { name: "shop" })), "a"),
      "its namespace is missing",
    );
    assert.ok(!isAbsent(answer(404, "404 page not found\n"), "a"));
    assert.ok(!isAbsent(answer(200, {}), "a"));
  });

  it("of a name that is taken are told from a conflict", () => {
    assert.ok(alreadyExists(answer(409, failure("AlreadyExists"))));
    assert.ok(!alreadyExists(answer(409, failure("Conflict"))));
    assert.ok(isConflict(answer(409, failure("Conflict"))));
    const otherUid = failure("Invalid", "", { causes: [{ field: "metadata.uid" }] });
    assert.ok(isConflict(answer(422, otherUid)));
    const invalid = failure("Invalid", "", {
      causes: [{ field: "metadata.uid" }, { field: "spec.address" }],
    });
    assert.ok(!isConflict(answer(422, invalid)));
    assert.ok(!isConflict(answer(422, failure("Invalid"))));
  });

  it("ask for a new list when the revision is too old or too new", () => {
    assert.ok(needsRelist(statusOf(failure("Expired"), 410)));
    assert.ok(needsRelist(statusOf({ code: 410 }, 200)));
    const causes = [{ reason: "ResourceVersionTooLarge" }];
    assert.ok(needsRelist(statusOf(failure("Timeout", "", { causes }), 504)));
    assert.ok(!needsRelist(statusOf(failure("Timeout"), 504)));
  });

  const faults: readonly (readonly [number, unknown, string, string])[] = [
    [
      500,
      failure("InternalError", "etcdserver: mvcc: database space exceeded"),
      "STORE_FULL",
      "with 500: etcdserver: mvcc: database space exceeded",
    ],
    [500, failure("InternalError", "no leader"), "STORE_UNAVAILABLE", "with 500: no leader"],
    [504, failure("Timeout", "timed out"), "TIMED_OUT", "with 504: timed out"],
    [
      403,
      failure(
        "Forbidden",
        'ipclaims is forbidden: User "x" cannot create resource "ipclaims" in API group "berth.dev"',
      ),
      "STORE_READ_ONLY",
      'with 403: ipclaims is forbidden: User "x" cannot create resource "ipclaims" in API group "berth.dev"; check roles',
    ],
    [
      403,
      failure("Forbidden", "a is forbidden: exceeded quota: claims, used: 5"),
      "WRITE_REFUSED",
      "with 403: a is forbidden: exceeded quota: claims, used: 5; release claims of the namespace that nobody needs, or raise the quota",
    ],
    [
      403,
      failure("Forbidden", "a is forbidden: shop is being terminated", {
        causes: [{ reason: "NamespaceTerminating" }],
      }),
      "WRITE_REFUSED",
      "with 403: a is forbidden: shop is being terminated; create it again when its namespace is there again",
    ],
    [
      404,
      failure("NotFound", 'namespaces "shop" not found', { name: "shop", kind: "namespaces" }),
      "WRITE_REFUSED",
      'with 404: namespaces "shop" not found; create the namespace first',
    ],
    [
      422,
      failure("Invalid", "a is forbidden: ValidatingAdmissionPolicy 'p' denied request: no"),
      "WRITE_REFUSED",
      "with 422: a is forbidden: ValidatingAdmissionPolicy 'p' denied request: no",
    ],
    [
      400,
      failure("", 'admission webhook "w" denied the request: no'),
      "WRITE_REFUSED",
      'with 400: admission webhook "w" denied the request: no',
    ],
    [
      409,
      failure("Conflict", "Operation cannot be fulfilled on resourcequotas"),
      "REVISION_CONFLICT",
      "with 409: Operation cannot be fulfilled on resourcequotas",
    ],
    [
      500,
      failure("InternalError", 'failed calling webhook "w": is forbidden: '),
      "STORE_UNAVAILABLE",
      'with 500: failed calling webhook "w": is forbidden: ',
    ],
    [401, failure("Unauthorized", "Unauthorized"), "STORE_UNAVAILABLE", "with 401: Unauthorized"],
    [404, "404 page not found\n", "STORE_UNAVAILABLE", "with 404: 404 page not found"],
    [422, failure("Invalid", "spec.pool is wrong"), "INTERNAL", "with 422: spec.pool is wrong"],
    [429, failure("TooManyRequests"), "STORE_UNAVAILABLE", "with 429"],
    [413, null, "INTERNAL", "with 413"],
  ];
  for (const [status, body, code, words] of faults) {
    it(`of ${status} ${words} are the fault ${code}`, () => {
      const fault = toBerthError({ status, body }, "create ipclaims shop/a");
      assert.equal(fault.message, `the API server refuses to create ipclaims shop/a ${words}`);
      assert.equal(fault.code, code);
    });
  }
});
