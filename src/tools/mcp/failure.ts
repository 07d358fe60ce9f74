// What can go wrong with a server.

/**
 * `forgotten`: it no longer knows our session, and has done nothing. `answered`: it refuses. `ended`: the
 * connection is gone, and what it did is not known. `strange`: it cannot be understood.
 */
export type FailureKind = "forgotten" | "answered" | "ended" | "strange";

/** The message completes "The server …". No path, address or secret of ours is in it. */
export class McpFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "McpFailure";
    this.kind = kind;
  }
}

/** Of a server that is not in the configuration any more, or whose process ends with ours. */
export const dismissed = () => new McpFailure("ended", "is not configured any more");
