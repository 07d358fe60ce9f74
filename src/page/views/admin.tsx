// The users of the tenant, for an admin, or of all tenants, for an operator.

import { useState } from "preact/hooks";
import type { Sandbox, TenantUsage, User, UserInterrupt, UserRun } from "../../client/client.ts";
import { outcomeOf } from "../../client/outcome.ts";
import { Plain, Time, useRead } from "../components.tsx";
import { costOf, money, number } from "../numbers.ts";
import { go } from "../routes.ts";
import { client, may } from "../session.ts";
import { Tabs } from "../tabs.tsx";
import { adminTexts } from "../texts/admin.ts";
import { auditTexts } from "../texts/audit.ts";
import { connectionTexts } from "../texts/connections.ts";
import { webhookTexts } from "../texts/webhooks.ts";
import { Trail } from "./admin-audit.tsx";
import { Keys } from "./admin-keys.tsx";
import { OfTenant } from "./admin-tenant.tsx";
import { Confirm } from "./confirm.tsx";
import { tenantConnections } from "./connection-methods.ts";
import { Connections } from "./connections.tsx";
import { download } from "./download.ts";
import { Listing, ownerColumns } from "./listing.tsx";
import { PageView } from "./page-view.tsx";
import { RunOutcome } from "./runs.tsx";
import { tenantWebhooks } from "./webhook-methods.ts";
import { Webhooks } from "./webhooks.tsx";

const LIMIT = 50;
/** The server's maximum page size. */
const MOST = 100;

/** The owner whose data is listed. Empty for all owners. */
type Owner = { readonly tenant?: string; readonly user?: string };

export function Admin({ tab = "users" }: { tab?: string | undefined }) {
  const [owner, setOwner] = useState<Owner>({});
  const words = adminTexts();
  const show = (name: string) => go({ view: "admin", tab: name });
  const showOf = (shown: Owner) => {
    setOwner(shown);
    show("runs");
  };
  return (
    <PageView title={words.title}>
      <Tabs
        label={words.title}
        current={tab}
        onChange={show}
        tabs={{
          users: { title: words.users, body: () => <Users onShow={showOf} /> },
          runs: { title: words.runs, body: () => <Runs owner={owner} onAll={() => setOwner({})} /> },
          waiting: { title: words.waiting, body: () => <WaitingRuns /> },
          sandboxes: { title: words.sandboxes, body: () => <Sandboxes /> },
          keys: { title: words.keys, body: () => <Keys /> },
          webhooks: {
            title: webhookTexts().title,
            body: () => <OfTenant>{(name) => <Webhooks methods={tenantWebhooks(name)} />}</OfTenant>,
          },
          connections: {
            title: connectionTexts().title,
            body: () => <OfTenant>{(name) => <Connections methods={tenantConnections(name)} />}</OfTenant>,
          },
          trail: { title: auditTexts().title, body: () => <Trail /> },
          usage: { title: words.usage, body: () => <Usage /> },
        }}
      />
    </PageView>
  );
}

function Users({ onShow }: { onShow: (owner: Owner) => void }) {
  const words = adminTexts();
  return (
    <Listing<User>
      read={(cursor, signal) => client.admin.users({ limit: LIMIT, cursor }, signal)}
      keyOf={({ tenant, user }) => `${tenant} ${user}`}
      empty={words.noUsers}
      columns={[
        ...ownerColumns<User>(),
        { name: words.changed, cell: ({ updated_at }) => <Time at={updated_at} /> },
        {
          name: words.actions,
          cell: (owner, reload) => (
            <span class="row">
              <button type="button" aria-label={words.runsOf(owner.user)} onClick={() => onShow(owner)}>
                {words.runs}
              </button>
              <button type="button" aria-label={words.exportOf(owner.user)} onClick={() => exportUser(owner)}>
                {words.exported}
              </button>
              <Confirm
                question={words.deleteQuestion(owner.user)}
                label={words.deleteOf(owner.user)}
                onConfirm={async () => {
                  await deleteUser(owner);
                  reload();
                }}
              >
                {words.deleted}
              </Confirm>
            </span>
          ),
        },
      ]}
    />
  );
}

/** One request may not delete everything, so it is repeated. */
async function deleteUser(owner: User): Promise<void> {
  while (!(await client.admin.deleteUser(owner)).complete);
}

const exportUser = async (owner: User): Promise<void> =>
  download(await client.admin.exportUser(owner), `${owner.user}.jsonl`);

