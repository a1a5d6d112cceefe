// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { globalIPv6, localIPv4 } from "./observer.ts";

const TRIE = `Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.40.0.0/16 2 0 2
        +-- 10.40.0.0/20 2 0 2
           |-- 10.40.0.0
              /16 link UNICAST
           |-- 10.40.1.11
              /32 host LOCAL
        |-- 10.40.255.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
           |-- 127.0.0.1
              /32 host LOCAL
Local:
  +-- 0.0.0.0/0 3 0 5
           |-- 10.40.1.11
              /32 host LOCAL
`;

const TABLE = `00000000000000000000000000000001 01 80 10 80       lo
fd000040000000000000000000000112 02 40 00 80     eth0
fe80000000000000b04a88fffe52ac6e 02 40 20 80     eth0
`;

it("finds the addresses of a namespace in what the kernel prints", () => {
  assert.deepEqual(localIPv4(TRIE), ["10.40.1.11"]);
  assert.deepEqual(globalIPv6(TABLE), ["fd000040000000000000000000000112"]);
  assert.deepEqual([localIPv4(""), globalIPv6("")], [[], []]);
});
