// Messages between processes on one channel of PostgreSQL, delivered at most once. Messages sent while the connection
// is broken are missed. `onGap` is called when the connection is restored.

import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { randomId } from "../../../lib/random-id.ts";
import { withTimeout } from "../shared/outages.ts";
import { destroy, newClient, type PostgresAccess } from "./client.ts";
import type { Database } from "./database.ts";

const CHANNEL = "skein";
/** PostgreSQL accepts only payloads of less than 8000 bytes. A longer text is sent in parts. */
const PART_BYTES = 7_000;
/** The number of milliseconds between two probes of the connection, which is otherwise only used to receive. */
const PROBE_MS = 5_000;
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** The maximum number of texts that wait to be sent. Later messages are dropped. */
const MAX_WAITING = 10_000;

export interface Listener {
  /** Called with a message from another process. */
  onMessage(text: string): void;
  /** Called when a message may have been missed. */
  onGap(): void;
}

export class Notifications {
  readonly #access: PostgresAccess;
  readonly #database: Database;
  /** Identifies the sender, so a process ignores its own messages. */
  readonly #name = randomId();
  /** Listeners by the first letter of their messages. */
  readonly #listeners = new Map<string, Listener>();
  readonly #parts = new Map<string, string[]>();
  #waiting: string[] = [];
  #client: Client | undefined;
  #probe: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(access: PostgresAccess, database: Database) {
    this.#access = access;
    this.#database = database;
  }

  /** Delivers messages of a one-letter `kind` to `listener`, the only one for that kind. */
  listen(kind: string, listener: Listener): void {
    this.#listeners.set(kind, listener);
  }

  /** Resolves once it is listening for messages, which it does until it is closed. Throws if it cannot listen. */
  async start(): Promise<void> {
    await this.#connect();
    this.#probe = setInterval(() => void this.#check(), PROBE_MS).unref();
  }

  /** Returns the payloads that carry `text` under `kind`, for a statement that calls pg_notify itself with `channel`. */
  payloads(kind: string, text: string): string[] {
    const id = Buffer.byteLength(text) > PART_BYTES ? randomId() : "";
    const parts = id === "" ? [text] : partsOf(text);
    return parts.map((part, index) => `${this.#name} ${kind} ${id}:${index + 1}/${parts.length} ${part}`);
  }

  readonly channel = CHANNEL;

  /** Sends a message without waiting. Fails silently. */
  tell(kind: string, text: string): void {
    if (this.#waiting.length >= MAX_WAITING || this.#isClosed) return;
    if (this.#waiting.length === 0) setImmediate(() => this.#send());
    this.#waiting.push(...this.payloads(kind, text));
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#probe);
    if (this.#client) destroy(this.#client);
  }

  #send(): void {
    const texts = this.#waiting;
    this.#waiting = [];
    if (texts.length === 0 || this.#isClosed) return;
    void this.#database
      .query("SELECT pg_notify($1, told) FROM unnest($2::text[]) AS told", [CHANNEL, texts])
      .catch(() => {});
  }

  async #connect(): Promise<void> {
    const client = newClient(this.#access);
    client.on("notification", ({ payload = "" }) => this.#hear(payload));
    client.on("end", () => void this.#reconnect(client));
    this.#client = client;
    const listening = client.connect().then(() => client.query(`LISTEN ${CHANNEL}`));
    try {
      await withTimeout(this.#access.deadlineMs, listening);
    } catch (error) {
      this.#client = undefined;
      destroy(client);
      throw error;
    }
    if (this.#isClosed) destroy(client);
  }

  async #reconnect(lost: Client): Promise<void> {
    if (lost !== this.#client) return;
    this.#client = undefined;
    this.#parts.clear();
    for (let pause = PAUSE_MS; !this.#isClosed; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        await this.#connect();
        for (const listener of this.#listeners.values()) listener.onGap();
        return;
      } catch {
        // This failure is not reported here, because requests report that PostgreSQL is unreachable.
        await sleep(pause * (0.75 + Math.random() / 2), undefined, { ref: false });
      }
    }
  }

  async #check(): Promise<void> {
    const client = this.#client;
    if (!client) return;
    await withTimeout(this.#access.deadlineMs, client.query("SELECT 1")).catch(() => destroy(client));
  }

  #hear(payload: string): void {
    const [, name, kind = "", id = "", at, of, text = ""] =
      /^(\S+) (\S) ([^:\s]*):(\d+)\/(\d+) (.*)$/s.exec(payload) ?? [];
    if (name === undefined || name === this.#name) return;
    const whole = id === "" ? text : this.#joined(id, text, at === of);
    if (whole !== undefined) this.#listeners.get(kind)?.onMessage(whole);
  }

  /** The parts of a text arrive one after the other, in the order in which they were sent. */
  #joined(id: string, part: string, isLast: boolean): string | undefined {
    const parts = [...(this.#parts.get(id) ?? []), part];
    if (isLast) this.#parts.delete(id);
    else this.#parts.set(id, parts);
    return isLast ? Buffer.from(parts.join(""), "base64").toString() : undefined;
  }
}

function partsOf(text: string): string[] {
  const encoded = Buffer.from(text).toString("base64");
  const parts: string[] = [];
  for (let at = 0; at < encoded.length; at += PART_BYTES) parts.push(encoded.slice(at, at + PART_BYTES));
  return parts;
}
