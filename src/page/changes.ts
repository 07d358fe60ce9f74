// Live changes to the user's threads, runs and questions. One tab reads the stream and forwards it to the other tabs,
// because browsers allow only six HTTP/1.1 connections to a server.

import type { UserEvent } from "../client/client.ts";
import { baseUrl, client, messageOf, session } from "./session.ts";

/** `read_again`: the stream was reconnected, and the server does not resend earlier changes. */
export type UserChange = UserEvent | { readonly event: "read_again" };

const listeners = new Set<(change: UserChange) => void>();

/** Calls `listener` with each change. Returns a function that unsubscribes. */
export function onChange(listener: (change: UserChange) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

const PAUSE_MS = 300;

export interface ListRefresh {
  /** Cancels the read in progress and reads again. */
  readonly readNow: () => void;
  readonly end: () => void;
}

/**
 * Calls `read` as soon as the page receives changes, so that it misses none, and again shortly after each relevant
 * change. Changes that arrive during a read cause one more read. `read` must not throw. The signal that `read` receives
 * aborts when `end` is called and when `readNow` starts another read.
 */
export function keepRead(
  concerns: (change: UserChange) => boolean,
  read: (signal: AbortSignal) => Promise<void>,
): ListRefresh {
  let ending = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isReading = false;
  let isStale = false;

  async function readNow(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    ending.abort();
    const mine = new AbortController();
    ending = mine;
    isReading = true;
    isStale = false;
    await read(mine.signal);
    if (mine.signal.aborted) return;
    isReading = false;
    if (isStale) readSoon();
  }
  function readSoon(): void {
    if (isReading) isStale = true;
    else timer ??= setTimeout(readNow, PAUSE_MS);
  }

  const forget = onChange((change) => {
    if (change.event === "read_again" || concerns(change)) readSoon();
  });
  let isEnded = false;
  void followed.then(() => {
    if (!isEnded) void readNow();
  });
  return {
    readNow: () => void readNow(),
    end() {
      isEnded = true;
      forget();
      clearTimeout(timer);
      ending.abort();
    },
  };
}

/** The longest wait for the stream before the first read. */
const CONNECT_MS = 1_000;

let followed = Promise.resolve();

/**
 * Follows the current user's changes, either in this tab or through another tab. Returns a function that stops
 * following.
 */
export function followChanges(): () => void {
  const ending = new AbortController();
  // Tabs can be signed in as different users.
  const name = ["skein-events", baseUrl, session.me?.tenant, session.me?.user].join(" ");
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }) => told(data as UserChange);
  const tell = (change: UserChange) => {
    told(change);
    if (!ending.signal.aborted) channel.postMessage(change);
  };
  const begun = Promise.withResolvers<void>();
  let hasBegun = false;
  const begin = () => {
    hasBegun = true;
    begun.resolve();
  };
  followed = begun.promise;
  setTimeout(begin, CONNECT_MS);
  void isLed(name).then((isFollowed) => isFollowed && begin());
  const onConnected = () => {
    // Before `begin`, this tab has not read anything, so it does not need to read again.
    if (hasBegun) told({ event: "read_again" });
    begin();
    if (!ending.signal.aborted) channel.postMessage({ event: "read_again" } satisfies UserChange);
  };
  void lead(name, { tell, onConnected }, ending.signal);
  return () => {
    ending.abort();
    channel.close();
  };
}

/** Returns whether another tab already reads the stream. */
async function isLed(name: string): Promise<boolean> {
  const { held = [] } = (await navigator.locks?.query()) ?? {};
  return held.some((lock) => lock.name === name);
}

interface LeaderCallbacks {
  readonly tell: (change: UserChange) => void;
  /** Called each time the stream connects. */
  readonly onConnected: () => void;
}

/** Reads the stream for all tabs while this tab owns the lock. On plain http, browsers provide no locks. */
async function lead(
  name: string,
  { tell, onConnected }: LeaderCallbacks,
  signal: AbortSignal,
): Promise<void> {
  const read = async () => {
    for await (const change of client.changes(signal, { onConnected })) tell(change);
  };
  try {
    if (navigator.locks) await navigator.locks.request(name, { signal }, read);
    else await read();
  } catch (error) {
    if (!signal.aborted) console.warn(`Changes are no longer followed: ${messageOf(error)}`);
  }
}

function told(change: UserChange): void {
  for (const listener of [...listeners]) listener(change);
}
