// The audit trail of the tenant, newest first.

import type { AuditEntry } from "../../client/client.ts";
import { Plain, Time } from "../components.tsx";
import { client } from "../session.ts";
import { auditTexts } from "../texts/audit.ts";
import { Listing } from "./listing.tsx";

const LIMIT = 50;

export function Trail() {
  const words = auditTexts();
  return (
    <Listing<AuditEntry>
      read={(cursor, signal) => client.admin.audit({ limit: LIMIT, cursor }, signal)}
      keyOf={({ id }) => id}
      empty={words.empty}
      columns={[
        { name: words.at, cell: ({ at }) => <Time at={at} /> },
        { name: words.actor, cell: ({ actor }) => <Plain>{actor.user ?? actor.id}</Plain> },
        { name: words.action, cell: ({ action }) => <code>{action}</code> },
        { name: words.target, cell: ({ target }) => (target ? <Plain>{nameOf(target)}</Plain> : "–") },
        { name: words.outcome, cell: ({ outcome }) => words.outcomes[outcome] },
        { name: words.address, cell: ({ ip }) => ip ?? "–" },
      ]}
    />
  );
}

const nameOf = ({ type, id, user }: NonNullable<AuditEntry["target"]>) =>
  user === undefined ? `${type} ${id}` : `${type} ${id} (${user})`;
