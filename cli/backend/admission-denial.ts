// SPDX-License-Identifier: Apache-2.0

/** As the API server words the refusal of a webhook, and that of a ValidatingAdmissionPolicy. */
const WEBHOOK = /admission webhook "[^"]*" denied the request: /;
const POLICY = /ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request: /;

/** What admission itself says in the API server's message, which begins with who it was; undefined: it is none. */
export function parseDenial(message: string): string | undefined {
  const found = WEBHOOK.exec(message) ?? POLICY.exec(message);
  if (found === null) return undefined;
  return message.slice(found.index + found[0].length);
}
