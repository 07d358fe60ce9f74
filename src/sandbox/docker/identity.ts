// Names and labels that identify a deployment's containers, volumes and networks on an engine.

import { createHash } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { randomId } from "../../lib/random-id.ts";
import type { BackendKey } from "../definition.ts";
import type { Sandbox, SandboxKeep } from "../sandbox-records.ts";

const DEPLOYMENT = "skein.deployment";
const PLACE = "skein.place";
const KEEP = "skein.keep";
/** The hash of a container's specification. A container with a different hash is replaced. */
export const SPEC = "skein.spec";
/** Marks a short-lived container that does a task for a sandbox. */
export const ERRAND = "skein.errand";
/** Marks a container that copies files during a move. */
export const MOVE = "move";

/** Returns the label filter for everything that belongs to a deployment. */
export const labelOf = (deployment: string) => `${DEPLOYMENT}=${deployment}`;

/** Derives the sandbox's id. It is the same in every process and reveals nothing about the owner. */
export function sandboxId(deployment: string, { owner, name }: BackendKey): string {
  const hash = createHash("sha256").update(JSON.stringify([deployment, owner.tenant, owner.user, name]));
  return `skein-${hash.digest("hex").slice(0, 24)}`;
}

/** Returns the id of the sandbox that the errand container `name` works for. */
export const sandboxOfErrand = (name: string) => name.slice(0, "skein-".length + 24);

export function labelsOf(
  deployment: string,
  { owner, name, keep }: Pick<Sandbox, "owner" | "name" | "keep">,
): Record<string, string> {
  return {
    [DEPLOYMENT]: deployment,
    [PLACE]: JSON.stringify([owner.tenant, owner.user, name]),
    [KEEP]: JSON.stringify([keep.running, keep.container, keep.files]),
  };
}

const Span = z.number().nullable();
const PlaceLabel = z.tuple([z.string(), z.string(), z.string()]);
const KeepLabel = z.tuple([Span, Span, Span]);

/** Returns the sandbox that the labels describe, or undefined if they do not match its id. */
export function sandboxOf(
  deployment: string,
  id: string,
  labels: Readonly<Record<string, string>>,
): Omit<Sandbox, "engine"> | undefined {
  const place = PlaceLabel.safeParse(parsed(labels[PLACE])).data;
  const keep = KeepLabel.safeParse(parsed(labels[KEEP])).data;
  if (!place || !keep) return undefined;
  const [tenant, user, name] = place;
  const owner = { tenant, user };
  if (sandboxId(deployment, { owner, name }) !== id) return undefined;
  return { id, owner, name, keep: keepOf(keep) };
}

const keepOf = ([running, container, files]: z.output<typeof KeepLabel>): SandboxKeep => ({
  running,
  container,
  files,
});

function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

/**
 * Returns the deployment's name. The first process creates the name and stores it in `dataDir`, and all processes
 * share it. Throws `backend_failed`.
 */
export async function deploymentOf(dataDir: string): Promise<string> {
  const path = join(dataDir, "deployment");
  const draft = `${path}.${randomId()}`;
  try {
    const known = await readName(path);
    if (known !== undefined) return known;
    await mkdir(dataDir, { recursive: true });
    await writeFile(draft, randomId());
    // If two processes create the file at the same time, both use the first file.
    await link(draft, path).catch(() => {});
    const made = await readName(path);
    if (made !== undefined) return made;
  } catch (cause) {
    throw new AppError(
      "backend_failed",
      "Cannot store the name of this deployment in the server's data folder.",
      { cause },
    );
  } finally {
    await rm(draft, { force: true }).catch(() => {});
  }
  throw new AppError(
    "backend_failed",
    "The file `deployment` in the server's data folder contains no valid name. Remove it.",
  );
}

async function readName(path: string): Promise<string | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  return text !== undefined && /^[A-Za-z0-9_-]{1,64}$/.test(text.trim()) ? text.trim() : undefined;
}
