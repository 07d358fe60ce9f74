// The tables that SQLite and PostgreSQL share, in format 1. Tables of only one database are in that database's own
// schema.ts.
//
// `owner` is the JSON of [tenant, user], so no two owners have the same value. It is the first column of every key that
// a user can request, so nothing can be found, joined or deleted across owners. Times are in milliseconds since 1970.

/** The column types, and the columns of shared tables that exist in only one of the databases. */
export interface Types {
  /** A text used in keys and comparisons and ordered by its bytes. */
  readonly id: string;
  readonly text: string;
  /** A whole number of more than 32 bits. */
  readonly whole: string;
  readonly real: string;
  /** The rest of the definition of a boolean column. */
  flag(isSet: boolean): string;
  /** The text that follows the columns of a table. `key` means that rows are found only by their key. */
  readonly rows: string;
  readonly key: string;
  /** Column definitions, each followed by a comma. */
  readonly columns: Readonly<Record<"threads" | "runs" | "calls", string>>;
}

/**
 * Tables for threads and the data that is deleted with them. `parent` and `forked_from` are JSON. `parent_thread` is the
 * thread that `parent` names.
 */
export const threadTables = (types: Types): string => {
  const { id, text, whole, flag, rows, key, columns } = types;
  const ofThread = "FOREIGN KEY (owner, thread_id) REFERENCES threads ON DELETE CASCADE";
  const ofRun = "FOREIGN KEY (owner, thread_id, run_id) REFERENCES runs ON DELETE CASCADE";
  return `
CREATE TABLE threads (
  owner ${id} NOT NULL,
  id ${id} NOT NULL,
  agent ${text},
  title ${text},
  title_folded ${text},
  metadata ${text} NOT NULL,
  parent ${text},
  parent_thread ${id},
  forked_from ${text},
  outcome ${text} NOT NULL,
  message_count ${whole} NOT NULL DEFAULT 0,
  bytes ${whole} NOT NULL DEFAULT 0,
  created_at ${whole} NOT NULL,
  updated_at ${whole} NOT NULL,
  used_at ${whole} NOT NULL,
  ${columns.threads}
  PRIMARY KEY (owner, id)
)${key};
CREATE INDEX threads_by_change ON threads (owner, updated_at, id);
CREATE INDEX threads_by_parent ON threads (owner, parent_thread, updated_at, id);

-- begun contains the number of a run in the order in which the runs of its thread began.
CREATE TABLE runs (
  owner ${id} NOT NULL,
  thread_id ${id} NOT NULL,
  id ${id} NOT NULL,
  number ${whole} NOT NULL,
  begun ${whole},
  agent ${text} NOT NULL,
  status ${text} NOT NULL,
  attempt integer NOT NULL DEFAULT 1,
  resumes ${text},
  stop_reason ${text},
  error ${text},
  usage ${text} NOT NULL,
  metadata ${text} NOT NULL,
  idempotency_key ${id},
  place ${whole},
  created_at ${whole} NOT NULL,
  ended_at ${whole},
  has_events ${flag(true)},
  request ${text},
  ${columns.runs}
  PRIMARY KEY (owner, thread_id, id),
  ${ofThread}
)${rows};
CREATE UNIQUE INDEX runs_by_number ON runs (owner, thread_id, number);
CREATE UNIQUE INDEX runs_by_key ON runs (owner, thread_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX runs_begun ON runs (owner, thread_id, begun) WHERE begun IS NOT NULL;

CREATE TABLE messages (
  owner ${id} NOT NULL,
  thread_id ${id} NOT NULL,
  position ${whole} NOT NULL,
  id ${id} NOT NULL,
  body ${text} NOT NULL,
  PRIMARY KEY (owner, thread_id, position),
  UNIQUE (owner, thread_id, id),
  ${ofThread}
)${rows};

CREATE TABLE state (
  owner ${id} NOT NULL,
  thread_id ${id} NOT NULL,
  key ${id} NOT NULL,
  value ${text} NOT NULL,
  PRIMARY KEY (owner, thread_id, key),
  ${ofThread}
)${key};

CREATE TABLE inbox (
  owner ${id} NOT NULL,
  thread_id ${id} NOT NULL,
  run_id ${id} NOT NULL,
  number ${whole} NOT NULL,
  id ${id} NOT NULL,
  body ${text} NOT NULL,
  PRIMARY KEY (owner, thread_id, run_id, number),
  ${ofRun}
)${key};

-- A row contains one entry, or several consecutive deltas, one per line. Its key is the number of its last entry.
CREATE TABLE events (
  owner ${id} NOT NULL,
  thread_id ${id} NOT NULL,
  run_id ${id} NOT NULL,
  last_seq ${whole} NOT NULL,
  epoch ${whole} NOT NULL,
  event ${text} NOT NULL,
  body ${text} NOT NULL,
  PRIMARY KEY (owner, thread_id, run_id, last_seq),
  ${ofRun}
)${key};

-- due_at is the time at which a call must be checked, if any.
CREATE TABLE deferred_calls (
  owner ${id} NOT NULL,
  thread_id ${id} NOT NULL,
  ${columns.calls}
  call_id ${id} NOT NULL,
  run_id ${text} NOT NULL,
  tool ${text} NOT NULL,
  token_hash ${id} NOT NULL,
  state ${text} NOT NULL,
  reply ${text},
  expires_at ${whole} NOT NULL,
  due_at ${whole},
  PRIMARY KEY (owner, thread_id, call_id),
  ${ofThread}
)${key};
CREATE UNIQUE INDEX deferred_calls_by_token ON deferred_calls (token_hash);
CREATE INDEX deferred_calls_due ON deferred_calls (due_at) WHERE due_at IS NOT NULL;
${documentTable(types, ofThread)}
CREATE INDEX documents_of_thread ON documents (owner, thread_id) WHERE thread_id IS NOT NULL;
`;
};

