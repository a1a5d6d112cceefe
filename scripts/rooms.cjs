// SPDX-License-Identifier: Apache-2.0
// Reads the table of rooms in ARCHITECTURE.md, which is also the rule for imports: a room may import what its row names,
// and only rooms that stand above it. `allocator/*` means every room directly below allocator/ that stands above.
const { readFileSync } = require("node:fs");
const { join } = require("node:path");

const ROW = /^\| `([a-z/-]+)\/` \| .* \| (.*) \|$/;

/** In the order of the table: each room with the rooms that it may import. */
function readRooms(text = readFileSync(join(__dirname, "../ARCHITECTURE.md"), "utf8")) {
  const rooms = [];
  for (const line of text.split("\n")) {
    const [, name, named] = ROW.exec(line) ?? [];
    if (name === undefined) continue;
    const above = rooms.map((room) => room.name);
    const wanted = [...named.matchAll(/`([^`]+)`/g)].map(([, word]) => word);
    const may = wanted.flatMap((word) => {
      const found = above.filter((room) =>
        word.endsWith("/*") ? room.slice(0, room.lastIndexOf("/") + 1) === word.slice(0, -1) : room === word,
      );
      if (found.length === 0)
        throw new Error(`ARCHITECTURE.md: ${name} may import ${word}, which is no room above it`);
      return found;
    });
    rooms.push({ name, may: [...new Set(may)] });
  }
  if (rooms.length === 0) throw new Error("ARCHITECTURE.md has no table of rooms");
  return rooms;
}

/** A rule of dependency-cruiser for each room. What is tested or tests is free. */
function roomRules(rooms) {
  const all = rooms.map(({ name }) => name).join("|");
  return rooms.map(({ name, may }) => ({
    name: `room ${name}`,
    severity: "error",
    comment: `by the table of rooms in ARCHITECTURE.md it may import ${may.join(", ") || "no other room"}`,
    from: { path: `^${name}/[^/]+\\.ts$`, pathNot: "\\.test\\.ts$" },
    to: { path: `^(${all})/[^/]+\\.ts$`, pathNot: `^(${[name, ...may].join("|")})/[^/]+\\.ts$` },
  }));
}

module.exports = { readRooms, roomRules };
