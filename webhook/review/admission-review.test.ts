// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { allowed, codeOf, denied, errored, parseReview, patched, reviewOf } from "./admission-review.ts";

const UID = "705ab4f5-6393-11e8-b7cc-42010a800002";

/** As an API server writes it. */
function podCreate(changes: Record<string, unknown> = {}) {
  return {
    kind: "AdmissionReview",
    apiVersion: "admission.k8s.io/v1",
    request: {
      uid: UID,
      kind: { group: "", version: "v1", kind: "Pod" },
      resource: { group: "", version: "v1", resource: "pods" },
      requestKind: { group: "", version: "v1", kind: "Pod" },
      requestResource: { group: "", version: "v1", resource: "pods" },
      name: "mysql-0",
      namespace: "shop",
      operation: "CREATE",
      userInfo: {
        username: "system:serviceaccount:kube-system:statefulset-controller",
        uid: "u",
        groups: ["g"],
      },
      object: { metadata: { name: "mysql-0" } },
      oldObject: null,
      dryRun: true,
      options: {},
      ...changes,
    },
  };
}

describe("parseReview", () => {
  it("reads what the API server sends", () => {
    assert.deepEqual(parseReview(podCreate()), {
      request: {
        uid: UID,
        operation: "CREATE",
        kind: { group: "", version: "v1", kind: "Pod" },
        resource: { group: "", version: "v1", resource: "pods" },
        subResource: "",
        name: "mysql-0",
        namespace: "shop",
        userInfo: {
          username: "system:serviceaccount:kube-system:statefulset-controller",
          uid: "u",
          groups: ["g"],
        },
        object: { metadata: { name: "mysql-0" } },
        oldObject: null,
        dryRun: true,
      },
    });
  });

  it("takes what is left out as empty: name of a generateName pod, sub-resource, user, dry run, objects", () => {
    const { request } = podCreate();
    const { uid, kind, resource, operation } = request;
    const parsed = parseReview({ ...podCreate(), request: { uid, kind, resource, operation } });
    assert.ok("request" in parsed);
    const { name, namespace, subResource, userInfo, object, oldObject, dryRun } = parsed.request;
    assert.deepEqual(
      { name, namespace, subResource, userInfo, object, oldObject, dryRun },
      {
        name: "",
        namespace: "",
        subResource: "",
        userInfo: { username: "", uid: "", groups: [] },
        object: null,
        oldObject: null,
        dryRun: false,
      },
    );
  });

  it("takes only true for a dry run, and only texts for groups", () => {
    const parsed = parseReview(podCreate({ dryRun: "yes", userInfo: { groups: ["a", 1, null, "b"] } }));
    assert.ok("request" in parsed);
    assert.equal(parsed.request.dryRun, false);
    assert.deepEqual(parsed.request.userInfo.groups, ["a", "b"]);
  });

  const v1 = "admission.k8s.io/v1";
  for (const { name, body, invalid, uid = UID, apiVersion = v1 } of [
    { name: "null", body: null, invalid: "apiVersion is another", uid: "" },
    { name: "a list", body: [podCreate()], invalid: "apiVersion is another", uid: "" },
    { name: "a text", body: "AdmissionReview", invalid: "apiVersion is another", uid: "" },
    {
      name: "another version, which is echoed",
      body: { ...podCreate(), apiVersion: "admission.k8s.io/v1beta1" },
      invalid: "apiVersion is another",
      apiVersion: "admission.k8s.io/v1beta1",
    },
    {
      name: "another group, which is not echoed",
      body: { ...podCreate(), apiVersion: "v1" },
      invalid: "apiVersion is another",
    },
    { name: "another kind", body: { ...podCreate(), kind: "Pod" }, invalid: "kind is another" },
    {
      name: "a response instead of a request",
      body: { apiVersion: v1, kind: "AdmissionReview", response: { uid: UID, allowed: true } },
      invalid: "request.uid is missing, empty or too long",
      uid: "",
    },
    {
      name: "a uid that is a number",
      body: podCreate({ uid: 7 }),
      invalid: "request.uid is missing, empty or too long",
      uid: "",
    },
    {
      name: "a uid of 129 characters",
      body: podCreate({ uid: "u".repeat(129) }),
      invalid: "request.uid is missing, empty or too long",
      uid: "",
    },
    {
      name: "no operation",
      body: podCreate({ operation: undefined }),
      invalid: "request.operation is unknown",
    },
    {
      name: "another operation",
      body: podCreate({ operation: "toString" }),
      invalid: "request.operation is unknown",
    },
    { name: "no kind", body: podCreate({ kind: null }), invalid: "request.kind is missing" },
    { name: "a kind in pieces", body: podCreate({ kind: ["Pod"] }), invalid: "request.kind is missing" },
    { name: "no resource", body: podCreate({ resource: {} }), invalid: "request.resource is missing" },
  ]) {
    it(`refuses ${name}`, () => {
      assert.deepEqual(parseReview(body), {
        invalid: `the body is no admission.k8s.io/v1 AdmissionReview: ${invalid}`,
        uid,
        apiVersion,
      });
    });
  }

  it("never throws, and echoes any uid that is a text of up to 128 characters", () => {
    const envelope = fc.record(
      {
        apiVersion: fc.oneof(fc.constant(v1), fc.jsonValue()),
        kind: fc.oneof(fc.constant("AdmissionReview"), fc.jsonValue()),
        request: fc.oneof(
          fc.jsonValue(),
          fc.record(
            {
              uid: fc.oneof(fc.constant(UID), fc.string({ maxLength: 200 }), fc.jsonValue()),
              operation: fc.oneof(fc.constantFrom("CREATE", "DELETE"), fc.jsonValue()),
              kind: fc.oneof(fc.constant({ kind: "Pod" }), fc.jsonValue()),
              resource: fc.oneof(fc.constant({ resource: "pods" }), fc.jsonValue()),
              userInfo: fc.jsonValue(),
              object: fc.jsonValue(),
            },
            { requiredKeys: [] },
          ),
        ),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(envelope, fc.jsonValue()), (body) => {
        const parsed = parseReview(body);
        const sent: unknown = JSON.parse(JSON.stringify(body))?.request?.uid;
        const expected = typeof sent === "string" && sent.length <= 128 ? sent : "";
        assert.equal("request" in parsed ? parsed.request.uid : parsed.uid, expected);
      }),
    );
  });
});

