// The scenarios of each wire, to be run against another deployment. A file that changes globals has no place here,
// nor one about single requests, which are answered alike by any of several servers.

/** Of one wire, what several requests share through the store: questions with their answers, and streams that are opened again. */
export async function askedAndFollowed(): Promise<void> {
  await import("../../http/wires/ai-sdk/interrupts.test.ts");
  await import("../../http/wires/ai-sdk/resume.test.ts");
}

export const WIRES: Readonly<Record<string, () => Promise<unknown>>> = {
  "ai-sdk": async () => {
    await import("../../http/wires/ai-sdk/conversation.test.ts");
    await askedAndFollowed();
  },
  openai: async () => {
    await import("../../http/wires/openai/chat.test.ts");
    await import("../../http/wires/openai/clients.test.ts");
    await import("../../http/wires/openai/items.test.ts");
    await import("../../http/wires/openai/responses.test.ts");
    await import("../../http/wires/openai/responses-interrupts.test.ts");
    await import("../../http/wires/openai/responses-background.test.ts");
  },
  "ag-ui": async () => {
    await import("../../http/wires/ag-ui/conversation.test.ts");
    await import("../../http/wires/ag-ui/interrupts.test.ts");
    await import("../../http/wires/ag-ui/history.test.ts");
    await import("../../http/wires/ag-ui/routes.test.ts");
  },
  langgraph: async () => {
    await import("../../http/wires/langgraph/runs.test.ts");
    await import("../../http/wires/langgraph/interrupts.test.ts");
    await import("../../http/wires/langgraph/threads.test.ts");
    await import("../../http/wires/langgraph/reconnects.test.ts");
    await import("../../http/wires/langgraph/use-stream.test.ts");
  },
  mcp: async () => {
    await import("../../http/wires/mcp/calls.test.ts");
    await import("../../http/wires/mcp/interrupts.test.ts");
    await import("../../http/wires/mcp/sessions.test.ts");
  },
  a2a: async () => {
    await import("../../http/wires/a2a/tasks.test.ts");
  },
};
