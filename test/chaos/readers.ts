// Readers: each follows its run on a random replica, and comes back with its cursor as often
// as it is thrown out.

import { setTimeout as sleep } from "node:timers/promises";
import { frames } from "../../src/client/frames.ts";
import { type Course, runCourse, type ThreadCourse, threadCourse } from "./courses.ts";
import { type Opened, open } from "./http.ts";
import type { Journal } from "./journal.ts";
import type { Random } from "./random.ts";
import type { Replicas } from "./replicas.ts";

/** Heartbeats come more often than this: a server that says less is asleep. */
const SILENCE_MS = 4_000;
const PAUSE_MS = 100;

export interface Following {
  readonly run: string;
  readonly thread: string;
  /** The answer to the POST that started the run, if that is read. */
  readonly first?: Opened;
}

interface Surroundings {
  readonly replicas: Replicas;
  readonly journal: Journal;
  /** Aborted when reading ends. */
  readonly signal: AbortSignal;
}

export class Readers {
  readonly #in: Surroundings;
  readonly #connections = new Set<AbortController>();
  readonly #unfinished = new Set<Course>();
  readonly #followers: ThreadCourse[] = [];

  constructor(surroundings: Surroundings) {
    this.#in = surroundings;
  }

  /** Throws out about this share of all readers. */
  disconnect(random: Random, share: number): void {
    for (const connection of this.#connections) {
      if (!random.chance(share)) continue;
      this.#in.journal.count("disconnects");
      connection.abort();
    }
  }

  /** Who has not come to the end of a run. */
  get unfinished(): string[] {
    return [...this.#unfinished].map(({ path, cursor }) => `${path} after ${cursor ?? "nothing"}`);
  }

  /** The readers that follow threads. */
  get followers(): readonly ThreadCourse[] {
    return this.#followers;
  }

  /** Resolves at the end of the run or of reading. */
  async follow({ run, thread, first }: Following, random: Random): Promise<void> {
    const course = runCourse(thread, run, this.#in.journal);
    this.#in.journal.count("readers of runs");
    this.#unfinished.add(course);
    if (first) await this.#take(course, first);
    await this.#stay(course, random);
    if (course.isOver) this.#unfinished.delete(course);
  }

  /** Resolves when reading ends. */
  async followThread(thread: string, random: Random): Promise<void> {
    const course = threadCourse(thread, this.#in.journal);
    this.#in.journal.count("readers of threads");
    this.#followers.push(course);
    await this.#stay(course, random);
  }

  async #stay(course: Course, random: Random): Promise<void> {
    while (!course.isOver && !this.#in.signal.aborted) {
      await this.#connect(course, random);
      if (!course.isOver) await sleep(PAUSE_MS);
    }
  }

  async #connect(course: Course, random: Random): Promise<void> {
    const { cursor, path } = course;
    const isInHeader = random.chance(0.7);
    const query = cursor === undefined || isInHeader ? "" : `?after=${encodeURIComponent(cursor)}`;
    const headers = cursor !== undefined && isInHeader ? { "last-event-id": cursor } : {};
    this.#in.journal.count("connections of readers");
    const opened = await open(random.pick(this.#in.replicas.urls) + path + query, { headers }, SILENCE_MS);
    if ("lost" in opened) return;
    if (opened.response.status === 200) return this.#take(course, opened);
    const text = await opened.response.text().catch(() => "");
    if (opened.response.status !== 503) course.refused(opened.response.status, text);
  }

  async #take(course: Course, { response, leave }: Opened): Promise<void> {
    const { signal, journal } = this.#in;
    const silence = setTimeout(() => leave.abort(), SILENCE_MS);
    const heard = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        silence.refresh();
        controller.enqueue(chunk);
      },
    });
    const onEnd = () => leave.abort();
    signal.addEventListener("abort", onEnd);
    this.#connections.add(leave);
    course.opened();
    try {
      if (!response.body) return;
      for await (const frame of frames(response.body.pipeThrough(heard))) {
        if (frame.id !== undefined) journal.count("events delivered");
        course.read(frame);
      }
    } catch {
      // The connection is lost: that is what this is about.
    } finally {
      clearTimeout(silence);
      signal.removeEventListener("abort", onEnd);
      this.#connections.delete(leave);
      leave.abort();
    }
  }
}
