// `skein init`: creates a project with an agent, and a plugin with a tool and a hook. The project runs without an API
// key.

import { existsSync } from "node:fs";
import { lstat, mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import packageJson from "../../../package.json" with { type: "json" };
import { AppError } from "../../agent/core/errors.ts";
import { packageRoot } from "../../lib/paths.ts";
import { t } from "./texts.ts";

/** The source files by their name in the project. The names differ if npm would skip a file or read it itself. */
const TEMPLATES: Readonly<Record<string, string>> = {
  "agents.yaml": "agents.yaml",
  "my-plugin.ts": "my-plugin.ts",
  "demo.yaml": "demo.yaml",
  "tsconfig.json": "tsconfig.json",
  ".env.example": "env.example",
  ".gitignore": "gitignore",
  "README.md": "README.md",
  "AGENTS.md": "AGENTS.md",
};

/**
 * Creates the folder if it is missing. Returns the text to print. Throws `invalid_request` without writing anything if
 * one of the files exists.
 */
export async function init(folder: string): Promise<string> {
  const dir = resolve(folder);
  const texts = await Promise.all(
    Object.entries(TEMPLATES).map(
      async ([name, file]) => [name, await readFile(template(file), "utf8")] as const,
    ),
  );
  const skein = await source();
  const files = [["package.json", packageOf(dir, skein)] as const, ...texts];
  const taken = await existing(
    dir,
    files.map(([name]) => name),
  );
  if (taken.length > 0)
    throw new AppError(
      "invalid_request",
      t().init.exists(dir, taken.map((name) => `\`${name}\``).join(", ")),
    );
  await mkdir(dir, { recursive: true });
  // `wx` does not overwrite a file created in the meantime.
  for (const [name, text] of files) await writeFile(join(dir, name), text, { flag: "wx" });
  return next(
    dir,
    files.map(([name]) => name),
    skein,
  );
}

const template = (file: string) => new URL(`config/project/${file}`, packageRoot);

async function existing(dir: string, names: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    names.map((name) =>
      lstat(join(dir, name)).then(
        () => [name],
        () => [],
      ),
    ),
  );
  return found.flat();
}

function packageOf(dir: string, skein: string): string {
  const { typescript, "@types/node": types } = packageJson.devDependencies;
  const content = {
    name:
      basename(dir)
        .toLowerCase()
        .replace(/[^a-z0-9._-]+/g, "-")
        .replace(/^[._-]+/, "") || "agents",
    version: "0.0.0",
    private: true,
    type: "module",
    engines: packageJson.engines,
    // With `exec`, signals sent to npm reach the server.
    scripts: { start: "exec skein serve", check: "skein config check && tsc" },
    dependencies: { skein },
    devDependencies: { "@types/node": types, typescript: `^${typescript}` },
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}

/** npm's record of where each installed package came from. */
const Installed = z.object({
  packages: z.object({ "node_modules/skein": z.object({ resolved: z.string() }) }),
});

/**
 * Returns the version range of this package as npm can install it. This is the version if npm installed this copy from
 * a registry; otherwise, it is the path of the archive or of this copy.
 */
async function source(): Promise<string> {
  const root = resolve(fileURLToPath(packageRoot));
  const record = join(root, "..", ".package-lock.json");
  const text = await readFile(record, "utf8").catch(() => "{}");
  const { data } = Installed.safeParse(JSON.parse(text));
  const { resolved } = data?.packages["node_modules/skein"] ?? {};
  if (resolved?.startsWith("http")) return `^${packageJson.version}`;
  const archive = resolve(dirname(dirname(record)), resolved?.replace(/^file:/, "") ?? "");
  return `file:${resolved !== undefined && existsSync(archive) ? archive : root}`;
}

function next(dir: string, names: readonly string[], skein: string): string {
  const way = relative(process.cwd(), dir);
  const shown = way === "" ? "." : way.startsWith("..") ? dir : way;
  const quoted = /^[\w./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
  const words = t().init;
  return `${words.wrote(names.join(", "), shown)}

  ${way === "" ? "" : `cd ${quoted} && `}npm install
  npm start
  npx skein chat "${words.example}"     # ${words.otherTerminal}

${words.script}${skein.startsWith("file:") ? `\n\n${words.fromCopy(skein.slice("file:".length))}` : ""}`;
}
