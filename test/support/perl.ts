// The helper that reads and writes files, as a child process of the test; and one that the test plays itself.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chown, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import type { Backend } from "../../src/agent/core/backend.ts";
import { editing } from "../../src/sandbox/edit.ts";
import { searching } from "../../src/sandbox/search.ts";
import { openPerl, type PerlFiles } from "../../src/sandbox/shell/perl/client.ts";
import {
  encodeFrame,
  type FrameField,
  frameReader,
  type HelperFrame,
} from "../../src/sandbox/shell/perl/frames.ts";
import { SandboxLostError } from "../../src/sandbox/shell/script.ts";
import type { OpenChannel } from "../../src/sandbox/shell/session.ts";

const { signal } = new AbortController();
/** Root bypasses permissions, so tests run as another user. */
export const USER = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};
export const hasPerl = process.platform === "linux" && spawnSync("perl", ["-e", "1"]).status === 0;

const folders: string[] = [];
const helpers: PerlFiles[] = [];
afterAll(async () => {
  for (const helper of helpers) helper.close(new Error("the tests are over"));
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

export async function newFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "skein-perl-")));
  folders.push(folder);
  if (USER.uid !== undefined) await chown(folder, USER.uid, USER.gid);
  return folder;
}

/** A shell as a child process. */
export function childShell(
  cwd: string,
  environment: Record<string, string> = {},
): { open: OpenChannel; child: () => ChildProcess } {
  let child: ChildProcess | undefined;
  const open: OpenChannel = async (events) => {
    const env = { PATH: "/usr/bin:/bin", ...environment };
    const started = spawn("/bin/sh", [], { cwd, env, stdio: "pipe", ...USER });
    child = started;
    started.stdout.on("data", events.onOutput);
    started.stderr.on("data", events.onErrorOutput);
    for (const stream of [started.stdin, started.stdout, started.stderr]) stream.on("error", () => {});
    started.on("close", () => events.onClose());
    await once(started, "spawn");
    return {
      write: (bytes) =>
        new Promise((resolve, reject) => {
          started.stdin.write(bytes, (error) => (error ? reject(error) : resolve()));
        }),
      pause: () => started.stdout.pause(),
      resume: () => started.stdout.resume(),
      close: () => void [started.stdin, started.stdout, started.stderr].map((stream) => stream.destroy()),
    };
  };
  return {
    open,
    child() {
      if (!child) throw new Error("No shell was opened.");
      return child;
    },
  };
}

interface Opened {
  readonly workdir: string;
  readonly perl: PerlFiles;
  readonly backend: Backend;
  readonly child: ChildProcess;
}

export async function opened(environment?: Record<string, string>): Promise<Opened> {
  const workdir = await newFolder();
  const { open, child } = childShell(workdir, environment);
  const perl = await openPerl(open, workdir, signal);
  if (!perl) throw new Error("There is no helper.");
  helpers.push(perl);
  return { workdir, perl, child: child(), backend: backendOf(perl, workdir) };
}

const backendOf = (files: PerlFiles, workdir: string): Backend => ({
  ...{ type: "perl", ...files, ...editing(files), ...searching(files) },
  async *exec(command) {
    const child = spawn("/bin/sh", ["-c", command], { cwd: workdir, ...USER });
    const chunks: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => chunks.push(chunk));
    const [exitCode] = await once(child, "close");
    return { output: Buffer.concat(chunks).toString(), omitted: 0, exitCode };
  },
});

export async function collected<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
}

export const lost = (attempt: Promise<unknown>) => expect(attempt).rejects.toBeInstanceOf(SandboxLostError);

export const staged = (workdir: string) => readdir(join(workdir, ".skein", "staging"));

/** Plays the other end. */
export interface Puppet {
  readonly open: OpenChannel;
  /** Requests, as they came. */
  readonly asked: HelperFrame[];
  readonly say: (bytes: Uint8Array) => void;
  readonly answer: (id: number, letter: string, ...fields: FrameField[]) => void;
  readonly isClosed: () => boolean;
}

export function puppet({
  greets = true,
  onRequest = () => {},
}: {
  greets?: boolean;
  onRequest?: (frame: HelperFrame, puppet: Puppet) => void;
} = {}): Puppet {
  let isClosed = false;
  let say = (_: Uint8Array) => {};
  const asked: HelperFrame[] = [];
  const read = frameReader((frame) => {
    asked.push(frame);
    onRequest(frame, it);
  });
  const it: Puppet = {
    async open(events) {
      say = (bytes) => isClosed || events.onOutput(Buffer.from(bytes));
      let isScript = true;
      return {
        async write(bytes) {
          if (isClosed) throw new Error("closed");
          if (!isScript) return read(Buffer.from(bytes));
          isScript = false;
          if (greets) it.answer(0, "h", "skein-files", "1");
        },
        pause() {},
        resume() {},
        close() {
          isClosed = true;
          events.onClose();
        },
      };
    },
    asked,
    say: (bytes) => say(bytes),
    answer: (id, letter, ...fields) => say(encodeFrame(id, letter, fields)),
    isClosed: () => isClosed,
  };
  return it;
}

export async function played(play: Puppet): Promise<PerlFiles> {
  const perl = await openPerl(play.open, "/workspace", signal);
  if (!perl) throw new Error("There is no helper.");
  return perl;
}
