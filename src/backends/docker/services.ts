// What all sandboxes of one engine have in common.

import type { Logger } from "../../lib/logger.ts";
import type { SandboxCaps, SandboxLedger } from "../ledger.ts";
import type { Disk } from "./disk.ts";
import type { Engine } from "./engine.ts";
import type { Networks } from "./network.ts";

export interface Host {
  readonly engine: Engine;
  readonly deployment: string;
  readonly disk: Disk;
  readonly networks: Networks;
  readonly ledger: SandboxLedger;
  readonly caps: SandboxCaps;
  readonly logger: Logger;
}
