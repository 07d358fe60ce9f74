// Provides the timestamps of events and messages.

let last = { at: 0, text: "" };

/**
 * Returns the current time as ISO 8601 in UTC. Reuses the text within the same millisecond, because formatting takes
 * longer than storing an event.
 */
export function isoTime(): string {
  const at = Date.now();
  if (at !== last.at) last = { at, text: new Date(at).toISOString() };
  return last.text;
}
