// How the patch of an `on_state` event changes a value: the same rule for the loop, the stores and every reader.

/** `value` after `patch`: keys of the patch are set, and those whose value is null are removed. */
export function merge(value: unknown, patch: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...(value as Record<string, unknown> | undefined), ...patch };
  for (const key of Object.keys(patch)) if (patch[key] === null) delete merged[key];
  return merged;
}
