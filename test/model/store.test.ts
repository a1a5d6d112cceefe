// SPDX-License-Identifier: Apache-2.0
import { storeContract } from "../../allocator/store/contract/contract.ts";
import { Books } from "./books.ts";
import { BookStore } from "./store.ts";

storeContract("books in memory", async () => {
  const auditInput = new Books();
  const clock = { now: () => Date.now() };
  return {
    store: new BookStore(auditInput, clock),
    second: async () => new BookStore(auditInput, clock),
    dispose: async () => {},
  };
});
