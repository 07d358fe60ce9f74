// The limits that both ends of a relay share. The frames are described in relay-program.ts.

/** The first fields of the relay's first frame, `h`; the port follows. */
export const RELAY_GREETING: readonly string[] = ["skein-network", "1"];

/** Maximum number of connections at once. Further ones wait to be accepted. */
export const RELAYED_CONNECTIONS = 64;
/** Bytes of one connection that may be under way in each direction. */
export const WINDOW_BYTES = 256 * 1024;
/** Maximum bytes of data in one frame. */
export const RELAY_CHUNK_BYTES = 64 * 1024;
