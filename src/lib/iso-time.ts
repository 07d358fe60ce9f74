// The time of events and messages.

let last = { at: 0, text: "" };

/** The time now, as ISO 8601 in UTC. Many ask within a millisecond, and to write it takes longer than to store an event. */
export function isoTime(): string {
  const at = Date.now();
  if (at !== last.at) last = { at, text: new Date(at).toISOString() };
  return last.text;
}