/**
 * `collection` and `key` are JSON, so no two values collide. A thread's document contains the thread's name. The body
 * of an item contains its version, time and value.
 */
export const documentTable = ({ id, text, whole, real, rows, key }: Types, ofThread?: string): string => `
CREATE TABLE documents (
  collection ${id} NOT NULL,
  key ${id} NOT NULL,
  version ${text} NOT NULL,
  body ${text} NOT NULL,
  due ${real},
  owner ${id},
  thread_id ${id},
  created_at ${whole} NOT NULL,
  updated_at ${whole} NOT NULL,
  PRIMARY KEY (collection, key)${ofThread ? `,\n  ${ofThread}` : ""}
)${rows};
CREATE INDEX documents_due ON documents (collection, due, key) WHERE due IS NOT NULL;
CREATE INDEX documents_by_creation ON documents (collection, created_at, key);
CREATE INDEX documents_by_change ON documents (collection, updated_at, key);
-- The next time to check for due documents of a tenant.
CREATE TABLE document_turns (
  collection ${id} NOT NULL PRIMARY KEY,
  kind ${id} NOT NULL,
  at ${whole} NOT NULL
)${key};
CREATE INDEX document_turns_by_time ON document_turns (kind, at);
`;

/**
 * Tables for the usage of tenants and users. `tenant` and `owner` are the JSON of [tenant] and [tenant, user]; `name`
 * is one of the two. `period` is a day or a month. Costs are in millionths. In `usage_of_users`, `user` is JSON, or
 * empty for all users without a row. `stored_sums` contains the sums of `stored`, by tenant and by owner.
 */
export const quotaTables = ({ id, whole, flag, key }: Types): string => {
  const counted = [
    ...["calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost"],
  ]
    .map((name) => `${name} ${whole} NOT NULL`)
    .concat(`estimated ${flag(false)}`)
    .join(",\n  ");
  return `
CREATE TABLE held (
  thing ${id} NOT NULL,
  owner ${id} NOT NULL,
  id ${id} NOT NULL,
  tenant ${id} NOT NULL,
  ends ${whole} NOT NULL,
  PRIMARY KEY (thing, owner, id)
)${key};
CREATE INDEX held_by_tenant ON held (tenant, thing, ends);
CREATE INDEX held_by_end ON held (ends);

CREATE TABLE stored (
  owner ${id} NOT NULL,
  id ${id} NOT NULL,
  tenant ${id} NOT NULL,
  bytes ${whole} NOT NULL,
  ends ${whole} NOT NULL,
  PRIMARY KEY (owner, id)
)${key};
CREATE INDEX stored_by_tenant ON stored (tenant, ends);
CREATE TABLE stored_sums (
  name ${id} NOT NULL PRIMARY KEY,
  bytes ${whole} NOT NULL
)${key};

CREATE TABLE reserved (
  id ${id} NOT NULL PRIMARY KEY,
  tenant ${id} NOT NULL,
  owner ${id} NOT NULL,
  tokens ${whole} NOT NULL,
  cost ${whole} NOT NULL,
  ends ${whole} NOT NULL
)${key};
CREATE INDEX reserved_by_tenant ON reserved (tenant, ends);

CREATE TABLE spent (
  name ${id} NOT NULL,
  period ${id} NOT NULL,
  tokens ${whole} NOT NULL,
  cost ${whole} NOT NULL,
  PRIMARY KEY (name, period)
)${key};

CREATE TABLE usage (
  name ${id} NOT NULL,
  day ${id} NOT NULL,
  agent ${id} NOT NULL,
  model ${id} NOT NULL,
  ${counted},
  PRIMARY KEY (name, day, agent, model)
)${key};
CREATE TABLE usage_of_users (
  tenant ${id} NOT NULL,
  day ${id} NOT NULL,
  "user" ${id} NOT NULL,
  ${counted},
  PRIMARY KEY (tenant, day, "user")
)${key};
`;
};
