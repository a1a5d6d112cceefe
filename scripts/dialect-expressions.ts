// SPDX-License-Identifier: Apache-2.0
// What the API server is told to look for in objects (CEL), from the table of dialects (allocator/manifest/dialect-rows.ts).

import { REVIEWED_REQUEST } from "../allocator/manifest/annotations.ts";
import { type DialectRow, fieldPattern } from "../allocator/manifest/dialect-row.ts";
import { EMPTY_LIST } from "../allocator/manifest/dialect-rows.ts";
import { LABEL_ROWS, NAMED_ROWS, READ_ROWS } from "../allocator/manifest/dialects.ts";
import { FOREIGN_ROWS, GIVING_ROWS, NAMESPACE_ROWS } from "../allocator/manifest/foreign-requests.ts";
import { NAMESPACE_ONLY } from "../allocator/manifest/near-keys.ts";
import { ASSIGNED } from "../allocator/manifest/opt-in.ts";
import { LABELS, OWN_REQUESTS } from "../allocator/manifest/own-keys.ts";
import { NAMED_DOMAIN, REQUEST_DOMAINS } from "../allocator/manifest/reviewed-request.ts";

const OBJECT = "object.metadata.?annotations";
const OLD_OBJECT = OBJECT.replace("object", "oldObject");
const TEMPLATE = "object.spec.?template.or(object.spec.?jobTemplate.?spec.?template).?metadata.?annotations";
/** Of the Jobs of a CronJob, where a request is misplaced. */
const JOB_TEMPLATE = "object.spec.?jobTemplate.?metadata.?annotations";
const OLD_TEMPLATE = TEMPLATE.replaceAll("object.", "oldObject.");
const LABELS_OF = "object.metadata.?labels";
const TEMPLATE_LABELS = TEMPLATE.replace(/annotations$/, "labels");
const quotedIn = (keys: readonly string[]) => `[${keys.map((key) => `'${key}'`).join(", ")}]`;
const OTHERS_LABELS = quotedIn(LABEL_ROWS.map(({ key }) => key));
const STRAY = `(key.lowerAscii().startsWith('berth.dev/') && !(key in ${quotedIn(LABELS)})) || key in ${OTHERS_LABELS}`;
/** No key is. */
const NOT_READ = "key.matches('^$')";
const BERTHS = "key.lowerAscii().startsWith('berth.dev/')";

/** What other systems pass over: an empty value, and a list with nothing in it (allocator/manifest/dialects.ts). */
const NOTHING = `^$|${EMPTY_LIST.source}`;

const isListed = ({ matches, containing }: DialectRow) => matches === undefined && containing === undefined;
const keysOf = (rows: readonly DialectRow[]) => [...new Set(rows.filter(isListed).map(({ key }) => key))];
const readOn = (place: "pod" | "namespace") => READ_ROWS.filter(({ on }) => on.includes(place));
const list = quotedIn;
const inAny = (keys: readonly string[], ...where: readonly string[]) =>
  `${list(keys)}.exists(key, ${where.map((one) => `key in ${one}.orValue({})`).join(" || ")})`;

/** Keys with names in them, in one expression; the chart takes it out for a system that is not read. */
export function named(rows: readonly DialectRow[]): readonly string[] {
  const sources = rows.flatMap(({ matches }) => matches?.source.replaceAll("\\/", "/") ?? []);
  return sources.length === 0 ? [] : [`key.matches('${joined(sources)}')`];
}

/** What only one part of tells apart, as one expression: it is looked for in every key of every pod. */
function joined(sources: readonly string[]): string {
  const [first = ""] = sources;
  const from = [...first].findIndex(
    (_, at) => !sources.every((one) => one.startsWith(first.slice(0, at + 1))),
  );
  const ends = sources.map((one) => one.slice(Math.max(from, 0)));
  const tail = "([.][^/]+)?$";
  return sources.length === 1
    ? first
    : `${first.slice(0, from)}(${ends.map((one) => one.slice(0, one.length - tail.length)).join("|")})${tail}`;
}

/** Of keys with names in them, and of those that ask only with some values. */
function further(rows: readonly DialectRow[], where: string): readonly string[] {
  return [
    ...named(rows).map((matches) => `${where}.orValue({}).exists(key, ${matches})`),
    ...rows.flatMap(({ key, containing }) =>
      containing === undefined ? [] : [`${where}${saying(key, containing)}`],
    ),
  ];
}

