// The agents that stock clients meet. Each asks a person before it executes.

/** One with commands and the time, and a second one. */
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

/** One with todos and files as well. */
export const FILE_AGENTS = `
agents:
  assistant:
    model: scripted:test
    description: Helps.
    backend: { type: local }
    tools: [ask_user, write_todos, write_file, read_file, execute]
    permissions: { rules: [{ allow: write_file }, { ask: execute, message: May it? }] }
`;
