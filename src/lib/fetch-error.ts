// How a request to a stranger's address fails.

/**
 * `forbidden`: it may not be sent there. `unreachable`: no connection, so nothing was sent. `broken`: the connection
 * ended too early; what was sent may have had its effect. `unreadable`: there was an answer, and it cannot be taken.
 */
export type FetchFailure = "forbidden" | "unreachable" | "broken" | "unreadable";

/** The message completes "It failed: …" and names neither host nor address. */
export class FetchError extends Error {
  readonly failure: FetchFailure;

  constructor(failure: FetchFailure, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "FetchError";
    this.failure = failure;
  }
}
