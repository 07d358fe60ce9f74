// The scenarios of each wire, to be run against another deployment. A file that changes globals has no place here,
// nor one about single requests, which are answered alike by any of several servers.

/** Of one wire, what several requests share through the store: questions with their answers, and streams that are opened again. */
export async function askedAndFollowed(): Promise<void> {
  await import("../../wires/ai-sdk/interrupts.test.ts");
  await import("../../wires/ai-sdk/resume.test.ts");
}

export const WIRES: Readonly<Record<string, () => Promise<unknown>>> = {
  "ai-sdk": async () => {
    await import("../../wires/ai-sdk/conversation.test.ts");
    await askedAndFollowed();
  },
  openai: async () => {
    await import("../../wires/openai/chat.test.ts");
    await import("../../wires/openai/clients.test.ts");
    await import("../../wires/openai/items.test.ts");
    await import("../../wires/openai/responses.test.ts");
    await import("../../wires/openai/responses-interrupts.test.ts");
    await import("../../wires/openai/responses-background.test.ts");
  },
  "ag-ui": async () => {
    await import("../../wires/ag-ui/conversation.test.ts");
    await import("../../wires/ag-ui/interrupts.test.ts");
    await import("../../wires/ag-ui/history.test.ts");
    await import("../../wires/ag-ui/routes.test.ts");
  },
  langgraph: async () => {
    await import("../../wires/langgraph/runs.test.ts");
    await import("../../wires/langgraph/interrupts.test.ts");
    await import("../../wires/langgraph/threads.test.ts");
    await import("../../wires/langgraph/reconnects.test.ts");
    await import("../../wires/langgraph/use-stream.test.ts");
  },
  mcp: async () => {
    await import("../../wires/mcp/calls.test.ts");
    await import("../../wires/mcp/interrupts.test.ts");
    await import("../../wires/mcp/sessions.test.ts");
  },
  a2a: async () => {
    await import("../../wires/a2a/tasks.test.ts");
  },
};
