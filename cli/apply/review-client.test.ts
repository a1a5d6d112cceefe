// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { describe, it } from "node:test";
import { stackFileOf } from "../backend/stack-file.ts";
import { Folder } from "../testing/folder.ts";
import { type Answer, type ReviewInput, readAnswer, withWebhook } from "./review-client.ts";

const QUESTION: ReviewInput = {
  kind: { group: "", version: "v1", kind: "Pod" },
  resource: { group: "", version: "v1", resource: "pods" },
  name: "web",
  namespace: "shop",
  operation: "CREATE",
  object: { kind: "Pod" },
  oldObject: null,
  dryRun: true,
};

function review(response: unknown): string {
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response });
}

function patch(ops: unknown): string {
  return Buffer.from(JSON.stringify(ops)).toString("base64");
}

describe("readAnswer", () => {
  it("reads a patch and warnings", () => {
    const ops = [{ op: "add", path: "/metadata/annotations", value: { a: "b" } }];
    const response = { uid: "u", allowed: true, patchType: "JSONPatch", patch: patch(ops), warnings: ["w"] };
    assert.deepEqual(readAnswer(review(response), "u"), {
      ...{ denied: "", code: "", isFault: false },
      patch: ops,
      warnings: ["w"],
    });
  });

  it("reads a refusal, one without words too", () => {
    const denied = { uid: "u", allowed: false, status: { message: "taken" } };
    assert.equal(readAnswer(review(denied), "u").denied, "taken");
    assert.equal(readAnswer(review({ uid: "u" }), "u").denied, "refused without a reason");
  });

  for (const [code, isFault] of [
    [403, false],
    [422, false],
    [500, true],
    [503, true],
  ] as const) {
    it(`takes a status of ${code} for ${isFault ? "a fault" : "a refusal"}`, () => {
      const denied = { uid: "u", allowed: false, status: { message: "full", code } };
      assert.equal(readAnswer(review(denied), "u").isFault, isFault);
    });
  }

  it("lets through what is allowed, whatever its status says", () => {
    assert.equal(readAnswer(review({ uid: "u", allowed: true, status: { code: 500 } }), "u").isFault, false);
  });

  for (const [text, why] of [
    ["<html>", "it is not JSON"],
    ["{}", "it is no AdmissionReview"],
    [review({ uid: "other", allowed: true }), "it has another uid"],
    [review({ uid: "u", allowed: true, patch: "%%" }), "its patch is not JSON"],
    [review({ uid: "u", allowed: true, patch: patch({}) }), "its patch is no list"],
    [
      review({ uid: "u", allowed: true, patch: patch([{ op: "remove", path: "/spec" }]) }),
      "its patch has an operation that the webhook does not make",
    ],
  ] as const) {
    it(`does not take ${text} for an answer`, () => {
      const message = `the webhook's answer cannot be used: ${why}`;
      assert.throws(() => readAnswer(text, "u"), { code: "INTERNAL", message });
    });
  }
});

const STACK = { pid: 1, webhook: "https://127.0.0.1:1", ca: "ca.crt", socket: "", node: "a" };

/** A server of this host that keeps the bodies it was sent, and answers each with `answer`. */
async function serve(
  folder: Folder,
  answer: (uid: string) => string,
): Promise<{ bodies: unknown[]; server: Server }> {
  const bodies: unknown[] = [];
  const server = createServer(async (request, response) => {
    const body = (await json(request)) as { request: { uid: string } };
    bodies.push({ url: request.url, type: request.headers["content-type"], body });
    response.end(answer(body.request.uid));
  });
  const reviews = join(folder.dataDir, "reviews.sock");
  server.listen(reviews);
  await once(server, "listening");
  await writeFile(stackFileOf(folder.dataDir), JSON.stringify({ ...STACK, reviews }));
  return { bodies, server };
}

function ask(folder: Folder): Promise<Answer> {
  return withWebhook({ ...folder.context(), waitMs: 0 }, ({ review: send }) =>
    send("/mutate/pods", QUESTION),
  );
}

describe("withWebhook", () => {
  it("sends what an API server sends", async (t) => {
    const folder = await Folder.empty(t);
    const { bodies, server } = await serve(folder, (uid) => review({ uid, allowed: true }));
    try {
      assert.deepEqual(await ask(folder), { denied: "", code: "", isFault: false, patch: [], warnings: [] });
    } finally {
      server.close();
    }
    const { kind, resource } = QUESTION;
    assert.deepEqual(bodies, [
      {
        url: "/mutate/pods",
        type: "application/json",
        body: {
          apiVersion: "admission.k8s.io/v1",
          kind: "AdmissionReview",
          request: {
            uid: "uuid-1",
            requestKind: kind,
            requestResource: resource,
            ...QUESTION,
            userInfo: { username: "tester", groups: ["system:authenticated"] },
            options: { apiVersion: "meta.k8s.io/v1", kind: "CreateOptions" },
          },
        },
      },
    ]);
  });

  it("finds no stack behind a file that a killed one left", async (t) => {
    const folder = await Folder.empty(t);
    const { server } = await serve(folder, () => "");
    server.close();
    await once(server, "close");
    const { dataDir } = folder;
    await assert.rejects(ask(folder), {
      code: "NOT_READY",
      message: `no berth stack runs on ${dataDir}; start one with: berthctl up --data ${dataDir}`,
    });
  });

  it("gives up an answer that is too long", async (t) => {
    const folder = await Folder.empty(t);
    const { server } = await serve(folder, () => "x".repeat(4 * 1024 * 1024));
    try {
      await assert.rejects(ask(folder), { code: "STORE_UNAVAILABLE", message: /the answer is too long/ });
    } finally {
      server.close();
    }
  });

  for (const [text, message] of [
    ["{", /stack\.json cannot be read \(.*\); delete it if no stack runs/],
    ["{}", /stack\.json cannot be read \(it names no webhook\)/],
  ] as const) {
    it(`names a stack file that holds ${text}`, async (t) => {
      const folder = await Folder.empty(t);
      await writeFile(stackFileOf(folder.dataDir), text);
      await assert.rejects(ask(folder), { code: "CONFIG_INVALID", message });
    });
  }

  it("says so when the stack is of a version that had no socket", async (t) => {
    const folder = await Folder.empty(t);
    await writeFile(stackFileOf(folder.dataDir), JSON.stringify(STACK));
    await assert.rejects(ask(folder), { code: "NOT_READY", message: /of an older version; restart it with/ });
  });

  const isRoot = process.getuid?.() === 0;
  it("says who may ask", { skip: isRoot ? "root may" : false }, async (t) => {
    const folder = await Folder.empty(t);
    const { server } = await serve(folder, () => "");
    try {
      await chmod(join(folder.dataDir, "reviews.sock"), 0);
      const message = /reviews\.sock is closed to you \(.*\); run as the user that started the stack$/;
      await assert.rejects(ask(folder), { code: "STORE_UNAVAILABLE", message });
    } finally {
      server.close();
    }
  });
});
