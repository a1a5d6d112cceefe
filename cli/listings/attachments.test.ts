// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim } from "../../allocator/model/claim.ts";
import { attachmentOf, bindingTo, claimRecord } from "../../test/support/fixtures.ts";
import { usesOf } from "../backend/attachment-report.ts";
import type { Backend } from "../backend/backend.ts";
import { attachments } from "./attachments.ts";

function boundTo(name: string, over: Partial<Claim> = {}): Claim {
  return claimRecord({ name, binding: bindingTo(name, "node-a"), ...over });
}

async function remarkOn(...claims: readonly Claim[]): Promise<string> {
  const backend = {
    place: "cluster",
    node: "",
    claims: async () => claims.map((record) => ({ record })),
    uses: async (of: Iterable<Claim>) => usesOf(of),
  } as unknown as Backend;
  const query = { format: "table", namespace: "shop", name: undefined } as const;
  const shown = await attachments.show(backend, query, 0, async () => {});
  return shown.kind === "shown" ? shown.remark : assert.fail(shown.message);
}

describe("the attachments of a cluster", () => {
  it("say of how many claims nobody reports a sandbox, nor its end", async () => {
    const up = boundTo("mysql-0", { status: { attachment: attachmentOf("mysql-0") } });
    const ended = boundTo("mysql-1", { status: { attachment: attachmentOf("mysql-1", { detached: true }) } });
    const words =
      "of shop/mysql-2 no sandbox is reported, nor that one has ended: berthctl explain claim/shop/mysql-2";
    assert.equal(await remarkOn(up, ended, claimRecord({ name: "mysql-3" })), "");
    assert.equal(await remarkOn(up, ended, boundTo("mysql-2")), words);
    const three = await remarkOn(up, boundTo("mysql-4"), boundTo("mysql-2"), boundTo("mysql-5"));
    assert.equal(three, words.replace("mysql-2 no", "mysql-2 and 2 other claims no"));
    assert.equal(
      await remarkOn(boundTo("mysql-2")),
      `no attachments in namespace shop; see those of all with -A\n${words}`,
    );
  });
});
