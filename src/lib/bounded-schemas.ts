// Schemas whose validation ends early. Each fault of a list or map takes time, and a request body may contain thousands
// of faults. The validation of a list can also pause, because thousands of valid entries take time too.

import { z } from "zod";
import { isTickSpent, sharedTick } from "./ticks.ts";

/** Like `z.record(key, value)`, but refuses maps with more than `most` keys before checking any of the keys. */
export function boundedMap<K extends z.core.$ZodRecordKey, V extends z.ZodType>(
  key: K,
  value: V,
  most: number,
): z.ZodRecord<K, V> {
  // The constructor's types accept any kind of key and value.
  return new BoundedMap({ type: "record", keyType: key, valueType: value, most }) as z.ZodRecord<K, V>;
}

/** Like `z.array(entry).max(most)`, but skips all entries after the first `MAX_FAULTY` faulty entries. */
export function boundedList<S extends z.ZodType>(entry: S, most: number): z.ZodArray<S> {
  // The constructor's types accept any kind of entry.
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

/** The maximum number of faulty entries in a list before validation ends. */
const MAX_FAULTY = 20;

/** The context of a validation that can pause, so its lists yield ticks of the event loop to other work. */
export interface PausingContext extends z.core.ParseContext<z.core.$ZodIssue> {
  /** The tenant for which the validation runs. */
  readonly tenant: string;
}

type Context = z.core.ParseContextInternal & Partial<PausingContext>;
type Payload = z.core.ParsePayload;

/** In lists of at most this length, entries can pause individually. Pausing makes each entry slower. */
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

/** Adds checked entries to the list in `payload`, in order. Returns false once there are too many faulty entries. */
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
