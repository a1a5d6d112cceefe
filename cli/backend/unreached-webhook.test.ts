// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { adviceOnUnreached } from "./unreached-webhook.ts";

const REFUSED =
  'the API server refuses to create ipclaims shop/vip with 500: Internal error occurred: failed calling webhook "claims.berth.dev": failed to call webhook: Post "https://berth-webhook.berth-system.svc:443/validate/claims?timeout=10s": ';
const AGAIN =
  "and say the same again when one is ready; if one is already: docs/troubleshooting.md, `kubectl apply` hangs";
const rest = (why: string, where: string) =>
  `Berth's webhook, without which no claim is made, changed or released, could not be reached by the API server: ${why}; the write was refused; see: kubectl get pods ${where} -l app.kubernetes.io/name=berth, ${AGAIN}`;

describe("a webhook that the API server cannot reach", () => {
  for (const [message, words] of [
    [
      `${REFUSED}no endpoints available for service "berth-webhook"`,
      rest('no endpoints available for service "berth-webhook"', "-n berth-system"),
    ],
    [`${REFUSED}context deadline exceeded`, rest("context deadline exceeded", "-n berth-system")],
    [
      'failed calling webhook "claims.berth.dev": Post "https://10.0.0.5:8443/validate/claims": dial tcp 10.0.0.5:8443: connect: connection refused',
      rest("dial tcp 10.0.0.5:8443: connect: connection refused", "-A"),
    ],
    [
      `${REFUSED}tls: failed to verify certificate: x509: certificate signed by unknown authority`,
      rest(
        "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        "-n berth-system",
      ),
    ],
    [
      'failed calling webhook "policy.example.com": failed to call webhook: Post "https://p.policy.svc:443/v?timeout=5s": EOF',
      "the API server could not ask webhook policy.example.com, which is not Berth's: EOF; the write was refused; whose it is: kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations",
    ],
    ['admission webhook "claims.berth.dev" denied the request: no', undefined],
    ["etcdserver: leader changed", undefined],
  ] as const)
    it(`is told with what to do: ${message.slice(-40)}`, () =>
      assert.equal(adviceOnUnreached(message), words));
});
