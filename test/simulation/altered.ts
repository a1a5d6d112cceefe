// SPDX-License-Identifier: Apache-2.0

/** The same thing with some members of its own. What keeps private fields cannot be spread or inherited from. */
export function altered<T extends object>(target: T, own: Partial<T>): T {
  return new Proxy(target, {
    get(_, property) {
      if (Object.hasOwn(own, property)) return Reflect.get(own, property);
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
