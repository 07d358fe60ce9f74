// Makes stored data fit a zod schema. Invalid parts are replaced by the nearest valid value or removed. Do not use this
// for input, which must be checked and refused.

import { z } from "zod";

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];
type Nest = Record<PropertyKey, unknown>;

export interface Fitted<T> {
  readonly value: T;
  /** The paths of the values that were replaced or removed. */
  readonly changed: readonly string[];
}

/** The maximum number of rounds, which is larger than the number of levels in any schema. */
const MAX_ROUNDS = 64;

/**
 * Returns a copy of the value that fits `schema`, without unknown keys. Throws the schema's error if no part of the
 * value can be kept.
 */
export function fitted<S extends z.ZodType>(schema: S, value: unknown): Fitted<z.output<S>> {
  let result = schema.safeParse(value);
  if (result.success) return { value: result.data, changed: [] };
  const changed = result.error.issues.map(({ path }) => path.join("."));
  const copy: unknown = JSON.parse(JSON.stringify(value));
  for (let round = 0; round < MAX_ROUNDS; round++) {
    result = schema.safeParse(copy);
    if (result.success) return { value: result.data, changed };
    correct(copy, result.error.issues);
  }
  throw new z.ZodError(result.error?.issues ?? []);
}

function correct(root: unknown, issues: readonly Issue[]): void {
  const shortened = new Set<unknown[]>();
  for (const { path, issue } of issues.flatMap((each) => innermost(each, []))) {
    const value = at(root, path);
    const better = value === null ? undefined : substitute(issue, value);
    if (better !== undefined) put(root, path, better);
    else remove(root, cannotBeEmpty(issue, value) ? path.slice(0, -1) : path, shortened);
  }
  // Closes the holes last, so the paths of the other issues stay valid until then.
  for (const list of shortened) closeHoles(list);
}

/** Changes the list in place. `filter` skips the holes that `delete` left. */
function closeHoles(list: unknown[]): void {
  const kept = list.filter(() => true);
  list.splice(0, list.length, ...kept);
}

/**
 * Returns true if removing the value, or emptying a text, has already been tried. If so, the parent must be removed.
 */
const cannotBeEmpty = ({ code }: Issue, value: unknown) =>
  value === undefined || (value === "" && code !== "invalid_type");

/** Returns the faults inside the union member that is the closest match. */
function innermost(issue: Issue, parent: Path): { path: Path; issue: Issue }[] {
  const path = [...parent, ...issue.path];
  if (issue.code !== "invalid_union" || issue.errors.length === 0) return [{ path, issue }];
  const depth = (issues: readonly Issue[]) => Math.max(...issues.map((each) => each.path.length));
  const nearest = issue.errors.reduce((best, each) => (depth(each) > depth(best) ? each : best));
  return nearest.flatMap((each) => innermost(each, path));
}

const EMPTY: Readonly<Record<string, () => unknown>> = {
  string: () => "",
  number: () => 0,
  int: () => 0,
  boolean: () => false,
  object: () => ({}),
  record: () => ({}),
  array: () => [],
};

function substitute(issue: Issue, value: unknown): unknown {
  if (issue.code === "too_big" && typeof value === "number") return Number(issue.maximum);
  if (issue.code === "too_small" && typeof value === "number") return Number(issue.minimum);
  if (issue.code !== "invalid_type") return undefined;
  if (value === undefined) return EMPTY[issue.expected]?.();
  if (issue.expected === "string") return typeof value === "object" ? JSON.stringify(value) : String(value);
  if (issue.expected === "int" && typeof value === "number") return Math.ceil(value);
  return undefined;
}

function at(root: unknown, path: Path): unknown {
  let value = root;
  for (const key of path) value = isNest(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

function put(root: unknown, path: Path, value: unknown): void {
  const place = at(root, path.slice(0, -1));
  const key = path.at(-1);
  if (isNest(place) && key !== undefined) place[key] = value;
}

function remove(root: unknown, path: Path, shortened: Set<unknown[]>): void {
  const place = at(root, path.slice(0, -1));
  const key = path.at(-1);
  if (!isNest(place) || key === undefined) return;
  delete place[key];
  if (Array.isArray(place)) shortened.add(place);
}

const isNest = (value: unknown): value is Nest => typeof value === "object" && value !== null;
