// The two ways to work in a container, behind one interface: the plain way, which is a `docker exec` per operation, and
// Skein's. Every method returns the amount that it found, and throws if the operation failed.

import { addAbortSignal, finished, Readable, Writable } from "node:stream";
import { promisify } from "node:util";
import type Docker from "dockerode";
import type { Backend } from "../../src/agent/core/backend.ts";
import { drain } from "../../src/agent/core/stream.ts";

const COMMAND_MS = 120_000;

/** Paths are relative to the workspace and contain only plain words. */
export interface Way {
  /** Returns the number of bytes. */
  read(path: string): Promise<number>;
  /** Returns the number of bytes. */
  write(path: string, data: Uint8Array | AsyncIterable<Uint8Array>): Promise<number>;
  /** Returns the number of entries. Each is listed with its size and time. */
  list(folder: string): Promise<number>;
  /** Returns the number of lines below the folder that contain this word. */
  grep(word: string, folder: string): Promise<number>;
  /** Returns the exit code. */
  run(command: string): Promise<number>;
}

export function skeinWay(backend: Backend, signal: AbortSignal): Way {
  return {
    async read(path) {
      let bytes = 0;
      for await (const part of backend.read(path, {}, signal)) bytes += part.length;
      return bytes;
    },
    write: (path, data) => backend.write(path, data, signal),
    list: async (folder) => (await backend.list(folder, signal)).length,
    grep: async (word, folder) => (await backend.grep(word, folder, undefined, signal)).matches.length,
    async run(command) {
      const { exitCode, ended } = await drain(backend.exec(command, { signal, timeoutMs: COMMAND_MS }));
      if (ended !== undefined || exitCode === null) throw new Error(`\`${command}\` ended: ${ended}.`);
      return exitCode;
    },
  };
}

interface Ran {
  readonly exitCode: number;
  readonly bytes: number;
  readonly lines: number;
}

/**
 * Works like a program without further optimization: creates the exec, starts it, reads to the end, and inspects its
 * exit code.
 */
export function plainWay(docker: Docker, container: string, signal: AbortSignal): Way {
  const exec = async (command: readonly string[], input?: Readable): Promise<Ran> => {
    const made = await docker.getContainer(container).exec({
      ...{ Cmd: [...command], User: "1000:1000", WorkingDir: "/workspace", abortSignal: signal },
      ...{ AttachStdin: input !== undefined, AttachStdout: true, AttachStderr: true },
    });
    const stream = await made.start({ hijack: true, stdin: input !== undefined, abortSignal: signal });
    addAbortSignal(signal, stream);
    const output = new Counter();
    docker.modem.demuxStream(stream, output, output);
    input?.pipe(stream);
    await over(stream, { writable: false });
    const { ExitCode } = await made.inspect({ abortSignal: signal });
    return { exitCode: ExitCode ?? -1, bytes: output.bytes, lines: output.lines };
  };
  const succeed = async (command: readonly string[], input?: Readable): Promise<Ran> => {
    const ran = await exec(command, input);
    if (ran.exitCode !== 0) throw new Error(`\`${command.join(" ")}\` ended with ${ran.exitCode}.`);
    return ran;
  };
  return {
    read: async (path) => (await succeed(["cat", path])).bytes,
    async write(path, data) {
      let bytes = 0;
      const source = data instanceof Uint8Array ? [data] : data;
      const counted = async function* () {
        for await (const part of source) {
          bytes += part.length;
          yield part;
        }
      };
      await succeed(["sh", "-c", 'cat > "$0"', path], Readable.from(counted()));
      return bytes;
    },
    list: async (folder) => (await succeed(["sh", "-c", 'stat -c "%f %s %Y %n" "$0"/*', folder])).lines,
    grep: async (word, folder) => (await succeed(["grep", "-rn", word, folder])).lines,
    run: async (command) => (await exec(["sh", "-c", command])).exitCode,
  };
}

const over = promisify(finished);
const NEWLINE = 10;

/** Counts bytes without storing them. */
class Counter extends Writable {
  bytes = 0;
  lines = 0;

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.bytes += chunk.length;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) this.lines++;
    done();
  }
}