/** Of the annotations that it stands behind: that one has a value with this field in it. */
export const saying = (key: string, field: string) =>
  `[?'${key}'].orValue('').matches(r'(?i)${fieldPattern(field)}')`;

const any = (...parts: readonly string[]) => parts.join(" || ");
const requests = () => [...OWN_REQUESTS, ...keysOf(readOn("pod"))];

/**
 * Of a pod whose request is what Berth was asked at first, and that has what it was given, nothing is left to be said
 * (allocator/manifest/reviewed-request.ts). A key that went is looked for by name alone, for a value that is another one shows from the
 * other side.
 */
function changedSince(): string {
  const reviewed = `object.metadata.annotations['${REVIEWED_REQUEST}']`;
  const isAsking = `(key.split('/')[0] in ${list(REQUEST_DOMAINS)} || key.matches('${NAMED_DOMAIN.source}'))`;
  const value = "object.metadata.annotations[key]";
  const isSaid = `('\\n' + ${reviewed} + '\\n').contains('\\n' + key + '=' + ${value} + '\\n')`;
  // a value with lines of its own could be its old one and what follows that
  const isOther = `(${value}.contains('\\n') || !${isSaid})`;
  return any(
    `!('${REVIEWED_REQUEST}' in ${OBJECT}.orValue({}))`,
    `!${reviewed}.split('\\n').all(line, line == '' || line.split('=')[0] in object.metadata.annotations)`,
    `object.metadata.annotations.exists(key, ${isAsking} && key != '${REVIEWED_REQUEST}' && ${isOther})`,
  );
}

/** Name of the webhook, name of the condition -> its expression. */
export const CONDITIONS: Readonly<Record<string, () => string>> = {
  "pods.berth.dev opted-in": () =>
    any(
      inAny([...requests(), ...ASSIGNED], OBJECT),
      `${OBJECT}.orValue({}).exists(key, ${BERTHS})`,
      ...further(readOn("pod"), OBJECT),
    ),
  "pods.berth.dev changed-since": changedSince,
  "namespace.pods.berth.dev changed-since": changedSince,
  "foreign.pods.berth.dev asks-elsewhere": () =>
    any(
      inAny(keysOf([...FOREIGN_ROWS, ...NAMESPACE_ONLY]), OBJECT),
      ...further(FOREIGN_ROWS, OBJECT),
      // the chart puts those of systems that are not read in the place of it
      `${OBJECT}.orValue({}).exists(key, ${NOT_READ})`,
    ),
  // the chart takes keys out that stand behind another one
  "given.pods.berth.dev names-an-address": () => inAny(["", ...keysOf(GIVING_ROWS)], OBJECT),
  "changes.pods.berth.dev assigned-changes": () => {
    const changed = `${OBJECT}[?key] != ${OLD_OBJECT}[?key]`;
    const rows = [...readOn("pod"), ...FOREIGN_ROWS].filter(({ matches }) => matches === undefined);
    const keys = (isMeant: (row: DialectRow) => boolean) =>
      list(["berth.dev/ips", ...new Set(rows.filter(isMeant).map(({ key }) => key))]);
    // what its system says that it has written itself is no request: allocatedBeside (allocator/manifest/nic-keys.ts)
    const asked = (where: string) =>
      `(${where}[?key.split('/')[0] + '/allocated'].orValue('') == 'true' ? optional.none() : ${where}[?key])`;
    const askedOtherwise = `${asked(OBJECT)} != ${asked(OLD_OBJECT)}`;
    const never = NAMED_ROWS.filter(({ unless }) => unless === undefined).map(({ key }) => key.split("/")[1]);
    const isNever = `key.matches('/(${never.join("|")})([.][^/]+)?$')`;
    const others = [OBJECT, OLD_OBJECT].flatMap((one) =>
      named(NAMED_ROWS).map(
        (matches) =>
          `${one}.orValue({}).exists(key, ${matches} && (${isNever} ? ${changed} : ${askedOtherwise}))`,
      ),
    );
    return `${OBJECT} != ${OLD_OBJECT} && (${any(
      `${list([...OWN_REQUESTS, ...ASSIGNED])}.exists(key, ${changed})`,
      `${OBJECT}.orValue({}).exists(key, ${BERTHS} && !(key in ${OLD_OBJECT}.orValue({})))`,
      // the chart takes keys out that stand behind another one
      `${keys(({ unless }) => unless === undefined)}.exists(key, ${changed})`,
      `${keys(({ unless }) => unless !== undefined)}.exists(key, ${askedOtherwise})`,
      ...others,
    )})`;
  },
  "workloads.berth.dev opted-in": () =>
    any(
      inAny(requests(), OBJECT, TEMPLATE, JOB_TEMPLATE),
      ...[OBJECT, TEMPLATE, JOB_TEMPLATE].map((one) => `${one}.orValue({}).exists(key, ${BERTHS})`),
      ...further(readOn("pod"), TEMPLATE),
      ...further(readOn("pod"), OBJECT),
      // these are told of here, whoever reads them
      `${OBJECT}.orValue({}).exists(key, ${NOT_READ})`,
      inAny(keysOf([...FOREIGN_ROWS, ...NAMESPACE_ONLY]), OBJECT, TEMPLATE),
      ...further(FOREIGN_ROWS, TEMPLATE),
      ...[LABELS_OF, TEMPLATE_LABELS].map((one) => `${one}.orValue({}).exists(key, ${STRAY})`),
      // what is asked for no more
      `(oldObject != null && (${any(inAny(requests(), OLD_TEMPLATE), ...further(readOn("pod"), OLD_TEMPLATE))}))`,
    ),
  "labels.pods.berth.dev stray": () => `${LABELS_OF}.orValue({}).exists(key, ${STRAY})`,
  "labels.namespaces.berth.dev stray": () => `${LABELS_OF}.orValue({}).exists(key, ${STRAY})`,
  "namespaces.berth.dev opted-in": () =>
    any(inAny(OWN_REQUESTS, OBJECT), `${OBJECT}.orValue({}).exists(key, ${BERTHS})`),
  "foreign.namespaces.berth.dev asks-elsewhere": () =>
    any(inAny(keysOf(NAMESPACE_ROWS), OBJECT), ...further(NAMESPACE_ROWS, OBJECT)),
};

