// SPDX-License-Identifier: Apache-2.0
// A model of cni-ipam-etcd's ADD and DEL by the keys that it keeps, written from a description of its source. The lock is left out: it goes
// on without when it does not get it, and whoever unlocks takes away another's.
import type { Members } from "./members.ts";

const b64 = (text: string) => Buffer.from(text).toString("base64");

export interface FormerPlugin {
  /** The address that a container gets; undefined: there is none left. */
  add(containerID: string): Promise<string | undefined>;
  /** The two halves of an ADD, with whatever happens in between. */
  look(): Promise<string | undefined>;
  write(address: string, containerID: string): Promise<void>;
  del(containerID: string): Promise<void>;
}

/** `size` addresses from .50 on. */
export async function formerPlugin(members: Members, network: string, size: number): Promise<FormerPlugin> {
  const folder = `/etcd-cni/networks/${network}`;
  const put = (key: string, value: string) => members.ask("kv/put", { key: b64(key), value: b64(value) });
  const range = { rangeStart: "10.10.20.50", rangeEnd: `10.10.20.${49 + size}` };
  await put(folder, JSON.stringify([[{ ...range, subnet: "10.10.20.0/24", gateway: "10.10.20.254" }]]));
  const used = async () => {
    const { kvs = [] } = await members.ask("kv/range", {
      key: b64(`${folder}/used/`),
      range_end: b64(`${folder}/used0`),
    });
    const entries = kvs as readonly { readonly key: string; readonly value: string }[];
    const text = (coded: string) => Buffer.from(coded, "base64").toString();
    return new Map(entries.map(({ key, value }) => [text(key).slice(`${folder}/used/`.length), text(value)]));
  };
  const all = Array.from({ length: size }, (_, i) => `10.10.20.${50 + i}`);
  const look = async () => {
    const there = await used();
    return all.find((address) => !there.has(address));
  };
  const write = async (address: string, containerID: string) => {
    await put(`${folder}/used/${address}`, containerID);
    await put(`${folder}/lastReserved/0`, address);
  };
  return {
    look,
    write,
    async add(containerID) {
      const address = await look();
      if (address !== undefined) await write(address, containerID);
      return address;
    },
    async del(containerID) {
      for (const [address, id] of await used()) {
        if (id === containerID)
          await members.ask("kv/deleterange", { key: b64(`${folder}/used/${address}`) });
      }
    },
  };
}
