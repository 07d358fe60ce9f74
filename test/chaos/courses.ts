// What a reader reads, and what it makes of it: one run from its first event to its last, or one thread, run after run.

import type { Frame } from "../../src/client/frames.ts";
import { isEnd, type Journal } from "./journal.ts";

export interface Course {
  readonly path: string;
  /** The id of the event that was read last. */
  readonly cursor: string | undefined;
  /** Nothing more is to come. */
  readonly isOver: boolean;
  /** The server has begun to answer with a stream. */
  opened(): void;
  read(frame: Frame): void;
  /** The server had an answer that is no stream. */
  refused(status: number, text: string): void;
}

export function runCourse(thread: string, run: string, journal: Journal): Course {
  let seq = 0;
  let cursor: string | undefined;
  let isOver = false;
  const fault = (text: string) => journal.fault(`${run} of ${thread}: a reader got ${text}`);
  return {
    path: `/threads/${thread}/runs/${run}/events`,
    get cursor() {
      return cursor;
    },
    get isOver() {
      return isOver;
    },
    opened() {},
    read(frame) {
      const place = placeOf(frame, fault);
      if (!place) return;
      if (place.run !== run || place.seq !== seq + 1 || isOver)
        fault(`${frame.id} after ${cursor ?? "nothing"}`);
      journal.read(run, place.seq, { ...place, ...frame });
      seq = place.seq;
      cursor = frame.id;
      isOver = isEnd(frame.event);
    },
    refused(status, text) {
      isOver = true;
      fault(`${status} after ${cursor ?? "nothing"}: ${text}`);
    },
  };
}

export interface ThreadCourse extends Course {
  readonly thread: string;
  /** Those that were read, in order. */
  readonly runs: readonly string[];
  /** Whether the last of them was read to its end. */
  readonly isBetweenRuns: boolean;
  /** When the server last let it in without a cursor, in ms: what ended before that is not sent. */
  readonly openedAt: number;
}

export function threadCourse(thread: string, journal: Journal): ThreadCourse {
  const runs: string[] = [];
  let seq = 0;
  let cursor: string | undefined;
  let isBetweenRuns = true;
  let isOver = false;
  let openedAt = Number.POSITIVE_INFINITY;
  const fault = (text: string) => journal.fault(`${thread}: a follower got ${text}`);
  return {
    thread,
    runs,
    path: `/threads/${thread}/events`,
    get cursor() {
      return cursor;
    },
    get isOver() {
      return isOver;
    },
    get isBetweenRuns() {
      return isBetweenRuns;
    },
    get openedAt() {
      return openedAt;
    },
    opened() {
      if (cursor === undefined) openedAt = Date.now();
    },
    read(frame) {
      const place = placeOf(frame, fault);
      if (!place) return;
      const isNext = isBetweenRuns
        ? place.seq === 1 && !runs.includes(place.run)
        : place.seq === seq + 1 && place.run === runs.at(-1);
      if (!isNext) fault(`${frame.id} after ${cursor ?? "nothing"}`);
      if (place.run !== runs.at(-1)) runs.push(place.run);
      journal.read(place.run, place.seq, { ...place, ...frame });
      seq = place.seq;
      cursor = frame.id;
      isBetweenRuns = isEnd(frame.event);
    },
    refused(status, text) {
      // A thread comes into being with its first run.
      if (status === 404 && cursor === undefined) return;
      isOver = true;
      fault(`${status} after ${cursor ?? "nothing"}: ${text}`);
    },
  };
}

interface Place {
  readonly run: string;
  readonly epoch: number;
  readonly seq: number;
}

/** Undefined for what is in a stream, but not of a run. */
function placeOf({ id, event, data }: Frame, fault: (text: string) => void): Place | undefined {
  if (id === undefined) {
    if (event === "stream_reset") fault(`stream_reset: ${data}`);
    return undefined;
  }
  const [, run = "", epoch, seq] = /^(.+):(\d+)-(\d+)$/.exec(id) ?? [];
  return { run, epoch: Number(epoch), seq: Number(seq) };
}
