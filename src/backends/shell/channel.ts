// The seam to where shells run: a container's exec stream, or a child process.

/** A running `/bin/sh` that reads its script from its standard input. */
export interface Channel {
  /** Resolves when more may be written. Rejects once the channel is closed. */
  write(bytes: Uint8Array): Promise<void>;
  /** Stops and goes on with the flow of output; while it is stopped, who writes there waits. */
  pause(): void;
  resume(): void;
  /** At once, without a last word: the shell sees the end of its input. What runs in it is not killed. */
  close(): void;
}

/** `bytes` may be used until the call returns; what is kept is copied. */
export interface ChannelEvents {
  onOutput(bytes: Buffer): void;
  onErrorOutput(bytes: Buffer): void;
  /** Once, for whatever reason; nothing comes after it. */
  onClose(error?: Error): void;
}

/** Throws when no shell can be started within a few seconds, or `signal` aborts. The caller closes it. */
export type OpenChannel = (events: ChannelEvents, signal: AbortSignal) => Promise<Channel>;
