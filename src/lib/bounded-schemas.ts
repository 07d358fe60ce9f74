// Schemas whose check ends early: each fault of a list or map takes time, and a body may bring thousands of them.

import { z } from "zod";

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

const BoundedList = z.core.$constructor<z.ZodArray, ListDefinition>("BoundedList", (list, def) => {
  z.ZodArray.init(list, def);
  const refuse = list._zod.parse;
  list._zod.parse = (payload, context) => {
    const { value: entries, issues } = payload;
    if (!Array.isArray(entries) || entries.length > def.most) return refuse(payload, context);
    const values: unknown[] = [];
    let faulty = 0;
    for (let at = 0; at < entries.length && faulty < MAX_FAULTY; at++) {
      const checked = def.element._zod.run({ value: entries[at], issues: [] }, context);
      if (checked instanceof Promise) throw new z.core.$ZodAsyncError();
      values.push(checked.value);
      if (checked.issues.length === 0) continue;
      issues.push(...z.core.util.prefixIssues(at, checked.issues));
      faulty++;
    }
    payload.value = values;
    return payload;
  };
});
