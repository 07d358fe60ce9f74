// A proxy to PostgreSQL that understands the messages of both sides, and breaks a connection at one statement: either that does not
// arrive, or PostgreSQL carries it out, and the answer does not arrive.

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface Trap {
  /** The text of the statement, and the how manieth with this text, from 1. */
  readonly sql: string;
  readonly nth: number;
  readonly lost: "statement" | "answer";
}

export interface PostgresProxy {
  readonly port: number;
  /** The texts of the statements that were sent since this was called, in order. */
  watch(): readonly string[];
  /** Cuts once for each of them, and no more for those before. Returns those that have not been met yet. */
  set(traps: readonly Trap[]): ReadonlySet<Trap>;
  close(): Promise<void>;
}

/** A proxy before `port` of this machine; closed by the caller. */
export async function postgresProxy(port: number): Promise<PostgresProxy> {
  const cuts = new Set<() => void>();
  let sent: string[] = [];
  let traps = new Set<Trap>();
  let times = new Map<string, number>();

  /** The trap, if this statement is one's. */
  const caughtBy = (sql: string): Trap | undefined => {
    sent.push(sql);
    const nth = (times.get(sql) ?? 0) + 1;
    times.set(sql, nth);
    const caught = [...traps].find((trap) => trap.sql === sql && trap.nth === nth);
    if (caught) traps.delete(caught);
    return caught;
  };
  // Each message is written by itself: without this it would wait for the other side's acknowledgement of the last one.
  const noDelay = true;
  const server = createServer({ noDelay }, (client) => {
    const upstream = connect({ port, host: "127.0.0.1", noDelay });
    const cut = () => {
      cuts.delete(cut);
      client.destroy();
      upstream.destroy();
    };
    cuts.add(cut);
    for (const socket of [client, upstream]) socket.on("error", cut).on("close", cut);
    const statementIn = statements();
    // PostgreSQL says once that it is ready by itself, and then for each time that it is asked to: each answer ends so.
    let asked = 1;
    let ready = 0;
    let lost: number | undefined;
    onMessages(client, { isFirstUntyped: true }, (message, type) => {
      // What follows the statement is lost in any case.
      if (asked === lost || client.destroyed) return;
      const sql = statementIn(message, type);
      const trap = sql === undefined ? undefined : caughtBy(sql);
      if (trap?.lost === "statement") return cut();
      if (trap) lost = asked + 1;
      if (type === "S" || type === "Q") asked++;
      upstream.write(message);
    });
    onMessages(upstream, { isFirstUntyped: false }, (message, type) => {
      const isLost = ready + 1 === lost;
      if (type === "Z") ready++;
      if (!isLost) client.write(message);
      else if (ready === lost) cut();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("A server that listens has an address.");
  return {
    port: address.port,
    watch() {
      sent = [];
      return sent;
    },
    set(next) {
      traps = new Set(next);
      times = new Map();
      return traps;
    },
    async close() {
      for (const cut of cuts) cut();
      server.close();
      await once(server, "close");
    },
  };
}

const LENGTH_BYTES = 4;

/** Calls `take` with each whole message and its type; a client's first one has none. */
function onMessages(
  socket: Socket,
  { isFirstUntyped }: { readonly isFirstUntyped: boolean },
  take: (message: Buffer, type: string) => void,
): void {
  let rest = Buffer.alloc(0);
  let typeBytes = isFirstUntyped ? 0 : 1;
  socket.on("data", (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= typeBytes + LENGTH_BYTES) {
      const end = typeBytes + rest.readInt32BE(typeBytes);
      if (rest.length < end) return;
      const message = rest.subarray(0, end);
      rest = rest.subarray(end);
      take(message, message.toString("latin1", 0, typeBytes));
      typeBytes = 1;
    }
  });
}

/** Tells the text of the statement that a message of a connection carries out, if it does. */
function statements(): (message: Buffer, type: string) => string | undefined {
  const prepared = new Map<string, string>();
  const bound = new Map<string, string>();
  return (message, type) => {
    const [first = "", second = ""] = message.toString("utf8", 1 + LENGTH_BYTES).split("\0", 2);
    switch (type) {
      case "P": // Parse: the name of a statement, its text
        prepared.set(first, second);
        return undefined;
      case "B": // Bind: a portal, the name of a statement
        bound.set(first, prepared.get(second) ?? "");
        return undefined;
      case "E": // Execute: a portal
        return bound.get(first);
      case "Q":
        return first;
    }
    return undefined;
  };
}
