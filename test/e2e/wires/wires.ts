// The wire that other deployments than one server in memory are tested with. They differ below the wires, which keep nothing of
// their own: what one of them asks, follows and lists is enough.

/** Declares the tests of a wire whose clients come back, answer and list. A file that changes globals has no place here. */
export async function oneWire(): Promise<void> {
  await import("../../wires/langgraph/runs.test.ts");
  await import("../../wires/langgraph/interrupts.test.ts");
  await import("../../wires/langgraph/threads.test.ts");
  await import("../../wires/langgraph/reconnects.test.ts");
}
