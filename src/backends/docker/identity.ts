// What the things of ours on an engine are called, and how they are known again.

import { createHash } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Place } from "../definition.ts";
import type { Sandbox, SandboxKeep } from "../ledger.ts";

const DEPLOYMENT = "skein.deployment";
const PLACE = "skein.place";
const KEEP = "skein.keep";
/** What a container was made from; a different one replaces it. */
export const SPEC = "skein.spec";
/** On a container that is no sandbox, but does some work on one and goes. */
export const ERRAND = "skein.errand";

/** Selects what belongs to a deployment. */
export const labelOf = (deployment: string) => `${DEPLOYMENT}=${deployment}`;

/** The same for the same place in every process. Tells nothing about the owner. */
export function sandboxId(deployment: string, { owner, name }: Place): string {
  const hash = createHash("sha256").update(JSON.stringify([deployment, owner.tenant, owner.user, name]));
  return `skein-${hash.digest("hex").slice(0, 24)}`;
}

export function labelsOf(
  deployment: string,
  { owner, name, keep }: Omit<Sandbox, "id">,
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

/** From the labels, or nothing when they are not those of a sandbox with this id. */
export function sandboxOf(
  deployment: string,
  id: string,
  labels: Readonly<Record<string, string>>,
): Sandbox | undefined {
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

// The name under which this deployment knows its own things on an engine that others may use as well.

/** Made once, kept in `dataDir`, and the same for all processes that share it. Throws `backend_failed`. */
export async function deploymentOf(dataDir: string): Promise<string> {
  const path = join(dataDir, "deployment");
  const draft = `${path}.${randomId()}`;
  try {
    const known = await readName(path);
    if (known !== undefined) return known;
    await mkdir(dataDir, { recursive: true });
    await writeFile(draft, randomId());
    // Of two that make it at once, the first one's is taken by both.
    await link(draft, path).catch(() => {});
    const made = await readName(path);
    if (made !== undefined) return made;
  } catch (cause) {
    throw new AppError(
      "backend_failed",
      "The name of this deployment cannot be kept in the server's data folder.",
      {
        cause,
      },
    );
  } finally {
    await rm(draft, { force: true }).catch(() => {});
  }
  throw new AppError(
    "backend_failed",
    "The file `deployment` in the server's data folder holds no name. Remove it.",
  );
}

async function readName(path: string): Promise<string | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  return text !== undefined && /^[A-Za-z0-9_-]{1,64}$/.test(text.trim()) ? text.trim() : undefined;
}
