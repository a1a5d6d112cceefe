// SPDX-License-Identifier: Apache-2.0
import { storeContract } from "../../allocator/store/contract/contract.ts";
import { MemoryRecords } from "./memory-records.ts";
import { BookStore } from "./store.ts";

storeContract("records in memory", async () => {
  const auditInput = new MemoryRecords();
  const clock = { now: () => Date.now() };
  return {
    store: new BookStore(auditInput, clock),
    second: async () => new BookStore(auditInput, clock),
    dispose: async () => {},
  };
});
