// SPDX-License-Identifier: Apache-2.0
// What tsyringe, inside @peculiar/x509, demands of the global `Reflect` when it is loaded: import this file before it.
// The classes of @peculiar/x509 are compiled without metadata, so that there is never anything to find.
interface MetadataReflect {
  getMetadata?: (key: unknown, target: object) => unknown;
  getOwnMetadata?: (key: unknown, target: object) => unknown;
}

const reflect: typeof Reflect & MetadataReflect = Reflect;
reflect.getMetadata ??= () => undefined;
reflect.getOwnMetadata ??= () => undefined;
