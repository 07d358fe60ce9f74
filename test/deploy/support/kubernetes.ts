// The example of deploy/kubernetes as kubectl builds it, and what the types of Kubernetes say of it.

import { execFile, execFileSync } from "node:child_process";
import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { installedPackages } from "../../support/packages.ts";
import { temporaryFolder } from "../../support/server.ts";
import { typeErrors } from "./packed.ts";

const run = promisify(execFile);

export const Manifest = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
});
export type Manifest = z.output<typeof Manifest>;

/** The manifests of the example with `secrets` in its secrets.env. */
export async function exampleWith(secrets: Readonly<Record<string, string>>): Promise<Manifest[]> {
  const dir = await temporaryFolder();
  await cp("deploy/kubernetes", dir, { recursive: true });
  const example = join(dir, "overlays/example");
  const lines = Object.entries(secrets).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(example, "secrets.env"), lines.join(""));
  if (isOld()) await rewriteForOld(join(example, "kustomization.yaml"));
  const { stdout } = await run("kubectl", ["kustomize", example]);
  return parseAllDocuments(stdout).map((document) => unfolded(Manifest.parse(document.toJS())));
}

/** Long values of a Secret have line breaks in their base64. Kubernetes reads over them; the validators do not. */
function unfolded(manifest: Manifest): Manifest {
  if (manifest.kind !== "Secret") return manifest;
  const data = z.record(z.string(), z.string()).parse(manifest.data);
  const whole = Object.entries(data).map(([name, value]) => [name, value.replace(/\s/g, "")]);
  return { ...manifest, data: Object.fromEntries(whole) };
}

/** Debian 12 has kubectl 1.20, whose kustomize knows two keys by older names. */
function isOld(): boolean {
  const printed = execFileSync("kubectl", ["version", "--client", "--output", "json"], { encoding: "utf8" });
  return Number.parseInt(JSON.parse(printed).clientVersion.minor, 10) < 21;
}

async function rewriteForOld(file: string): Promise<void> {
  const text = await readFile(file, "utf8");
  const older = text
    .replace("resources: [../../base, ", "bases: [../../base]\nresources: [")
    .replace("envs: [secrets.env]", "env: secrets.env");
  await writeFile(file, older);
}

/** Each value that Kubernetes would not take, and each key that it does not know. */
export async function faultsOf(manifests: readonly Manifest[]): Promise<string[]> {
  const packages = join(installedPackages("kubernetes-models@5.1.0"), "node_modules");
  const faults = await Promise.all(manifests.map((manifest) => wrongValues(packages, manifest)));
  return [...faults.flat(), ...(await unknownKeys(packages, manifests))];
}

async function wrongValues(packages: string, manifest: Manifest): Promise<string[]> {
  const { apiVersion, kind, metadata } = manifest;
  const file = pathToFileURL(join(packages, "kubernetes-models", apiVersion, `${kind}.js`)).href;
  const { [kind]: Model } = await import(file);
  try {
    new Model(manifest).validate();
    return [];
  } catch (error) {
    return [`${kind} ${metadata.name}: ${error instanceof Error ? error.message : error}`];
  }
}

/** The validators let them pass; the compiler does not. */
async function unknownKeys(packages: string, manifests: readonly Manifest[]): Promise<string[]> {
  const dir = await temporaryFolder();
  await symlink(packages, join(dir, "node_modules"));
  const constants = manifests.map(
    (manifest) =>
      `(${JSON.stringify(manifest)}) satisfies import("kubernetes-models/${manifest.apiVersion}").I${manifest.kind};`,
  );
  await writeFile(join(dir, "manifests.ts"), ["export {};", ...constants].join("\n"));
  const options = ["--module", "nodenext", "--types", "", "--skipLibCheck"];
  const printed = await typeErrors(dir, "manifests.ts", ...options);
  return printed.split("\n").filter((line) => line !== "");
}
