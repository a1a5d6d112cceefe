// SPDX-License-Identifier: Apache-2.0
// Who comes from another tool asks for what that calls it: kubectl, calicoctl, ipcalc, DNS.

/** The words of other tools for each command. No word is of two. */
const OTHER_WORDS: Readonly<Record<string, readonly string[]>> = {
  up: ["start", "run", "serve"],
  down: ["stop"],
  apply: ["create", "add"],
  delete: ["remove", "rm"],
  get: ["list", "ls", "show", "print", "view", "pools", "claims", "reservations", "blocks"],
  who: ["whois", "where", "find", "lookup", "search", "which", "owner", "ip", "ipam"],
  explain: ["describe", "why", "inspect", "diagnose", "debug", "events"],
  check: ["status", "verify", "validate", "doctor", "health", "audit", "consistency"],
  release: ["free", "unreserve", "deallocate", "unassign", "unbind", "return"],
  reserve: ["allocate", "assign", "hold", "pin"],
  import: ["migrate"],
  version: ["-v", "-V"],
};

/** The command of `commands` that another tool calls `word`. */
export function commandCalled(word: string, commands: readonly string[]): string | undefined {
  return commands.find((command) => OTHER_WORDS[command]?.includes(word));
}

/** What `get` lists under another name. */
const OTHER_LISTINGS: Readonly<Record<string, readonly string[]>> = {
  reservations: ["addresses", "address", "ips", "ip", "leases", "allocations"],
  claims: ["ipamclaims", "ipamclaim"],
};

/** The listing of `listings` that other tools call `word`. */
export function listingCalled(word: string, listings: readonly string[]): string | undefined {
  return listings.find((listing) => OTHER_LISTINGS[listing]?.includes(word));
}
