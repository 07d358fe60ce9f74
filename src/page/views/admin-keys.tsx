// The API keys of users: create, show once, revoke.

import { useState } from "preact/hooks";
import type { ApiKey } from "../../client/client.ts";
import { Copy, Plain, Problem, Time } from "../components.tsx";
import { client, messageOf, session } from "../session.ts";
import { adminTexts } from "../texts/admin.ts";
import { Confirm } from "./confirm.tsx";
import { Listing, ownerColumns } from "./listing.tsx";

const LIMIT = 50;
const SCOPES = ["read", "run", "tools"] as const;

export function Keys() {
  const words = adminTexts();
  const [count, setCount] = useState(0);
  if (session.me?.auth !== "api_key") return <p class="empty">{words.noKeysHere}</p>;
  return (
    <>
      <NewKey onMade={() => setCount(count + 1)} />
      <Listing<ApiKey>
        of={[count]}
        read={(cursor, signal) => client.admin.keys({ limit: LIMIT, cursor }, signal)}
        keyOf={({ id }) => id}
        empty={words.noKeys}
        columns={[
          ...ownerColumns<ApiKey>(),
          { name: words.keyName, cell: ({ name }) => <Plain>{name || "–"}</Plain> },
          { name: words.scopes, cell: ({ scopes }) => scopes.join(", ") },
          { name: words.created, cell: ({ created_at }) => <Time at={created_at} /> },
          { name: words.state, cell: (key) => <State {...key} /> },
          {
            name: words.actions,
            cell: (key, reload) =>
              isOver(key) ? null : (
                <Confirm
                  question={words.revokeQuestion(key.user)}
                  verb={words.revoke}
                  label={words.revokeOf(key.name || key.id)}
                  onConfirm={async () => {
                    await client.admin.revokeKey(key.id);
                    reload();
                  }}
                >
                  {words.revoke}
                </Confirm>
              ),
          },
        ]}
      />
    </>
  );
}

const isOver = ({ revoked_at, expires_at }: ApiKey): boolean =>
  revoked_at !== undefined || (expires_at !== undefined && Date.parse(expires_at) <= Date.now());

function State(key: ApiKey) {
  const words = adminTexts();
  if (key.revoked_at) return <>{words.revoked}</>;
  if (!key.expires_at) return <>{words.valid}</>;
  return (
    <>
      {isOver(key) ? words.expired : words.validUntil} <Time at={key.expires_at} />
    </>
  );
}

function NewKey({ onMade }: { onMade: () => void }) {
  const words = adminTexts();
  const [user, setUser] = useState("");
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly (typeof SCOPES)[number][]>(["read", "run"]);
  const [made, setMade] = useState("");
  const [problem, setProblem] = useState("");
  const make = async (event: Event) => {
    event.preventDefault();
    setMade("");
    setProblem("");
    try {
      const { key } = await client.admin.createKey({
        user: user.trim(),
        name: name.trim(),
        scopes: [...scopes],
      });
      setMade(key);
      setUser("");
      setName("");
      onMade();
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <form class="filters" onSubmit={make}>
      <label>
        {words.user}
        <input value={user} required onInput={(event) => setUser(event.currentTarget.value)} />
      </label>
      <label>
        {words.keyName}
        <input value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <fieldset class="row">
        <legend class="unseen">{words.scopes}</legend>
        {SCOPES.map((each) => (
          <label key={each} class="check">
            <input
              type="checkbox"
              checked={scopes.includes(each)}
              onChange={({ currentTarget: { checked } }) =>
                setScopes(SCOPES.filter((scope) => (scope === each ? checked : scopes.includes(scope))))
              }
            />
            {each}
          </label>
        ))}
      </fieldset>
      <button type="submit" class="primary" disabled={user.trim() === "" || scopes.length === 0}>
        {words.makeKey}
      </button>
      <Problem>{problem}</Problem>
      {made && (
        <p role="status" class="row">
          <span>{words.shownOnce}</span> <code>{made}</code> <Copy text={() => made} />
        </p>
      )}
    </form>
  );
}
