// What several scripts answer with.

/** A run: what it was made as, how it ended, and its attempt while it runs. */
export type ViewReply = [run: string, made: string, end: string | null, attempt: string | null];

/** What the holder of a lease has to know; `seq` is the run's last. */
export type ClaimReply = [owner: string, epoch: string, seq: string, request: string, run: ViewReply];
