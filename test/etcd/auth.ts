// SPDX-License-Identifier: Apache-2.0
import { GrpcConnection, type TlsMaterial } from "../../allocator/store/etcd/grpc-connection.ts";
import { MessageWriter } from "../../allocator/store/etcd/protobuf.ts";
import { createClock } from "../../system/clock.ts";

/** A user, and what is his to read and write. */
export interface EtcdUser {
  readonly name: string;
  /** Empty: he proves himself by the name in his certificate alone. */
  readonly password: string;
  readonly prefix: string;
}

const READWRITE = 2;

/** Makes the users, and root with root's role, and turns etcd's own rights on. */
export async function enableAuth(
  url: string,
  material: TlsMaterial,
  users: readonly EtcdUser[],
): Promise<void> {
  const connection = new GrpcConnection(url, () => material, createClock());
  const ask = (method: string, message: MessageWriter) =>
    connection.unary(`/etcdserverpb.Auth/${method}`, message.bytes(), { headers: {}, timeoutMs: 20_000 });
  const add = async (name: string, password: string, role: string) => {
    const how = password === "" ? new MessageWriter().flag(1, true) : undefined; // no_password
    const user = new MessageWriter().text(1, name).text(2, password);
    await ask("UserAdd", how === undefined ? user : user.message(3, how));
    await ask("UserGrantRole", new MessageWriter().text(1, name).text(2, role));
  };
  try {
    await ask("RoleAdd", new MessageWriter().text(1, "root"));
    await add("root", "root", "root");
    for (const { name, password, prefix } of users) {
      const end = `${prefix.slice(0, -1)}${String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)}`;
      const permission = new MessageWriter().int(1, READWRITE).text(2, prefix).text(3, end);
      await ask("RoleAdd", new MessageWriter().text(1, `of-${name}`));
      await ask("RoleGrantPermission", new MessageWriter().text(1, `of-${name}`).message(2, permission));
      await add(name, password, `of-${name}`);
    }
    await ask("AuthEnable", new MessageWriter());
  } finally {
    await connection.close();
  }
}
