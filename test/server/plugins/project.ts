// A project in a folder of its own: its files, and `skein` run on them.

import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ServerProcess, serving, skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";

export interface Project {
  readonly dir: string;
  write(file: string, text: string): Promise<void>;
  /** `skein config check`: its exit code, and its lines with the folder left out. */
  check(env?: Record<string, string>): Promise<{ code: unknown; lines: string[] }>;
  /** `skein serve`, once it takes requests. */
  serve(env?: Record<string, string>): Promise<ServerProcess>;
}

/** A folder with these files. Removed when the test has finished. */
export async function project(files: Readonly<Record<string, string>>): Promise<Project> {
  const dir = await temporaryFolder();
  const write = async (file: string, text: string) => {
    const path = join(dir, file);
    await mkdir(dirname(path), { recursive: true });
    // At once: a server that watches the file never reads a part of it.
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  };
  for (const [file, text] of Object.entries(files)) await write(file, text);
  const settings = {
    PORT: "0",
    DATA_DIR: join(dir, "data"),
    AGENTS_FILE: join(dir, "agents.yaml"),
    STORE: "memory",
    ...("server.yaml" in files ? { CONFIG_FILE: join(dir, "server.yaml") } : {}),
  };
  return {
    dir,
    write,
    async check(env = {}) {
      const { exited, output } = skein(["config", "check"], { ...settings, ...env });
      const code = await exited;
      return { code, lines: output().replaceAll(`${dir}/`, "").trim().split("\n") };
    },
    serve: async (env = {}) => serving(skein(["serve"], { ...settings, ...env })),
  };
}

/** A plugin's module without parts. */
export const plugin = (name: string, parts = "", before = "") =>
  `import { definePlugin, defineHook, defineTool, defineBackend, z } from "skein";\n${before}\nexport default definePlugin({ name: "${name}", ${parts} });\n`;
