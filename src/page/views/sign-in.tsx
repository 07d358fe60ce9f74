// For who is not signed in: what the server asks for.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { SignInOptions } from "../../client/client.ts";
import { Action, Problem } from "../components.tsx";
import { useTouched } from "../frame.ts";
import { askMe, session, signIn, signInAt } from "../session.ts";

export function SignIn() {
  const { state, problem, options } = useTouched(session);
  return (
    <main class="sign-in">
      <h1>Skein</h1>
      {state === "unreachable" || !options ? <TryAgain /> : WAYS[options.auth](options)}
      <Problem>{problem}</Problem>
    </main>
  );
}

const WAYS: Readonly<Record<SignInOptions["auth"], (options: SignInOptions) => ComponentChildren>> = {
  none: () => <TryAgain />,
  api_key: () => <Key label="API key" placeholder="sk_…" />,
  jwt: ({ oidc }) =>
    oidc ? (
      <>
        <Action class="primary" onClick={() => signInAt(oidc)}>
          Sign in at {new URL(oidc.authorization_endpoint).host}
        </Action>
        <details>
          <summary>Use a token</summary>
          <Key label="Token" />
        </details>
      </>
    ) : (
      <Key label="Token" />
    ),
  plugin: () => <Key label="Token" />,
  header: () => (
    <>
      <p>
        People sign in at the gateway in front of this server. It has not said who you are: open the page at
        the gateway's address, or ask the operator.
      </p>
      <TryAgain />
    </>
  ),
};

function Key({ label, placeholder }: { label: string; placeholder?: string }) {
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    await signIn(key.trim());
    setBusy(false);
  };
  return (
    <form onSubmit={submit}>
      <label>
        {label}
        <input
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder={placeholder}
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary" disabled={isBusy || key.trim() === ""}>
        Sign in
      </button>
      <p class="hint">It stays in this tab, and is forgotten when you close it.</p>
    </form>
  );
}

const TryAgain = () => <Action onClick={askMe}>Try again</Action>;
