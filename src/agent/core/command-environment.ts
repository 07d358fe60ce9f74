// Variables of all commands of a run, which hooks set before the loop begins, and which the tool for commands hands on.

import { valueKey } from "./tool.ts";

export const COMMAND_ENVIRONMENT = valueKey<Readonly<Record<string, string>>>("command environment");
