// The packages as users get them: packed in a fresh clone, installed into an empty project.

import { execFile } from "node:child_process";
import { cp, mkdir, readdir, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { NODE_ENV } from "../../support/node.ts";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const run = promisify(execFile);

/** Its output. Throws with what it printed when it fails. `path` comes first in its PATH. */
export async function command(
  dir: string,
  [program = "", ...args]: readonly string[],
  path = join(ROOT, "node_modules/.bin"),
): Promise<string> {
  const { HOME = "" } = process.env;
  const env = { ...networkOf(process.env), ...NODE_ENV, HOME, PATH: `${path}:${NODE_ENV.PATH}` };
  return (await run(program, args, { cwd: dir, env })).stdout;
}

/** How this machine reaches the registry. */
const networkOf = (env: NodeJS.ProcessEnv) =>
  Object.fromEntries(
    Object.entries(env).filter(([name]) =>
      /_proxy$|^npm_config_|^(NODE_EXTRA_CA_CERTS|SSL_CERT_FILE)$/i.test(name),
    ),
  );

/** What a clone would have of this folder once it is committed, with the dependencies that `npm ci` would install. */
export async function freshClone(dir: string): Promise<string> {
  const files = await command(ROOT, [
    "git",
    "ls-files",
    "--cached",
    "--others",
    "--exclude-standard",
    "--deduplicate",
  ]);
  const there = new Set(await readdir(ROOT, { recursive: false }));
  for (const file of files
    .trim()
    .split("\n")
    .filter((each) => there.has(each.split("/")[0] ?? ""))) {
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await cp(join(ROOT, file), join(dir, file), { preserveTimestamps: true });
  }
  await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
  // Otherwise script/setup would install them again.
  await utimes(join(dir, "package-lock.json"), 0, 0);
  return dir;
}

/** Packs one in a clone. Resolves with the path of the archive. */
export async function pack(clone: string, ...options: string[]): Promise<string> {
  const printed = await command(clone, ["npm", "pack", "--silent", ...options]);
  return join(clone, printed.trim().split("\n").at(-1) ?? "");
}

/** An empty project in which the archive is installed, as by a user. */
export async function install(dir: string, archive: string): Promise<string> {
  await mkdir(dir);
  await writeFile(join(dir, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }));
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  await command(dir, ["npm", "install", "--prefer-offline", "--ignore-scripts", ...quiet, archive]);
  return dir;
}

/** The packages in a project, by the folders that they lie in. */
export async function installed(dir: string): Promise<string[]> {
  const printed = await command(dir, ["npm", "ls", "--all", "--parseable"]);
  return printed
    .trim()
    .split("\n")
    .slice(1)
    .map((path) => path.slice(dir.length + "/node_modules/".length));
}

/** What a folder takes on the disk. */
export async function megabytes(dir: string): Promise<number> {
  return Number.parseInt(await command(dir, ["du", "-sm", "."]), 10);
}

/** The folder of another Node: see script/test-node. Throws where npm has none for this machine. */
export async function folderOfNode(major: number): Promise<string> {
  return dirname((await command(ROOT, ["sh", "script/test-node", String(major)])).trim());
}

/** What TypeScript finds in a file of a project, with `options` of its command line. */
export async function typeErrors(dir: string, file: string, ...options: string[]): Promise<string> {
  const compiler = [
    process.execPath,
    join(ROOT, "node_modules/typescript/bin/tsc"),
    "--ignoreConfig",
    "--noEmit",
    // A project of TypeScript has the types of its Node.
    ...["--types", "node", "--typeRoots", join(ROOT, "node_modules/@types")],
  ];
  return command(dir, [...compiler, "--strict", "--target", "es2024", ...options, file]).catch(
    (error: { stdout: string }) => error.stdout,
  );
}
