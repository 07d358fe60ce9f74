// The server's end of a relay. Each connection that a program in the sandbox makes becomes a stream here.
//
// The tenant may control the other end. For each connection and direction, at most one window of bytes is in memory. An
// unexpected or malformed frame ends the relay and all its connections.

import { Duplex } from "node:stream";
import { quote } from "../script.ts";
import type { Channel, ChannelEvents, OpenChannel } from "../session.ts";
import { encodeFrame, type FrameField, frameReader, type HelperFrame } from "./frames.ts";
import { RELAY_CHUNK_BYTES, RELAY_GREETING, RELAYED_CONNECTIONS, WINDOW_BYTES } from "./relay-frames.ts";
import { RELAY_PROGRAM } from "./relay-program.ts";

const GREETING_MS = 10_000;
/** The maximum number of bytes on standard error, where the relay prints nothing. */
const MAX_NOISE_BYTES = 64 * 1024;
/** The number of milliseconds without any byte in either direction after which a connection ends. */
const IDLE_MS = 10 * 60_000;
const LOOK_MS = 60_000;
/**
 * The limit is twice as high as the relay's, because a connection that has ended here may still count at the
 * other end.
 */
const MAX_CONNECTIONS = 2 * RELAYED_CONNECTIONS;
/** The variables that would change how Perl starts. */
const UNSET = "PERL5OPT PERL5LIB PERL5DB PERLLIB PERLIO PERL_UNICODE";

export interface Relay {
  /** The port on the sandbox's loopback interface. */
  readonly port: number;
  /** Resolves once the relay has ended. Never rejects. */
  readonly ended: Promise<void>;
  /** Ends all connections. Safe to repeat. */
  close(): void;
}

export interface RelayOptions {
  /** The port to listen on unless it is taken. */
  readonly port: number;
  /** Called for each new connection, and takes ownership of it. */
  readonly onConnection: (connection: Duplex) => void;
}

interface RelayedConnection {
  readonly stream: Duplex;
  /** The number of additional bytes that the sandbox may send. */
  granted: number;
  /** The number of bytes that the stream's reader has not read yet. */
  held: number;
  /** The number of bytes that may be sent to the sandbox. */
  credit: number;
  /** Continues a write that is waiting for credit. */
  waiting: (() => void) | undefined;
  lastMoved: number;
}

/**
 * Opens a relay. Returns undefined if the sandbox has no working Perl or does not answer within ten seconds. Throws
 * the errors of `open` or the signal's reason. The caller closes the relay.
 */
export async function openRelay(
  open: OpenChannel,
  { port, onConnection }: RelayOptions,
  signal: AbortSignal,
): Promise<Relay | undefined> {
  const ended = Promise.withResolvers<void>();
  const greeted = Promise.withResolvers<number | undefined>();
  let channel: Channel | undefined;
  let isOver = false;
  let sent = Promise.resolve();
  const send = (id: number, letter: string, ...fields: FrameField[]) => {
    if (isOver) return;
    const bytes = encodeFrame(id, letter, fields);
    sent = sent.then(() => (isOver ? undefined : channel?.write(bytes))).catch(close);
  };
  const connections = relayed(send, onConnection);
  const looking = setInterval(connections.endIdle, LOOK_MS).unref();

  function close(): void {
    if (isOver) return;
    isOver = true;
    clearInterval(looking);
    clearTimeout(patience);
    signal.removeEventListener("abort", close);
    channel?.close();
    greeted.resolve(undefined);
    connections.endAll();
    ended.resolve();
  }
  const patience = setTimeout(close, GREETING_MS);
  signal.addEventListener("abort", close, { once: true });

  let isGreeted = false;
  const read = frameReader((frame) => {
    if (isGreeted) return connections.onFrame(frame);
    greeted.resolve(portIn(frame));
    clearTimeout(patience);
    isGreeted = true;
  });
  try {
    signal.throwIfAborted();
    channel = await open(
      eventsOf(read, close, () => isOver),
      signal,
    );
    if (isOver) channel.close();
    else {
      const script = `unset ${UNSET}; exec 2>/dev/null perl -e ${quote(RELAY_PROGRAM)} ${port}\n`;
      await channel.write(Buffer.from(script)).catch(close);
    }
    const at = await greeted.promise;
    signal.throwIfAborted();
    signal.removeEventListener("abort", close);
    return at === undefined ? undefined : { port: at, ended: ended.promise, close };
  } catch (error) {
    close();
    throw error;
  }
}

