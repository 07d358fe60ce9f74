// The sign-in form, which asks for the credentials that the server requires.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { SignInOptions } from "../../client/client.ts";
import { Action, Problem, visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import { askMe, session, signIn, signInAt } from "../session.ts";
import { t } from "../texts.ts";
import { Mark } from "./mark.tsx";

export function SignIn() {
  const { state, problem, options } = useTouched(session);
  return (
    <main class="door">
      <div class="door-card">
        <h1 class="brand">
          <Mark /> Skein
        </h1>
        {state === "unreachable" || !options ? <TryAgain /> : WAYS[options.auth](options)}
        {options?.note && (
          <p class="operator" dir="auto">
            {visible(options.note)}
          </p>
        )}
        <Problem>{problem}</Problem>
      </div>
    </main>
  );
}

const WAYS: Readonly<Record<SignInOptions["auth"], (options: SignInOptions) => ComponentChildren>> = {
  none: () => <TryAgain />,
  api_key: () => <Key label={t().door.apiKey} placeholder="sk_…" origin={<KeyOrigin />} />,
  jwt: ({ oidc }) =>
    oidc ? (
      <>
        <Action class="primary" onClick={() => signInAt(oidc)}>
          {t().door.signInAt(new URL(oidc.authorization_endpoint).host)}
        </Action>
        <details>
          <summary>{t().door.useToken}</summary>
          <Key label={t().door.token} />
        </details>
      </>
    ) : (
      <Key label={t().door.token} origin={t().door.tokensAreGiven} />
    ),
  plugin: () => <Key label={t().door.token} origin={t().door.tokensAreGiven} />,
  header: () => (
    <>
      <p>{t().door.gateway}</p>
      <TryAgain />
    </>
  ),
};

function KeyOrigin() {
  const [made, ask] = t().door.keysAreMade;
  return (
    <>
      {made} <code>skein keys create</code>. {ask}
    </>
  );
}

interface KeyProps {
  readonly label: string;
  readonly placeholder?: string;
  /** Where users get a key or token. Undefined if the page offers another way to sign in, which then receives focus. */
  readonly origin?: ComponentChildren;
}

function Key({ label, placeholder, origin }: KeyProps) {
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const isFirst = origin !== undefined;
  useEffect(() => {
    if (isFirst) field.current?.focus();
  }, [isFirst]);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    await signIn(key.trim());
    setBusy(false);
    field.current?.select();
  };
  return (
    <form onSubmit={submit}>
      <label>
        {label}
        <input
          ref={field}
          type="password"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          placeholder={placeholder}
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary" disabled={isBusy || key.trim() === ""}>
        {t().door.signIn}
      </button>
      {origin && <p class="hint">{origin}</p>}
      <p class="hint">{t().door.staysInTabs}</p>
    </form>
  );
}

const TryAgain = () => <Action onClick={askMe}>{t().door.tryAgain}</Action>;
