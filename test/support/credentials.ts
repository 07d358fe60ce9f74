// For servers of tests whose credentials do not end.

import { createCredentials } from "../../src/server/auth/credential-end.ts";

export const ENDLESS_CREDENTIALS = createCredentials(undefined, { warn() {} });
