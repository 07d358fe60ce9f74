// What the things of ours on an engine are called, and how they are known again.

import { createHash } from "node:crypto";
import { z } from "zod";
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
