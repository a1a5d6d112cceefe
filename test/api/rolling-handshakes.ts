// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import type { RollingWebhook } from "./rolling-webhook.ts";

export interface Handshakes {
  readonly count: number;
  readonly failed: readonly string[];
  /** Different certificates, and different bundles, that took part. */
  readonly leaves: number;
  readonly bundles: number;
}

const EVERY_MS = 50;
/** Whom the API server asks for. */
const SERVER_NAME = "berth-webhook.berth-system.svc";

/**
 * New connections to each replica in turn, verified by each bundle that an API server may still go by: those that stood
 * in the configurations at most `lagMs` ago.
 */
export async function shakeHands(
  webhook: RollingWebhook,
  lagMs: number,
  stop: AbortSignal,
): Promise<Handshakes> {
  const failed: string[] = [];
  const [leaves, seen] = [new Set<string>(), new Set<string>()];
  let held: { readonly bundle: string; until: number }[] = [];
  let count = 0;
  for (let n = 0; !stop.aborted; n++) {
    const now = performance.now();
    const { bundles } = await webhook.objects();
    for (const text of new Set(bundles)) {
      const bundle = Buffer.from(text, "base64").toString();
      const known = held.find((one) => one.bundle === bundle);
      if (known === undefined) held.push({ bundle, until: now + lagMs });
      else known.until = now + lagMs;
      seen.add(bundle);
    }
    held = held.filter(({ until }) => until >= now);
    const replica = webhook.all[n % webhook.all.length];
    for (const { bundle } of held) {
      const { why, serial } = await shakeHand(replica?.port ?? 0, bundle);
      count++;
      leaves.add(serial);
      if (why !== undefined) failed.push(`${replica?.name}: ${why}`);
    }
    await pause(EVERY_MS);
  }
  return { count, failed, leaves: leaves.size, bundles: seen.size };
}

/** One handshake as a client that goes by this bundle. */
function shakeHand(port: number, ca: string): Promise<{ readonly why?: string; readonly serial: string }> {
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port, ca, servername: SERVER_NAME, rejectUnauthorized: false };
    const socket = connect(options, () => {
      const { serialNumber: serial } = socket.getPeerCertificate();
      const said = socket.authorizationError;
      socket.destroy();
      resolve(socket.authorized ? { serial } : { serial, why: String(said) });
    });
    socket.once("error", (error) => resolve({ serial: "", why: String(error) }));
  });
}
