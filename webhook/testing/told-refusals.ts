// SPDX-License-Identifier: Apache-2.0
// What a user is told who may read this and that.
import { pod, review } from "../../test/support/objects.ts";
import type { World } from "../../test/support/world.ts";
import type { ReadAccess, Subject } from "../admission/disclosure.ts";
import { createHandlers } from "../admission/routes.ts";
import { codeOf, type UserInfo } from "../review/admission-review.ts";

export const MINE = { username: "tenant", uid: "1", groups: ["system:authenticated"] };

export const CONTROLLER = {
  username: "system:serviceaccount:kube-system:statefulset-controller",
  uid: "2",
  groups: ["system:serviceaccounts"],
};

/** What a pod of a namespace that asks for an address is told; `may` says what the user may read. */
export async function toldTo(
  world: World,
  may: readonly Subject[] | "all",
  asks: {
    readonly namespace: string;
    readonly ips?: string;
    readonly pools?: string;
    readonly user?: UserInfo;
  },
): Promise<string> {
  const readAccess: ReadAccess = {
    mayRead: async (_, subject) =>
      may === "all" || may.some((one) => JSON.stringify(one) === JSON.stringify(subject)),
  };
  const { namespace, ips, pools, user = MINE } = asks;
  const annotations = {
    ...(ips === undefined ? {} : { "berth.dev/ips": ips }),
    ...(pools === undefined ? {} : { "berth.dev/pools": pools }),
  };
  const object = pod("curious", { namespace, annotations });
  const request = review(object, "CREATE", { namespace, userInfo: user });
  const handle = createHandlers({ ...world.admission, readAccess })["/mutate/pods"];
  const response = await handle(request, new AbortController().signal);
  return `${codeOf(response)}: ${response.status?.message ?? "allowed"}`;
}

export const CLAIMS_OF_BANK: Subject = { verb: "get", resource: "ipclaims", namespace: "bank" };
export const POOLS: Subject = { verb: "list", resource: "ippools", namespace: "" };
export const BLOCKS: Subject = { verb: "list", resource: "ipblocks", namespace: "" };
