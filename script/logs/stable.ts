// Makes recorded logs reproducible: ids count from 1, and times are fixed.

import type { Log } from "./client.ts";

const ID = /\b(th|run|msg|tr|call)_[A-Za-z0-9_-]{16,}/g;
const TIME = /\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;
const DURATION = /"(duration_ms|first_token_ms)":[\d.]+/g;
const WAIT = /Retrying in [^(]+\(/g;
const DATETIME = /\{\\"utc\\":.*?\}(?=")/g;

export function stable(logs: readonly Log[]): Log[] {
  const ids = new Map<string, string>();
  const counts = new Map<string, number>();
  const idOf = (id: string, kind: string) => {
    const known = ids.get(id);
    if (known) return known;
    const number = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, number);
    const made = `${kind}_${number}`;
    ids.set(id, made);
    return made;
  };
  const text = JSON.stringify(logs)
    .replace(DATETIME, "It is noon.")
    .replace(ID, idOf)
    .replace(TIME, "2026-01-01T00:00:00.000Z")
    .replace(DURATION, '"$1":1')
    .replace(WAIT, "Retrying in 1 s (");
  return JSON.parse(text) as Log[];
}
