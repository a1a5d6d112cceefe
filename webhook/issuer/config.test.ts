// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configOf } from "./config.ts";

const LEAST = { BERTH_NAMESPACE: "berth-system", BERTH_KUBECONFIG: "/tmp/config" };
const [HOUR, DAY] = [3_600_000, 86_400_000];

describe("the issuer's environment", () => {
  it("needs little", () => {
    const { secrets, service, leafMs, authorityMs, port, podName, ...rest } = configOf(LEAST, "host");
    assert.equal("host" in rest, false, "every address");
    assert.deepEqual(secrets, {
      ...{ namespace: "berth-system", authority: "berth-webhook-ca", served: "berth-webhook-tls" },
    });
    assert.deepEqual([service, leafMs, authorityMs], ["berth-webhook", 90 * DAY, 3_650 * DAY]);
    assert.deepEqual([port, podName], [9470, "host"]);
  });

  it("says how long certificates last", () => {
    const env = { ...LEAST, BERTH_LEAF_LIFE: "1h", BERTH_AUTHORITY_LIFE: "3h", BERTH_CA_SECRET: "ca" };
    const { leafMs, authorityMs, secrets } = configOf(env, "host");
    assert.deepEqual([leafMs, authorityMs, secrets.authority], [HOUR, 3 * HOUR, "ca"]);
  });

  it("is refused by the name of the variable, with what to write instead", () => {
    const wrong = (env: Record<string, string>, message: string) =>
      assert.throws(() => configOf({ ...LEAST, ...env }, "host"), { code: "CONFIG_INVALID", message });
    wrong({ BERTH_NAMESPACE: "" }, "BERTH_NAMESPACE is not set; give it the namespace that berth runs in");
    const least = "; give it a duration such as 2160h,";
    wrong({ BERTH_LEAF_LIFE: "4s" }, `BERTH_LEAF_LIFE is "4s"${least} 5s at least`);
    wrong({ BERTH_LEAF_LIFE: "90d" }, `BERTH_LEAF_LIFE is "90d"${least} 5s at least`);
    wrong(
      { BERTH_LEAF_LIFE: "1h", BERTH_AUTHORITY_LIFE: "2h59m" },
      `BERTH_AUTHORITY_LIFE is "2h59m"${least} 3h at least`,
    );
  });
});
