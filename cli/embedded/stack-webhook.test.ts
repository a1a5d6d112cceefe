// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { connect } from "node:tls";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createRandom } from "../../system/random.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { eventually } from "../../test/support/eventually.ts";
import { startStack } from "./stack.ts";

const MINUTE_MS = 60_000;
const YEAR_MS = 365 * 86_400_000;

/** A wall clock that can be set, as a host's can, beside time that passes. */
class SetClock extends ManualClock {
  aheadMs = 0;

  override now(): number {
    return super.now() + this.aheadMs;
  }
}

async function stackBy(t: TestContext, clock: SetClock) {
  const dataDir = join(await mkdtemp(join(tmpdir(), "berth-stack-")), "data");
  const stack = await startStack({ dataDir, clock, random: createRandom(), log: noopLogger });
  t.after(async () => {
    await stack.close();
    await rm(join(dataDir, ".."), { recursive: true });
  });
  return { stack, tls: join(dataDir, "tls") };
}

/** The certificate that the port shows. */
async function shownAt(url: string): Promise<X509Certificate> {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { raw } = socket.getPeerCertificate();
  socket.destroy();
  return new X509Certificate(raw);
}

const isValid = (of: X509Certificate, now: number) =>
  of.validFromDate.getTime() <= now && now < of.validToDate.getTime();

describe("a stack's certificates", () => {
  for (const [what, before, after] of [
    ["is set back", YEAR_MS, 0],
    ["is set ahead, or stood still while the host was suspended", 0, YEAR_MS],
  ] as const) {
    it(`are valid within a minute after the host's clock ${what}`, async (t) => {
      const clock = new SetClock();
      clock.aheadMs = before;
      const { stack, tls } = await stackBy(t, clock);
      assert.ok(isValid(await shownAt(stack.webhookUrl), clock.now()));
      clock.aheadMs = after;
      clock.advance(MINUTE_MS);
      await eventually("the port shows a valid certificate", async () =>
        isValid(await shownAt(stack.webhookUrl), clock.now()) ? true : undefined,
      );
      for (const name of ["ca", "tls", "client"]) {
        const found = new X509Certificate(await readFile(join(tls, `${name}.crt`)));
        assert.ok(isValid(found, clock.now()), name);
      }
    });
  }
});
