// Accesses a sandbox's files. The file helper does the work. If there is no helper, or if it is lost, the
// shells do the work.

import { AppError } from "../../agent/core/errors.ts";
import { lostWhile, quoted } from "../paths.ts";
import { type Files, shellFiles } from "../shell/files.ts";
import { SandboxLostError, type ScriptRunner } from "../shell/script.ts";
import type { DockerSandbox } from "./sandbox.ts";

export function sandboxFiles(current: () => DockerSandbox, workdir: string): Files {
  const runner: ScriptRunner = {
    run: (fragment, signal) => current().run(fragment, signal),
    runOnce: (fragment, signal) => current().runOnce(fragment, signal),
  };
  const byShell = shellFiles(runner, workdir);

  /** Tries the helper and then a shell. Use this for operations that are safe to repeat. */
  const either = async <T>(work: (files: Files) => Promise<T>, signal: AbortSignal): Promise<T> => {
    const helper = await current().helper(signal);
    if (!helper) return work(byShell);
    return work(helper).catch((error: unknown) => {
      if (error instanceof SandboxLostError) return work(byShell);
      throw error;
    });
  };

  return {
    workdir,
    stat: (path, signal) => either((files) => files.stat(path, signal), signal),
    list: (path, signal) => either((files) => files.list(path, signal), signal),
    files: (folder, skipped, signal) => either((files) => files.files(folder, skipped, signal), signal),

    async *read(path, range, signal) {
      const helper = await current().helper(signal);
      yield* helper ? readBy(helper, byShell, path, range, signal) : byShell.read(path, range, signal);
    },

    async write(path, data, signal) {
      if (data instanceof Uint8Array) return either((files) => files.write(path, data, signal), signal);
      const files = (await current().helper(signal)) ?? byShell;
      return files.write(path, data, signal).catch((error: unknown) => {
        throw error instanceof SandboxLostError ? lostWhile(`${quoted(path)} was written`, error) : error;
      });
    },

    async remove(path, signal) {
      const helper = await current().helper(signal);
      if (!helper) return byShell.remove(path, signal);
      await helper.remove(path, signal).catch(async (error: unknown) => {
        if (!(error instanceof SandboxLostError)) throw error;
        // The helper may have removed the entry before it was lost.
        await byShell.remove(path, signal).catch(unlessMissing);
      });
    },

    async *contents(paths, maxBytes, signal) {
      const helper = await current().helper(signal);
      yield* helper
        ? contentsBy(helper, byShell, paths, maxBytes, signal)
        : byShell.contents(paths, maxBytes, signal);
    },
  };
}

/** Reads a file through the helper. If the helper is lost before the first byte, a shell reads the file. */
async function* readBy(
  helper: Files,
  byShell: Files,
  ...[path, range, signal]: Parameters<Files["read"]>
): ReturnType<Files["read"]> {
  let hasBegun = false;
  try {
    for await (const bytes of helper.read(path, range, signal)) {
      hasBegun = true;
      yield bytes;
    }
  } catch (error) {
    if (!(error instanceof SandboxLostError)) throw error;
    // The file may have changed since the first byte.
    if (hasBegun) throw lostWhile(`${quoted(path)} was read`, error);
    yield* byShell.read(path, range, signal);
  }
}

/** Reads files through the helper. If the helper is lost, a shell reads the remaining files. */
async function* contentsBy(
  helper: Files,
  byShell: Files,
  ...[paths, maxBytes, signal]: Parameters<Files["contents"]>
): ReturnType<Files["contents"]> {
  const left = new Set(paths);
  try {
    for await (const found of helper.contents(paths, maxBytes, signal)) {
      left.delete(found.path);
      yield found;
    }
  } catch (error) {
    if (!(error instanceof SandboxLostError)) throw error;
    yield* byShell.contents([...left], maxBytes, signal);
  }
}

function unlessMissing(error: unknown): void {
  if (!(error instanceof AppError && error.code === "not_found")) throw error;
}
