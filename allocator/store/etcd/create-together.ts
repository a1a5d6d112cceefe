// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../base/errors.ts";
import type { Clock, Random } from "../../base/ports.ts";
import type { Claim } from "../../model/claim.ts";
import type { Reservation } from "../../model/reservation.ts";
import { keyOf } from "../codec.ts";
import type { ClaimCreated, Kind, Stored } from "../store.ts";
import type { EtcdClient } from "./client.ts";
import { etcdKey, headOf, textOf } from "./entry.ts";
import type { Creation, KeyValue } from "./messages.ts";

interface Parts {
  readonly client: Pick<EtcdClient, "createAll">;
  readonly clock: Pick<Clock, "now">;
  readonly random: Pick<Random, "token">;
  readonly prefix: string;
  /** One for each time that it may be sent. */
  readonly sends: Iterable<unknown>;
  readonly readAs: <K extends Kind>(kind: K, entry: KeyValue) => Stored<K>;
}

/**
 * A claim and its reservations in one transaction, each only if its key is not there. One whose answer was lost is sent again:
 * if the claim is there then with a `uid` that was sent, all of it was written, and with another one nothing.
 */
export async function createTogether(
  { client, clock, random, prefix, sends, readAs }: Parts,
  claim: Claim,
  reservations: readonly Reservation[],
): Promise<ClaimCreated> {
  const createdAt = Math.floor(clock.now());
  const sent = new Set<string>();
  let lost: BerthError | undefined;
  for (const _ of sends) {
    const write = random.token();
    sent.add(write);
    const head = { uid: write, createdAt, write };
    const creations: readonly Creation[] = [
      { key: etcdKey("claim", keyOf("claim", claim), prefix), value: textOf("claim", head, claim) },
      ...reservations.map((one) => ({
        key: etcdKey("reservation", keyOf("reservation", one), prefix),
        value: textOf("reservation", head, one),
      })),
    ];
    const answer = await client.createAll(creations);
    if (answer.kind === "lost") {
      lost = answer.error;
      continue;
    }
    const { done, revision, there } = answer;
    const made = done
      ? creations.map((one) => ({ ...one, createRevision: revision, modRevision: revision }))
      : there;
    const [first, ...rest] = made;
    const isOurs = done || (lost !== undefined && first !== undefined && sent.has(headOf(first).uid));
    const present = rest.filter((entry) => entry !== undefined);
    if (isOurs && first !== undefined && present.length === rest.length) {
      const stored = present.map((entry) => readAs("reservation", entry));
      return { kind: "created", claim: readAs("claim", first), reservations: stored };
    }
    const taken = reservations.filter((_one, i) => rest[i] !== undefined).map(({ address }) => address);
    return { kind: "exists", claim: first !== undefined, addresses: taken };
  }
  throw lost ?? new BerthError("INTERNAL", `etcd neither made claim ${keyOf("claim", claim)} nor has it`);
}
