// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { AT, attachment, database, failCommits, open, setUp } from "../testing/opened-journal.ts";
import { detached } from "./attachment.ts";
import { AttachmentCache } from "./attachment-cache.ts";

describe("attachments", () => {
  setUp();

  it("are published after they are written, and not when that fails", async () => {
    const attachments = new AttachmentCache(open());
    const one = attachment("a");
    const writing = attachments.commit({ put: [one] });
    assert.equal(attachments.get(one), undefined);
    await writing;
    assert.equal(attachments.get(one), one);
    const fault = new BerthError("STORE_FULL", "full");
    failCommits(fault);
    await assert.rejects(attachments.commit({ put: [detached(one, AT)] }), fault);
    assert.equal(attachments.get(one), one);
    assert.deepEqual([...attachments.held()].sort(), ["10.0.0.5", "fd00::5"]);
  });

  it("are found by place, by claim and by what has yet to be told, also after a restart", async () => {
    const [a, b] = [attachment("a"), detached(attachment("b", { claim: "shop/db-1" }), AT)];
    await new AttachmentCache(open()).commit({ put: [a, b] });
    database.close();
    const attachments = new AttachmentCache(open());
    assert.deepEqual(attachments.get(a), a);
    assert.deepEqual(attachments.ofClaim("shop/db-0"), [a]);
    assert.deepEqual(attachments.ofClaim("shop/db-1"), []);
    assert.deepEqual(attachments.unreported(), [b]);
    assert.deepEqual(attachments.attached(), [a]);
    await attachments.commit({ reported: [b] });
    assert.deepEqual(attachments.unreported(), []);
    await attachments.commit({ put: [detached(a, AT)] });
    assert.deepEqual([attachments.ofClaim("shop/db-0"), attachments.held()], [[], []]);
    await attachments.commit({ forgotten: [a, b] });
    assert.deepEqual([attachments.get(a)?.state, attachments.get(b)], ["detached", undefined]);
  });

  it("are found by their pod, in every sandbox that it had, until they are forgotten", async () => {
    const [a, b] = [detached(attachment("a"), AT), attachment("b")];
    const other = attachment("c", { pod: { namespace: "shop", name: "db-0", uid: "u2" } });
    await new AttachmentCache(open()).commit({ put: [a, b, other] });
    database.close();
    const attachments = new AttachmentCache(open());
    assert.deepEqual(attachments.ofPod("u1"), [a, b]);
    assert.deepEqual(attachments.ofPod("u2"), [other]);
    await attachments.commit({
      put: [detached(b, AT), { ...other, ...(b.pod === undefined ? {} : { pod: b.pod }) }],
    });
    assert.deepEqual(
      attachments.ofPod("u1").map(({ containerID, state }) => [containerID, state]),
      [
        ["a", "detached"],
        ["b", "detached"],
        ["c", "attached"],
      ],
    );
    assert.deepEqual(attachments.ofPod("u2"), []);
    await attachments.commit({ reported: [a, b], forgotten: [a, b] });
    assert.deepEqual(
      attachments.ofPod("u1").map(({ containerID }) => containerID),
      ["c"],
    );
  });

  it("are known by their container and interface in any network until they are forgotten, and none is looked at for that", async () => {
    const attachments = new AttachmentCache(open());
    const [a, b] = [detached(attachment("a"), AT), attachment("b")];
    const elsewhere = { ...a, scope: { ...a.scope, network: "other" } };
    let looks = 0;
    const lookedAt = () => {
      looks++;
      return "b";
    };
    const counted = Object.defineProperty({ ...b }, "containerID", { get: lookedAt });
    await attachments.commit({ put: [a, elsewhere, counted] });
    const known = () =>
      ["a eth0", "a net1", "b eth0", "c eth0"].filter((one) => {
        const [containerID = "", name = ""] = one.split(" ");
        return attachments.knows({ containerID, interface: name });
      });
    looks = 0;
    assert.deepEqual([known(), looks], [["a eth0", "b eth0"], 0]);
    await attachments.commit({ reported: [a], forgotten: [a] });
    assert.deepEqual(known(), ["a eth0", "b eth0"], "in the other network");
    await attachments.commit({ reported: [elsewhere], forgotten: [elsewhere] });
    assert.deepEqual(known(), ["b eth0"]);
  });

  it("let those go on who wait for a detachment", async () => {
    const attachments = new AttachmentCache(open());
    const one = attachment("a");
    const { signal } = new AbortController();
    await attachments.untilDetached(one, signal);
    await attachments.commit({ put: [one] });
    const waiting = [attachments.untilDetached(one, signal), attachments.untilDetached(one, signal)];
    await attachments.commit({ put: [detached(one, AT)] });
    await Promise.all(waiting);
    await attachments.commit({ put: [one] });
    const gone = new AbortController();
    const given = attachments.untilDetached(one, gone.signal);
    gone.abort();
    await given;
    await attachments.untilDetached(one, gone.signal);
    assert.equal(attachments.get(one), one);
  });
});