describe("responses", () => {
  it("allow", () => {
    assert.deepEqual(allowed(UID), { uid: UID, allowed: true });
    assert.deepEqual(allowed(UID, ["beware\n"]), { uid: UID, allowed: true, warnings: ["beware"] });
  });

  it("patch, as base64 of the operations", () => {
    const response = patched(
      UID,
      [{ op: "add", path: "/metadata/annotations", value: { a: "ü" } }],
      ["beware"],
    );
    assert.deepEqual(response, {
      uid: UID,
      allowed: true,
      patchType: "JSONPatch",
      patch: response.patch,
      warnings: ["beware"],
    });
    assert.equal(
      Buffer.from(response.patch ?? "", "base64").toString(),
      '[{"op":"add","path":"/metadata/annotations","value":{"a":"ü"}}]',
    );
  });

  it("patch nothing: no patchType either, which the API server would take for a failed call", () => {
    assert.deepEqual(patched(UID, [], ["beware"]), { uid: UID, allowed: true, warnings: ["beware"] });
  });

  it("quotes whatever it was sent in one line that somebody can read", () => {
    const words = (message: string) => denied(UID, { code: "ADDRESS_TAKEN", message }).status?.message ?? "";
    assert.equal(words("a\u0000b\r\nc\u007f\u2028d"), "a b c d");
    const long = words(`the object is a ${"\u{1f6a2}".repeat(70_000)}`);
    assert.ok(Buffer.byteLength(long) <= 2_048 && long.endsWith("\u{1f6a2}..."));
  });

  it("deny with 403 and the refusal's words and code", () => {
    const refusal = { code: "ADDRESS_TAKEN", message: "address 10.0.0.7 is held by prod/db-1" } as const;
    const response = denied(UID, refusal);
    assert.deepEqual(response, {
      uid: UID,
      allowed: false,
      status: {
        status: "Failure",
        code: 403,
        reason: "Forbidden",
        message: "address 10.0.0.7 is held by prod/db-1",
        details: { causes: [{ reason: "ADDRESS_TAKEN", message: "address 10.0.0.7 is held by prod/db-1" }] },
      },
    });
    assert.equal(codeOf(response), "ADDRESS_TAKEN");
    assert.deepEqual(
      [denied(UID, refusal, 422).status?.code, denied(UID, refusal, 422).status?.reason],
      [422, "Invalid"],
    );
  });

  it("err with 500 and no code, unless they are given", () => {
    assert.deepEqual(errored(UID, "internal error"), {
      uid: UID,
      allowed: false,
      status: { status: "Failure", code: 500, reason: "InternalError", message: "internal error" },
    });
    const response = errored("", "too large", { httpCode: 413, code: "INTERNAL" });
    assert.deepEqual([response.uid, response.status?.code, codeOf(response)], ["", 413, "INTERNAL"]);
    assert.equal(response.status?.reason, "RequestEntityTooLarge");
  });

  it("travel in a review of the version that was asked", () => {
    assert.deepEqual(reviewOf(allowed(UID)), {
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      response: { uid: UID, allowed: true },
    });
    assert.equal(reviewOf(allowed(UID), "admission.k8s.io/v1beta1").apiVersion, "admission.k8s.io/v1beta1");
  });
});
