// SPDX-License-Identifier: Apache-2.0

/** As the API server words it, in an answer of 500: who was not reached, where, and why. */
const UNREACHED = /failed calling webhook "([^"]*)": (?:failed to call webhook: )?(.*)$/s;
const URL_CALLED = /^(?:Post|Get) "([^"]*)": /;
const SERVICE = /^https:\/\/([^./]+)\.([^./]+)\.svc\b/;

/** A firewall or a certificate then, of which no pod shows anything. */
const IF_READY = "; if one is already: docs/troubleshooting.md, `kubectl apply` hangs";

/** What to tell whose write the API server refuses because it could not ask a webhook; undefined: the message is about something else. */
export function adviceOnUnreached(message: string): string | undefined {
  const [, webhook, said = ""] = UNREACHED.exec(message) ?? [];
  if (webhook === undefined) return undefined;
  const [called = "", url = ""] = URL_CALLED.exec(said) ?? [];
  const why = said.slice(called.length);
  if (!webhook.endsWith(".berth.dev"))
    return `the API server could not ask webhook ${webhook}, which is not Berth's: ${why}; the write was refused; whose it is: kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations`;
  const [, , namespace] = SERVICE.exec(url) ?? [];
  const where = namespace === undefined ? "-A" : `-n ${namespace}`;
  return `Berth's webhook, without which no claim is made, changed or released, could not be reached by the API server: ${why}; the write was refused; see: kubectl get pods ${where} -l app.kubernetes.io/name=berth, and say the same again when one is ready${IF_READY}`;
}
