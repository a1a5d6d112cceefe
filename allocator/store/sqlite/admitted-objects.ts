// SPDX-License-Identifier: Apache-2.0
import { BerthError, isRefusal } from "../../base/errors.ts";
import { LastMade } from "../../base/last-made.ts";
import type { Labels } from "../../base/ports.ts";
import { type KubeObject, podState, readObject, workloadState } from "../../manifest/kubernetes-object.ts";
import type {
  ClusterState,
  NamespaceState,
  ObjectHandler,
  PodState,
  WorkloadAnswer,
  WorkloadRef,
  WorkloadState,
} from "../../model/cluster-state.ts";
import { isSameGroup } from "../../model/workload-kinds.ts";
import type { Database } from "./database.ts";
import { type Row, textColumn, type Work } from "./sql.ts";

/** The steps of the tables of admitted objects. Only ever added to. */
const SCHEMA = [
  `CREATE TABLE objects (
     kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
     body TEXT, -- null: it was here and is deleted
     PRIMARY KEY (kind, namespace, name)) STRICT, WITHOUT ROWID`,
];

/**
 * The objects that were admitted on the embedded stack, where there is no API server to keep them: pods, workloads
 * and namespaces. What was never admitted may come yet, what was deleted is known to be gone.
 */
export interface AdmittedObjects extends ClusterState {
  keep(object: KubeObject): Promise<void>;
  /** It was deleted: known to be gone. */
  forget(kind: string, namespace: string, name: string): Promise<void>;
  /** A workload that is under review counts as kept, in this process, until the function that is returned is called. */
  expect(object: KubeObject): () => void;
  object(kind: string, namespace: string, name: string): Promise<KubeObject | undefined>;
  readonly podIsGone: (namespace: string, name: string) => boolean;
  /** Of a pod and its namespace; none of a pod that nobody applied. */
  labelsOf(pod: { readonly namespace: string; readonly name: string; readonly uid: string }): AdmittedLabels;
  objects(kind: string): Promise<readonly KubeObject[]>;
  /** The same, one by one. */
  each(kind: string): AsyncIterable<KubeObject>;
}

interface ObjectKey {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

interface AdmittedLabels {
  readonly podLabels: Labels;
  readonly podAnnotations: Labels;
  readonly namespaceLabels: Labels;
}

/** Opens the table of admitted objects in a database, making its tables if they are not there. */
export function openAdmittedObjects(database: Database): AdmittedObjects {
  database.migrate("shelf", SCHEMA);
  return new SqliteAdmittedObjects(database);
}

/** Workloads and namespaces that are remembered: each pass of the garbage collector asks for one once for each of its claims. */
const REMEMBERED = 16;

class SqliteAdmittedObjects implements AdmittedObjects {
  readonly #database: Database;
  readonly #expected = new Set<KubeObject>();
  readonly #workloads = new LastMade<{ readonly apiVersion: string; readonly state: WorkloadState }>(
    REMEMBERED,
  );
  readonly #namespaces = new LastMade<NamespaceState>(REMEMBERED);
  readonly #handlers = new Set<ObjectHandler>();
  /** Nobody else writes objects but the process that has the data folder, through this. */
  readonly onChange = (handler: ObjectHandler): (() => void) => {
    this.#handlers.add(handler);
    return () => void this.#handlers.delete(handler);
  };
  readonly podIsGone = (namespace: string, name: string): boolean =>
    this.#row("Pod", namespace, name)?.["body"] === null;

  constructor(database: Database) {
    this.#database = database;
  }

