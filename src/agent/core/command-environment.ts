// Variables for all commands of a run. Hooks set them before the loop begins, and the `execute` tool passes them to each command.

import { valueKey } from "./tool.ts";

export const COMMAND_ENVIRONMENT = valueKey<Readonly<Record<string, string>>>("command environment");
