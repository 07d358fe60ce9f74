// What stock clients meet: an agent that asks a person before it executes, and a second one.

export const AGENTS = `
agents:
  assistant:
    model: scripted:test
    description: Helps.
    backend: { type: local }
    tools: [ask_user, execute, current_datetime]
    permissions: { rules: [{ ask: execute, message: May it? }] }
  writer:
    model: scripted:test
    backend: { type: local }
`;