  async keep(object: KubeObject): Promise<void> {
    const { namespace, name } = object.metadata;
    const body = JSON.stringify(object.json.value);
    await this.#write({ kind: object.kind, namespace, name }, (sql) =>
      sql.run("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", object.kind, namespace, name, body),
    );
  }

  async forget(kind: string, namespace: string, name: string): Promise<void> {
    await this.#write({ kind, namespace, name }, (sql) =>
      sql.run(
        "UPDATE objects SET body = NULL WHERE kind = ? AND namespace = ? AND name = ?",
        kind,
        namespace,
        name,
      ),
    );
  }

  expect(object: KubeObject): () => void {
    const { kind, metadata } = object;
    this.#expected.add(object);
    this.#tell({ kind, ...metadata });
    return () => {
      if (this.#expected.delete(object)) this.#tell({ kind, ...metadata });
    };
  }

  async object(kind: string, namespace: string, name: string): Promise<KubeObject | undefined> {
    return this.#found(kind, namespace, name);
  }

  #found(kind: string, namespace: string, name: string): KubeObject | undefined {
    const row = this.#row(kind, namespace, name);
    return row && objectIn(row);
  }

  labelsOf(pod: { readonly namespace: string; readonly name: string; readonly uid: string }): AdmittedLabels {
    const found = this.#found("Pod", pod.namespace, pod.name)?.metadata;
    const isIts = found !== undefined && (pod.uid === "" || found.uid === pod.uid);
    return {
      podLabels: isIts ? found.labels : {},
      podAnnotations: isIts ? found.annotations : {},
      namespaceLabels: withName(this.#found("Namespace", "", pod.namespace), pod.namespace),
    };
  }

  async objects(kind: string): Promise<readonly KubeObject[]> {
    const rows = this.#database.read((sql) =>
      sql.all("SELECT * FROM objects WHERE kind = ? AND body IS NOT NULL ORDER BY namespace, name", kind),
    );
    return rows.map(decode);
  }

  async *each(kind: string): AsyncGenerator<KubeObject, void, void> {
    yield* await this.objects(kind);
  }

  async pod(namespace: string, name: string): Promise<PodState | undefined> {
    const object = await this.object("Pod", namespace, name);
    return object && podState(object);
  }

  async workload(ref: WorkloadRef): Promise<WorkloadAnswer> {
    const { kind, namespace, name } = ref;
    for (const object of this.#expected) {
      const { metadata } = object;
      const its = object.kind === kind && metadata.namespace === namespace && metadata.name === name;
      if (its && isSameGroup(object.apiVersion, ref.apiVersion)) return workloadState(object);
    }
    const row = this.#row(kind, namespace, name);
    if (row === undefined) return "never admitted";
    if (row["body"] === null) return undefined;
    const { apiVersion, state } = this.#workloads.of(`${kind} ${namespace}/${name}`, bodyOf(row), () => {
      const object = decode(row);
      return { apiVersion: object.apiVersion, state: workloadState(object) };
    });
    return isSameGroup(apiVersion, ref.apiVersion) ? state : "unknown";
  }

  /** A namespace that nobody described exists all the same, with the one label that Kubernetes gives to each. */
  async namespace(name: string): Promise<NamespaceState> {
    const row = this.#row("Namespace", "", name);
    return this.#namespaces.of(name, row === undefined ? "" : bodyOf(row), () => {
      const object = row === undefined ? undefined : objectIn(row);
      return { name, labels: withName(object, name), annotations: object?.metadata.annotations ?? {} };
    });
  }

  /** There is one host, and it is this one. */
  async fenced(_node: string): Promise<boolean> {
    return false;
  }

  /** What failed may have been written all the same. */
  async #write(of: ObjectKey, work: Work<unknown>): Promise<void> {
    try {
      await this.#database.write(work);
    } finally {
      this.#tell(of);
    }
  }

  #tell({ kind, namespace, name }: ObjectKey): void {
    for (const handler of this.#handlers) handler(kind, namespace === "" ? name : `${namespace}/${name}`);
  }

  #row(kind: string, namespace: string, name: string): Row | undefined {
    return this.#database.readOnce((sql) =>
      sql.get("SELECT * FROM objects WHERE kind = ? AND namespace = ? AND name = ?", kind, namespace, name),
    );
  }
}

/** Empty: it was here and is deleted. */
function bodyOf(row: Row): string {
  return row["body"] === null ? "" : textColumn(row, "body");
}

function objectIn(row: Row): KubeObject | undefined {
  return row["body"] === null ? undefined : decode(row);
}

/** The key is the authority for name and namespace: the object may have been sent without them. */
function decode(row: Row): KubeObject {
  const key = { namespace: textColumn(row, "namespace"), name: textColumn(row, "name") };
  try {
    const object = readObject(JSON.parse(textColumn(row, "body")));
    if (!isRefusal(object)) return { ...object, metadata: { ...object.metadata, ...key } };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const what = `${textColumn(row, "kind")} ${key.namespace}/${key.name}`;
  const words = `the stored object ${what} cannot be read; delete it and create it again`;
  throw new BerthError("STATE_CORRUPT", words, { details: { key: what } });
}

/** The label that Kubernetes gives to each namespace. */
function withName(namespace: KubeObject | undefined, name: string): Labels {
  return { ...namespace?.metadata.labels, "kubernetes.io/metadata.name": name };
}
