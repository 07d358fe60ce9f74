// The stream of a running exec as a channel: Docker puts what a process prints into frames, each with a header of
// eight bytes that says on which of its outputs it was and how long it is.

import type { Duplex } from "node:stream";
import type { Channel, ChannelEvents } from "../shell/channel.ts";

const HEADER_BYTES = 8;
const OUTPUT = 1;
const ERROR_OUTPUT = 2;

/** The stream belongs to the channel from now on. */
export function frameChannel(stream: Duplex, events: ChannelEvents): Channel {
  let failure: Error | undefined;
  const read = unframe(events);
  stream.on("data", (bytes: Buffer) => {
    if (!read(bytes)) stream.destroy(new Error("The engine sent what is no frame."));
  });
  stream.on("end", () => stream.destroy());
  stream.on("error", (error) => {
    failure = error;
  });
  stream.on("close", () => events.onClose(failure));
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        stream.write(bytes, (error) => (error ? reject(error) : resolve()));
      }),
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    close: () => void stream.destroy(),
  };
}

/** Returns what takes the stream's bytes, in whatever pieces they come; it returns false for what is no frame. */
function unframe({ onOutput, onErrorOutput }: ChannelEvents): (bytes: Buffer) => boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerBytes = 0;
  /** Of the frame at hand, so many bytes are to come. */
  let missing = 0;
  return (bytes) => {
    let rest = bytes;
    while (rest.length > 0) {
      if (missing === 0) {
        const taken = rest.copy(header, headerBytes, 0, HEADER_BYTES - headerBytes);
        headerBytes += taken;
        rest = rest.subarray(taken);
        if (headerBytes < HEADER_BYTES) return true;
        headerBytes = 0;
        missing = header.readUInt32BE(4);
        if (header[0] !== OUTPUT && header[0] !== ERROR_OUTPUT) return false;
        continue;
      }
      const part = rest.subarray(0, missing);
      missing -= part.length;
      rest = rest.subarray(part.length);
      if (header[0] === OUTPUT) onOutput(part);
      else onErrorOutput(part);
    }
    return true;
  };
}
