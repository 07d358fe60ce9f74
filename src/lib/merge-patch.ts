// JSON Merge Patch (RFC 7396): maps are merged key by key, null removes a key, anything else replaces what was there.

export function mergePatch(value: unknown, patch: unknown): unknown {
  if (!isMap(patch)) return patch;
  const merged = new Map(isMap(value) ? Object.entries(value) : []);
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), change));
  }
  return Object.fromEntries(merged);
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
