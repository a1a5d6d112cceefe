// SPDX-License-Identifier: Apache-2.0
import { storeContract } from "../../allocator/store/contract.ts";
import { Books } from "./books.ts";
import { BookStore } from "./store.ts";

storeContract("books in memory", async () => {
  const books = new Books();
  const clock = { now: () => Date.now() };
  return {
    store: new BookStore(books, clock),
    second: async () => new BookStore(books, clock),
    dispose: async () => {},
  };
});