function eventsOf(read: (bytes: Buffer) => void, close: () => void, isOver: () => boolean): ChannelEvents {
  let noise = 0;
  return {
    onOutput(bytes) {
      if (isOver()) return;
      try {
        read(bytes);
      } catch {
        close();
      }
    },
    onErrorOutput(bytes) {
      noise += bytes.length;
      if (noise > MAX_NOISE_BYTES) close();
    },
    onClose: close,
  };
}

/** Returns the port in a greeting. Throws for any other frame. */
function portIn({ id, letter, fields }: HelperFrame): number {
  const [name, version, digits] = fields.map(String);
  const port = /^\d{1,5}$/.test(digits ?? "") ? Number(digits) : 0;
  if (
    id !== 0 ||
    letter !== "h" ||
    port < 1 ||
    port > 65_535 ||
    `${name} ${version}` !== RELAY_GREETING.join(" ")
  )
    throw new Error("its first frame is not a greeting");
  return port;
}

type Send = (id: number, letter: string, ...fields: FrameField[]) => void;

function relayed(send: Send, onConnection: (connection: Duplex) => void) {
  const open = new Map<number, RelayedConnection>();

  const begin = (id: number) => {
    if (open.has(id) || open.size >= MAX_CONNECTIONS) throw new Error("it opened too many connections");
    const connection: RelayedConnection = {
      stream: streamOf(
        id,
        () => connection,
        send,
        () => open.delete(id),
      ),
      granted: WINDOW_BYTES,
      held: 0,
      credit: WINDOW_BYTES,
      waiting: undefined,
      lastMoved: performance.now(),
    };
    open.set(id, connection);
    onConnection(connection.stream);
  };

  const onData = (connection: RelayedConnection, bytes: Buffer, id: number) => {
    connection.granted -= bytes.length;
    if (connection.granted < 0 || bytes.length === 0) throw new Error("it sent more than it was granted");
    connection.held += bytes.length;
    // Otherwise, the reader requests more data when there is room.
    if (connection.stream.push(bytes)) grant(id, connection, send);
  };

  const onGrant = (connection: RelayedConnection, digits: string) => {
    const count = /^\d{1,7}$/.test(digits) ? Number(digits) : 0;
    connection.credit += count;
    if (count === 0 || connection.credit > WINDOW_BYTES) throw new Error("it granted more than it received");
    const { waiting } = connection;
    connection.waiting = undefined;
    waiting?.();
  };

  return {
    /** Handles a frame. Throws for a frame that a relay would never send. */
    onFrame({ id, letter, fields }: HelperFrame): void {
      const connection = open.get(id);
      if (letter === "o") begin(id);
      // The stream may have ended here before the other end was informed.
      if (!connection || letter === "o") return;
      connection.lastMoved = performance.now();
      const [field = Buffer.alloc(0)] = fields;
      if (letter === "d") onData(connection, field, id);
      else if (letter === "g") onGrant(connection, field.toString("latin1"));
      else if (letter === "e") connection.stream.push(null);
      else if (letter === "x") connection.stream.destroy();
      else throw new Error(`it sent an unknown frame \`${letter}\``);
    },
    endIdle(): void {
      const since = performance.now() - IDLE_MS;
      for (const { stream, lastMoved } of open.values()) if (lastMoved < since) stream.destroy();
    },
    endAll(): void {
      for (const { stream } of open.values()) stream.destroy();
    },
  };
}

/** Tells the sandbox that the reader has read the bytes held so far. */
function grant(id: number, connection: RelayedConnection, send: Send): void {
  if (connection.held === 0) return;
  send(id, "g", String(connection.held));
  connection.granted += connection.held;
  connection.held = 0;
}

function streamOf(id: number, connection: () => RelayedConnection, send: Send, onClose: () => void): Duplex {
  const write = (bytes: Buffer, done: () => void) => {
    const its = connection();
    const part = bytes.subarray(0, Math.min(its.credit, RELAY_CHUNK_BYTES));
    its.credit -= part.length;
    its.lastMoved = performance.now();
    if (part.length > 0) send(id, "d", part);
    const rest = bytes.subarray(part.length);
    if (rest.length === 0) done();
    else if (its.credit > 0) write(rest, done);
    else its.waiting = () => write(rest, done);
  };
  return new Duplex({
    allowHalfOpen: true,
    highWaterMark: RELAY_CHUNK_BYTES,
    read: () => grant(id, connection(), send),
    write: (bytes: Buffer, _, done) => write(bytes, done),
    final(done) {
      send(id, "e");
      done();
    },
    destroy(error, done) {
      send(id, "x");
      onClose();
      done(error);
    },
  });
}