/** An own key asks whatever it says: an empty one is refused. */
const saysAny = (keys: readonly string[], where: string) =>
  `${list(keys)}.exists(key, key in ${where} && (key.startsWith('berth.dev/') || !${where}[key].matches(r'${NOTHING}')))`;

/** The annotations of a Binding become those of its pod, which nobody reviews then. */
const bindingAsks = () => {
  const rows = [...readOn("pod"), ...FOREIGN_ROWS];
  const keys = [...new Set(rows.filter(({ matches }) => matches === undefined).map(({ key }) => key))];
  return any(`key.startsWith('berth.dev/')`, `key in ${list(["", ...keys])}`, ...named(NAMED_ROWS));
};

/** Only of what asks by the annotation alone: a policy sees no pools, and the agent stands behind it. */
export const VARIABLES: Readonly<Record<string, () => string>> = {
  "assigned-changes": () =>
    any(
      `${list(ASSIGNED)}.exists(key, ${OBJECT}[?key] != (oldObject == null ? optional.none() : ${OLD_OBJECT}[?key]))`,
      `(oldObject == null && ${OBJECT}.orValue({}).exists(key, ${bindingAsks()}))`,
    ),
  asks: () => {
    const keys = readOn("pod").filter(
      ({ asks, unless }) => asks !== undefined && asks !== "mac" && unless === undefined,
    );
    return any(
      saysAny(["berth.dev/ips", "berth.dev/pools", ...keysOf(keys)], "variables.annotations"),
      "variables.annotations[?'berth.dev/sticky'].orValue('') == 'true'",
    );
  },
  inherits: () => {
    const keys = keysOf(readOn("namespace").filter(({ asks }) => asks !== undefined));
    const sticky =
      "variables.defaults[?'berth.dev/sticky'].orValue('') == 'true' && !('berth.dev/sticky' in variables.annotations)";
    return `variables.optedIn && (${any(saysAny(["berth.dev/pools", ...keys], "variables.defaults"), sticky)})`;
  },
};
