// Applies the patch of an `on_state` event to a value. The loop, the stores and all readers use the same rule.

/** Returns `value` with the patch applied: sets the keys of the patch and removes keys whose value is null. */
export function merge(value: unknown, patch: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...(value as Record<string, unknown> | undefined), ...patch };
  for (const key of Object.keys(patch)) if (patch[key] === null) delete merged[key];
  return merged;
}
