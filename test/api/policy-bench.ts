// SPDX-License-Identifier: Apache-2.0
// An API server with Berth's kinds, accounts and policies, and with no webhook.
import assert from "node:assert/strict";
import type { Store } from "../../allocator/store/store.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, collectionPath, PODS, POOLS, RESERVATIONS } from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import type { Json } from "../support/objects.ts";
import { connectAs, installAccounts, installPolicies } from "./accounts.ts";
import { merge } from "./agent-calls.ts";
import { installDefinitions } from "./crds.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";
import { makeNamespace } from "./replica-objects.ts";
import { openControlPlane } from "./shared-plane.ts";

export class PolicyBench {
  readonly plane: ControlPlane;
  /** Who may do everything that the policies do not forbid. */
  readonly admin: Connection;
  readonly webhook: Connection;
  /** With the rights of the webhook. */
  readonly store: Store;

  private constructor(plane: ControlPlane, webhook: Connection) {
    this.plane = plane;
    this.admin = plane.connect();
    this.webhook = webhook;
    this.store = openStore(webhook);
  }

  /** There is a namespace `shop`. */
  static async start(): Promise<PolicyBench> {
    const plane = await openControlPlane();
    try {
      const admin = plane.connect();
      await installDefinitions(admin);
      await installAccounts(admin);
      await installPolicies(admin, undefined, "all");
      await makeNamespace(admin, "shop", {});
      return new PolicyBench(plane, await connectAs(plane, "berth-webhook"));
    } catch (error) {
      await plane.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.store.close();
    await this.plane.close();
  }

  /** "" when it was done; "policy: words" when a policy refuses; else the status and why. */
  outcome({ status, body }: { readonly status: number; readonly body: unknown }): string {
    if (status < 300) return "";
    const { message } = statusOf(body, status);
    const denial = /^.*ValidatingAdmissionPolicy '([^']*)' with binding '[^']*' denied request: (.*)$/s.exec(
      message,
    );
    return denial === null ? `${status} ${message}` : `${denial[1]}: ${denial[2]}`;
  }

  /** What comes of it when the administrator creates the object. */
  async create(object: Json, query: Readonly<Record<string, string>> = {}): Promise<string> {
    const { namespace } = object["metadata"] as { readonly namespace?: string };
    const resource = [PODS, POOLS, CLAIMS, RESERVATIONS].find(({ kind }) => kind === object["kind"]);
    assert.ok(resource);
    const path = collectionPath(resource, namespace);
    return this.outcome(await this.admin.call({ method: "POST", path, query, body: object }));
  }

  /** The same of a merge patch. */
  async patch(path: string, body: object, connection = this.admin): Promise<string> {
    return this.outcome(await connection.call(merge(path, body)));
  }
}
