// Counts the bytes that wait in this process for clients to read them: long responses, and events for slow viewers.
// Their sum is limited. Above the limit, the server cuts the response that has stalled for longest, starting with the
// tenant that has the most bytes.

import type { FastifyReply } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import { countsOf } from "../../agent/core/shares.ts";
import type { Logger } from "../../lib/logger.ts";
import { tenantOf } from "../auth/guard.ts";

/** The time without progress after which a response may be cut, in ms. */
const STILL_MS = 1000;
/** The time after which a refused client may retry, in ms. */
const RETRY_MS = 5000;
/** The minimum interval between two log lines about cut responses, in ms. */
const LOG_MS = 10_000;

/** Reports how many bytes of a response are waiting for its client. Call this whenever the number changes. */
export type ReportUnread = (bytes: number) => void;

interface PendingResponse {
  readonly tenant: string;
  readonly raw: FastifyReply["raw"];
  bytes: number;
  /** The time at which the client last read data, or last had no data to read. */
  movedAt: number;
}

export class UnreadResponses {
  readonly #most: number;
  readonly #logger: Pick<Logger, "warn">;
  readonly #answers = new Set<PendingResponse>();
  #bytes = 0;
  #cut = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;

  /** `most`: the maximum number of bytes in all responses. */
  constructor(most: number, logger: Pick<Logger, "warn">) {
    this.#most = most;
    this.#logger = logger;
  }

  /** The number of bytes that are waiting now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts a response until its connection closes. Throws `unavailable` if there is no room for another. */
  open({ request, raw }: Pick<FastifyReply, "request" | "raw">): ReportUnread {
    this.#makeRoom();
    if (this.#bytes >= this.#most) throw full(this.#most);
    if (raw.destroyed || raw.closed) return () => {};
    const answer = { tenant: tenantOf(request), raw, bytes: 0, movedAt: performance.now() };
    this.#answers.add(answer);
    raw.once("close", () => this.#forget(answer));
    return (bytes) => this.#count(answer, bytes);
  }

  #count(answer: PendingResponse, bytes: number): void {
    if (!this.#answers.has(answer)) return;
    this.#bytes += bytes - answer.bytes;
    answer.bytes = bytes;
    answer.movedAt = performance.now();
    this.#makeRoom();
  }

  #forget(answer: PendingResponse): void {
    if (this.#answers.delete(answer)) this.#bytes -= answer.bytes;
  }

  /** Cuts stalled responses until the sum is within the limit. */
  #makeRoom(): void {
    while (this.#bytes >= this.#most) {
      const answer = this.#slowest();
      if (!answer) return;
      this.#forget(answer);
      answer.raw.destroy();
      this.#cut++;
      this.#report(answer);
    }
  }

  #slowest(): PendingResponse | undefined {
    const before = performance.now() - STILL_MS;
    const still = [...this.#answers].filter(({ bytes, movedAt }) => bytes > 0 && movedAt <= before);
    const held = (wanted: string) =>
      still.reduce((sum, { tenant, bytes }) => sum + (tenant === wanted ? bytes : 0), 0);
    const [largest] = [...countsOf(still.map(({ tenant }) => tenant)).keys()].sort(
      (a, b) => held(b) - held(a),
    );
    return still.filter(({ tenant }) => tenant === largest).sort((a, b) => a.movedAt - b.movedAt)[0];
  }

  #report({ tenant }: PendingResponse): void {
    if (performance.now() - this.#loggedAt < LOG_MS) return;
    this.#logger.warn(
      { tenant, cut: this.#cut, unread_bytes: this.#bytes, most: this.#most },
      "responses were cut: too many bytes waited for clients that did not read (`limits.unread_bytes`)",
    );
    this.#cut = 0;
    this.#loggedAt = performance.now();
  }
}

function full(most: number): AppError {
  return new AppError(
    "unavailable",
    `${most} bytes of responses wait for their clients, the maximum of this server (\`limits.unread_bytes\`). Try again in ${RETRY_MS / 1000} s.`,
    { details: { limit: "limits.unread_bytes", most, retry_after_ms: RETRY_MS } },
  );
}
