// The limits that both ends of a relay share. The frames are described in relay-program.ts.

/** The first fields of the relay's first frame, `h`. The port follows them. */
export const RELAY_GREETING: readonly string[] = ["skein-network", "1"];

/** The maximum number of connections at the same time. Further connections wait to be accepted. */
export const RELAYED_CONNECTIONS = 64;
/** The number of bytes of one connection that may be in transit in each direction. */
export const WINDOW_BYTES = 256 * 1024;
/** The maximum number of bytes of data in one frame. */
export const RELAY_CHUNK_BYTES = 64 * 1024;
