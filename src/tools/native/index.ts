// The built-in tools that agents may name.

import type { Tool } from "../../core/tool.ts";
import { askUser } from "./ask-user.ts";
import { currentDatetime } from "./current-datetime.ts";

export const nativeTools: readonly Tool[] = [askUser, currentDatetime];
