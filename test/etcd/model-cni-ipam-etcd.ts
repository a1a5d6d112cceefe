// SPDX-License-Identifier: Apache-2.0
// A model of how cni-ipam-etcd reserves an address, for comparison: its module is not to be had any more, so this is written from a
// description of its source (@51da631). Each call is a process with a connection of its own. The ranges are written at each call; a
// lock, a key with a lease of 10 s, is tried for 20 times, 2 s apart; under it the address is read and then put.
import { setTimeout as pause } from "node:timers/promises";
import { GrpcConnection } from "../../allocator/store/etcd/grpc-connection.ts";
import {
  changeRequest,
  METHODS,
  rangeRequest,
  readChange,
  readRange,
} from "../../allocator/store/etcd/messages.ts";
import { MessageWriter } from "../../allocator/store/etcd/protobuf.ts";
import { createClock } from "../../system/clock.ts";

const NETWORK = "/etcd-cni/networks/macvlan";
const LEASE_S = 10;
const TRIES = 20;
const TRY_EVERY_MS = 2_000;

/** One ADD of the model, for that container. Throws when the lock was not to be had. */
export async function addAsModel(url: string, containerID: string): Promise<void> {
  const connection = new GrpcConnection(url, () => ({}), createClock());
  const call = (path: string, message: MessageWriter) =>
    connection.unary(path, message.bytes(), { headers: {}, timeoutMs: 20_000 });
  const get = async (key: string) =>
    readRange(await call(METHODS.range, rangeRequest({ key }))).entries[0]?.value;
  const put = (key: string, value: string) =>
    call("/etcdserverpb.KV/Put", new MessageWriter().text(1, key).text(2, value));
  const lock = async () => {
    const request = changeRequest({ key: `${NETWORK}/lock`, modRevision: 0, value: containerID });
    return readChange(await call(METHODS.txn, request)).done;
  };
  try {
    await put(NETWORK, "[]");
    await call("/etcdserverpb.Lease/LeaseGrant", new MessageWriter().int(1, LEASE_S));
    let tries = 1;
    for (; !(await lock()); tries++) {
      if (tries === TRIES) throw new Error("the lock was not to be had");
      await pause(TRY_EVERY_MS);
    }
    let address = Number((await get(`${NETWORK}/lastReserved/0`)) ?? "0") + 1;
    while ((await get(`${NETWORK}/used/${address}`)) !== undefined) address++;
    await put(`${NETWORK}/used/${address}`, containerID);
    await put(`${NETWORK}/lastReserved/0`, String(address));
    await call("/etcdserverpb.KV/DeleteRange", new MessageWriter().text(1, `${NETWORK}/lock`));
  } finally {
    await connection.close();
  }
}
