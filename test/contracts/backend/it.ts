// How a suite gets the backend that it is about.

import type { Backend } from "../../../src/agent/core/backend.ts";

/** To be called within a test. */
export type It = () => Backend;
