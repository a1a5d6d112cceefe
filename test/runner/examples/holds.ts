// SPDX-License-Identifier: Apache-2.0
// Leaves a timer that keeps its process. Run by held.test.ts.
import { it } from "node:test";

it("leaves a timer", () => void setInterval(() => {}, 1000));