function Runs({ owner, onAll }: { owner: Owner; onAll: () => void }) {
  const words = adminTexts();
  const { tenant, user } = owner;
  const whose = user === undefined ? {} : { user, ...(may("operator") ? { tenant } : {}) };
  const isAsking = useAsking(whose);
  return (
    <>
      {user !== undefined && (
        <p class="row">
          <span>{words.onlyOf(user)}</span>
          <button type="button" onClick={onAll}>
            {words.showAll}
          </button>
        </p>
      )}
      <Listing<UserRun>
        of={[tenant, user]}
        read={(cursor, signal) => client.admin.runs({ limit: LIMIT, cursor, ...whose }, signal)}
        keyOf={({ id }) => id}
        empty={words.noRuns}
        columns={[
          ...ownerColumns<UserRun>(),
          { name: words.status, cell: (run) => <RunOutcome outcome={outcomeOf(run, isAsking(run))} /> },
          { name: words.agent, cell: ({ agent }) => <Plain>{agent}</Plain> },
          { name: words.started, cell: ({ created_at }) => <Time at={created_at} /> },
          {
            name: words.tokens,
            isNumber: true,
            cell: ({ usage }) => number(usage.input_tokens + usage.output_tokens),
          },
          {
            name: words.actions,
            cell: (run, reload) =>
              run.status === "running" || run.status === "pending" ? (
                <Confirm
                  question={words.stopQuestion(run.user)}
                  verb={words.stop}
                  label={words.stopOf(run.id)}
                  onConfirm={async () => {
                    await client.admin.stop(run, { thread_id: run.thread_id, run_id: run.id });
                    reload();
                  }}
                >
                  {words.stop}
                </Confirm>
              ) : null,
          },
        ]}
      />
    </>
  );
}

/**
 * Returns whether a run has an open question; assumed to be true until all open questions are known. Run ids are unique
 * only within a thread.
 */
function useAsking(whose: Owner): (run: UserRun) => boolean {
  const { value: open } = useRead(
    (signal) => client.admin.interrupts({ limit: MOST, ...whose }, signal),
    [whose.tenant, whose.user],
  );
  const asking = new Set(open?.items.map(({ run_id, ...rest }) => placeOf({ ...rest, id: run_id })));
  const isKnown = open !== undefined && open.next_cursor === undefined;
  return (run) => !isKnown || asking.has(placeOf(run));
}

const placeOf = (run: Pick<UserRun, "tenant" | "user" | "thread_id" | "id">) =>
  JSON.stringify([run.tenant, run.user, run.thread_id, run.id]);

function WaitingRuns() {
  const words = adminTexts();
  return (
    <Listing<UserInterrupt>
      read={(cursor, signal) => client.admin.interrupts({ limit: LIMIT, cursor }, signal)}
      keyOf={({ run_id, id }) => `${run_id} ${id}`}
      empty={words.noneWaits}
      columns={[
        ...ownerColumns<UserInterrupt>(),
        { name: words.kind, cell: ({ kind }) => words.kinds[kind] },
        { name: words.tool, cell: ({ name }) => <Plain>{name}</Plain> },
        { name: words.since, cell: ({ created_at }) => <Time at={created_at} /> },
        { name: words.expires, cell: ({ expires_at }) => (expires_at ? <Time at={expires_at} /> : "–") },
      ]}
    />
  );
}

function Sandboxes() {
  const words = adminTexts();
  return (
    <Listing<Sandbox>
      read={(cursor, signal) => client.admin.sandboxes({ limit: LIMIT, cursor }, signal)}
      keyOf={({ id }) => id}
      empty={words.noSandboxes}
      columns={[
        ...ownerColumns<Sandbox>(),
        { name: words.backend, cell: ({ name }) => <Plain>{name}</Plain> },
        { name: words.state, cell: ({ state }) => words.states[state] },
        { name: words.engine, cell: ({ engine }) => <Plain>{engine}</Plain> },
        { name: words.used, cell: ({ used_at }) => <Time at={used_at} /> },
      ]}
    />
  );
}

function Usage() {
  const words = adminTexts();
  return (
    <>
      <p class="hint">{words.lastDays(30)}</p>
      <Listing<TenantUsage>
        read={(cursor, signal) => client.admin.usage({ limit: LIMIT, cursor, days: 30 }, signal)}
        keyOf={({ tenant }) => tenant}
        empty={words.noUsage}
        columns={[
          { name: words.tenant, cell: ({ tenant }) => <Plain>{tenant}</Plain> },
          { name: words.calls, isNumber: true, cell: ({ totals }) => number(totals.calls) },
          { name: words.tokensIn, isNumber: true, cell: ({ totals }) => number(totals.input_tokens) },
          { name: words.tokensOut, isNumber: true, cell: ({ totals }) => number(totals.output_tokens) },
          { name: words.cost, isNumber: true, cell: ({ totals }) => costOf(totals) },
          { name: words.limits, cell: ({ limits }) => limits.map(limitText).join(" · ") || "–" },
        ]}
      />
    </>
  );
}

function limitText({ limit, used, most }: TenantUsage["limits"][number]): string {
  const amount = limit.startsWith("cost") ? money : number;
  return adminTexts().limit(limit.replaceAll("_", " "), amount(used), amount(most));
}
