// Schemas whose check ends early: each fault of a list or map takes time, and a body may bring thousands of them. The check of
// a list may also pause, as thousands of valid entries take time as well.

import { z } from "zod";
import { isTickSpent, sharedTick } from "./ticks.ts";

/** `z.record(key, value)` which is refused for more than `most` keys before any of them is checked. */
export function boundedMap<K extends z.core.$ZodRecordKey, V extends z.ZodType>(
  key: K,
  value: V,
  most: number,
): z.ZodRecord<K, V> {
  // The constructor is typed for keys and values of any kind.
  return new BoundedMap({ type: "record", keyType: key, valueType: value, most }) as z.ZodRecord<K, V>;
}

/** `z.array(entry).max(most)`, but entries that follow the first `MAX_FAULTY` faulty ones are not checked. */
export function boundedList<S extends z.ZodType>(entry: S, most: number): z.ZodArray<S> {
  // The constructor is typed for entries of any kind.
  return new BoundedList({ type: "array", element: entry, most }).max(most) as z.ZodArray<S>;
}

interface MapDefinition extends z.core.$ZodRecordDef {
  readonly most: number;
}

const BoundedMap = z.core.$constructor<z.ZodRecord, MapDefinition>("BoundedMap", (map, def) => {
  z.ZodRecord.init(map, def);
  const parse = map._zod.parse;
  map._zod.parse = (payload, context) => {
    const { value, issues } = payload;
    const keys = typeof value === "object" && value !== null ? Object.keys(value).length : 0;
    if (keys <= def.most) return parse(payload, context);
    const message = `must have at most ${def.most} keys; it has ${keys}`;
    issues.push({ code: "custom", input: value, inst: map, message });
    return payload;
  };
});

interface ListDefinition extends z.core.$ZodArrayDef {
  readonly most: number;
}

/** Faulty entries of a list, after which its check ends. */
const MAX_FAULTY = 20;

/** The context of a check that may pause: its lists leave ticks of the event loop to others. */
export interface PausingContext extends z.core.ParseContext<z.core.$ZodIssue> {
  /** For whom it is. */
  readonly tenant: string;
}

type Context = z.core.ParseContextInternal & Partial<PausingContext>;
type Payload = z.core.ParsePayload;

/** Up to so many entries may pause themselves, each of which takes longer then. */
const FEW = 32;

const BoundedList = z.core.$constructor<z.ZodArray, ListDefinition>("BoundedList", (list, def) => {
  z.ZodArray.init(list, def);
  const { element, most } = def;
  const refuse = list._zod.parse;
  list._zod.parse = (payload, context: Context) => {
    const { value: entries } = payload;
    if (!Array.isArray(entries) || entries.length > most) return refuse(payload, context);
    if (context.async && context.tenant !== undefined) return checkInTicks(payload, entries, context);
    const take = into(payload);
    for (const value of entries) {
      const checked = element._zod.run({ value, issues: [] }, context);
      if (checked instanceof Promise) throw new z.core.$ZodAsyncError();
      if (!take(checked)) break;
    }
    return payload;
  };

  async function checkInTicks(payload: Payload, entries: unknown[], context: Context): Promise<Payload> {
    const { tenant = "" } = context;
    const ofEntries = entries.length > FEW ? { ...context, async: false } : context;
    const take = into(payload);
    for (const value of entries) {
      if (isTickSpent()) await sharedTick(tenant);
      const checking = element._zod.run({ value, issues: [] }, ofEntries);
      if (!take(checking instanceof Promise ? await checking : checking)) break;
    }
    return payload;
  }
});

/** Takes the checked entries of the list in `payload`, in order; false once enough of them were faulty. */
function into(payload: Payload): (checked: Payload) => boolean {
  const values: unknown[] = [];
  payload.value = values;
  let faulty = 0;
  return ({ value, issues }) => {
    const at = values.push(value) - 1;
    if (issues.length === 0) return true;
    payload.issues.push(...z.core.util.prefixIssues(at, issues));
    return ++faulty < MAX_FAULTY;
  };
}
