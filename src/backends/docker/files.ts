// The files of a sandbox: its helper's work where there is one, else, and whenever it is lost, that of its shells.

import { AppError } from "../../core/errors.ts";
import { quoted } from "../paths.ts";
import { type Files, shellFiles } from "../shell/files.ts";
import { SandboxLostError, type ScriptRunner } from "../shell/script.ts";
import type { DockerSandbox } from "./sandbox.ts";

export function sandboxFiles(current: () => DockerSandbox, workdir: string): Files {
  const runner: ScriptRunner = {
    run: (fragment, signal) => current().run(fragment, signal),
    runOnce: (fragment, signal) => current().runOnce(fragment, signal),
  };
  const byShell = shellFiles(runner, workdir);

  /** For what may be done twice. */
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
      if (!helper) return yield* byShell.read(path, range, signal);
      let hasBegun = false;
      try {
        for await (const bytes of helper.read(path, range, signal)) {
          hasBegun = true;
          yield bytes;
        }
      } catch (error) {
        if (!(error instanceof SandboxLostError)) throw error;
        // Another version of the file may be there by now.
        if (hasBegun) throw lost(`${quoted(path)} was read`, error);
        yield* byShell.read(path, range, signal);
      }
    },

    async write(path, data, signal) {
      if (data instanceof Uint8Array) return either((files) => files.write(path, data, signal), signal);
      const files = (await current().helper(signal)) ?? byShell;
      return files.write(path, data, signal).catch((error: unknown) => {
        throw error instanceof SandboxLostError ? lost(`${quoted(path)} was written`, error) : error;
      });
    },

    async remove(path, signal) {
      const helper = await current().helper(signal);
      if (!helper) return byShell.remove(path, signal);
      await helper.remove(path, signal).catch(async (error: unknown) => {
        if (!(error instanceof SandboxLostError)) throw error;
        // It may have done it before it was lost.
        await byShell.remove(path, signal).catch(unlessMissing);
      });
    },

    async *contents(paths, maxBytes, signal) {
      const helper = await current().helper(signal);
      const left = new Set(paths);
      try {
        if (helper)
          for await (const found of helper.contents(paths, maxBytes, signal)) {
            left.delete(found.path);
            yield found;
          }
      } catch (error) {
        if (!(error instanceof SandboxLostError)) throw error;
        yield* byShell.contents([...left], maxBytes, signal);
        return;
      }
      if (!helper) yield* byShell.contents(paths, maxBytes, signal);
    },
  };
}

function unlessMissing(error: unknown): void {
  if (!(error instanceof AppError && error.code === "not_found")) throw error;
}

const lost = (what: string, cause: Error) =>
  new AppError("backend_failed", `The sandbox was lost while ${what}; nothing was changed. Try again.`, {
    cause,
  });
