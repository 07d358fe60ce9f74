// Settings: appearance, language, keys, notifications and the account.

import { useState } from "preact/hooks";
import { Time, visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import { areKeysOn, setKeys } from "../keys.ts";
import { language, languages, nameOf, setLanguage } from "../language.ts";
import { notifications, setNotifications } from "../notifications.ts";
import { session, signOut } from "../session.ts";
import { t } from "../texts.ts";
import { setTheme, THEMES, type Theme, theme } from "../theme.ts";
import { PageView } from "./page-view.tsx";

export const Settings = () => (
  <PageView title={t().settings.title}>
    <div class="settings">
      <Look />
      <LanguageChoice />
      <Keys />
      <Notices />
      <You />
    </div>
  </PageView>
);

function Look() {
  const [chosen, setChosen] = useState(theme());
  const choose = (name: Theme) => {
    setTheme(name);
    setChosen(name);
  };
  return (
    <fieldset>
      <legend>{t().settings.colours}</legend>
      <div class="row">
        {THEMES.map((name) => (
          <label key={name} class="check">
            <input type="radio" name="theme" checked={chosen === name} onChange={() => choose(name)} />
            {t().settings.looks[name]}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function LanguageChoice() {
  const { language: legend, asBrowser } = t().settings;
  return (
    <fieldset>
      <legend>{legend}</legend>
      <div class="row">
        {(["system", ...languages] as const).map((each) => (
          <label key={each} class="check">
            <input
              type="radio"
              name="language"
              checked={language() === each}
              onChange={() => setLanguage(each)}
            />
            {each === "system" ? asBrowser : <span lang={each}>{nameOf(each)}</span>}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function Keys() {
  const [isOn, setOn] = useState(areKeysOn());
  const change = (event: { currentTarget: HTMLInputElement }) => {
    setKeys(event.currentTarget.checked);
    setOn(event.currentTarget.checked);
  };
  return (
    <fieldset>
      <legend>{t().settings.keyboard}</legend>
      <label class="check">
        <input type="checkbox" checked={isOn} onChange={change} />
        {t().settings.keysOn}
      </label>
      {isOn && (
        <p class="hint">
          <kbd>?</kbd> {t().settings.keysListed}
        </p>
      )}
    </fieldset>
  );
}

function Notices() {
  const [state, setState] = useState(notifications());
  const words = t().notifications;
  const change = async (event: { currentTarget: HTMLInputElement }) => {
    await setNotifications(event.currentTarget.checked);
    setState(notifications());
  };
  const isPossible = state === "on" || state === "off";
  return (
    <fieldset>
      <legend>{words.title}</legend>
      <label class="check">
        <input type="checkbox" checked={state === "on"} disabled={!isPossible} onChange={change} />
        {words.tellMe}
      </label>
      {!isPossible && <p class="hint">{words[state]}</p>}
    </fieldset>
  );
}

function You() {
  const { me } = useTouched(session);
  if (!me) return null;
  const words = t().settings;
  return (
    <fieldset>
      <legend>{words.you}</legend>
      <table>
        <tbody>
          <tr>
            <th scope="row">{words.user}</th>
            <td>
              <bdi>{visible(me.user)}</bdi>
            </td>
          </tr>
          <tr>
            <th scope="row">{words.tenant}</th>
            <td>
              <bdi>{visible(me.tenant)}</bdi>
            </td>
          </tr>
          <tr>
            <th scope="row">{words.may}</th>
            <td>{me.scopes.map((scope) => words.scopes[scope]).join(", ") || words.nothing}</td>
          </tr>
          <tr>
            <th scope="row">{words.signedInBy}</th>
            <td>{words.schemes[me.auth]}</td>
          </tr>
          {me.expires_at && (
            <tr>
              <th scope="row">{words.expires}</th>
              <td>
                <Time at={me.expires_at} />
              </td>
            </tr>
          )}
        </tbody>
      </table>
      {["api_key", "jwt", "plugin"].includes(me.auth) && (
        <div class="row">
          <button type="button" onClick={signOut}>
            {words.signOut}
          </button>
        </div>
      )}
    </fieldset>
  );
}
