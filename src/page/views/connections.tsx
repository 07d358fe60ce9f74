// The connections of the user or of a tenant: the accounts and secrets that agents use. Their tokens can be set but are
// never shown.

import { Fragment } from "preact";
import { useState } from "preact/hooks";
import type { Connection } from "../../client/client.ts";
import { Empty, Plain, Problem, Time, useRead, visible } from "../components.tsx";
import { number } from "../numbers.ts";
import { connectionTexts } from "../texts/connections.ts";
import { Confirm } from "./confirm.tsx";
import { NewConnection } from "./connection-form.tsx";
import type { ConnectionMethods } from "./connection-methods.ts";
import { SignIn } from "./connection-sign-in.tsx";

/** The maximum number of connections to show. */
const MOST = 100;

export function Connections({ methods }: { methods: ConnectionMethods }) {
  const { value, problem, reload } = useRead((signal) => methods.list({ limit: MOST }, signal), []);
  const [notice, setNotice] = useState("");
  const words = connectionTexts();
  const ids = value?.items.map(({ id }) => id) ?? [];
  const changed = (said: string) => {
    setNotice(said);
    reload();
  };
  return (
    <section aria-label={words.title}>
      <h2>{words.title}</h2>
      <p class="note">{methods.isTenant ? words.aboutTenant : words.about}</p>
      <Problem>{problem}</Problem>
      <p role="status" class="notice">
        {notice}
      </p>
      {value?.items.length === 0 && <Empty>{words.empty}</Empty>}
      <div class="changes">
        {value?.items.map((each) => (
          <OneConnection key={each.id} connection={each} methods={methods} onChanged={changed} />
        ))}
      </div>
      {value?.next_cursor !== undefined && <Empty>{words.more(number(MOST))}</Empty>}
      <div class="offers">
        {methods.mayChange() &&
          value?.not_connected?.map(({ id, mcp_server_url }) => (
            <div key={id} class="row">
              <Plain>{id}</Plain> <span class="quiet">{visible(mcp_server_url)}</span>
              <SignIn id={id} verb={words.connect} methods={methods} onConnected={changed} />
            </div>
          ))}
      </div>
      {methods.mayChange() && <NewConnection ids={ids} methods={methods} onStored={changed} />}
    </section>
  );
}

interface OneProps {
  readonly connection: Connection;
  readonly methods: ConnectionMethods;
  /** Called with a description of what happened. */
  readonly onChanged: (said: string) => void;
}

function OneConnection({ connection, methods, onChanged }: OneProps) {
  const { id, ended, type } = connection;
  const words = connectionTexts();
  return (
    <details class="change">
      <summary>
        <Plain>{id}</Plain> <span class="quiet">{ended ? words.ended : words.connected}</span>
      </summary>
      <Facts connection={connection} />
      {ended && <p class="note">{words.connectAgain}</p>}
      {type === "mcp_oauth" && methods.mayChange() && (
        <SignIn id={id} verb={words.signInAgain} methods={methods} onConnected={onChanged} />
      )}
      {methods.mayChange() && (
        <Confirm
          class="danger"
          question={words.question(visible(id))}
          verb={words.disconnect}
          label={words.disconnectOf(id)}
          onConfirm={async () => {
            const { is_revoked } = await methods.delete(id);
            onChanged((is_revoked ? words.revoked : words.forgotten)(visible(id)));
          }}
        >
          {words.disconnect}
        </Confirm>
      )}
    </details>
  );
}

function Facts({ connection }: { connection: Connection }) {
  const { type, mcp_server_url, secret_name, networking, expires_at, refresh, ended } = connection;
  const { updated_at, last_used_at } = connection;
  const words = connectionTexts();
  const facts = [
    [words.type, words.types[type]],
    [words.server, mcp_server_url && <Plain>{mcp_server_url}</Plain>],
    [words.variable, secret_name && <Plain>{secret_name}</Plain>],
    [words.hosts, networking && hostsOf(networking)],
    [words.why, ended && visible(ended.reason)],
    [
      words.expires,
      expires_at && !ended && (
        <>
          <Time at={expires_at} />
          {refresh && words.thenRenewed}
        </>
      ),
    ],
    [words.changed, <Time key="changed" at={updated_at} />],
    [words.used, last_used_at && <Time at={last_used_at} />],
  ] as const;
  return (
    <dl class="facts">
      {facts.map(
        ([name, fact]) =>
          fact && (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd>{fact}</dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}

const hostsOf = (networking: NonNullable<Connection["networking"]>) =>
  networking.type === "limited" ? (
    <Plain>{networking.allowed_hosts.join(", ")}</Plain>
  ) : (
    connectionTexts().allHosts
  );
