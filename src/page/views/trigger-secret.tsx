// The secret of a trigger, which is shown once and can be replaced.

import { useState } from "preact/hooks";
import type { NewTrigger, Trigger } from "../../client/client.ts";
import { Action, Copy, Dialog } from "../components.tsx";
import { client } from "../session.ts";
import { triggerTexts } from "../texts/triggers.ts";
import { t } from "../texts.ts";
import { FieldsForm } from "./fields.tsx";
import { addressOf } from "./trigger-address.ts";

export function ShownOnce({ trigger, onClose }: { trigger: NewTrigger; onClose: () => void }) {
  const { url, secret } = trigger;
  const words = triggerTexts();
  return (
    <Dialog title={words.made} onClose={onClose}>
      <p>{words.address}</p>
      <p class="row">
        <code class="secret">{addressOf(url)}</code>
        <Copy text={() => addressOf(url)} label={words.copyAddress} />
      </p>
      {secret !== undefined && (
        <>
          <p>{words.shownOnce}</p>
          <p class="row">
            <code class="secret">{secret}</code>
            <Copy text={() => secret} />
          </p>
        </>
      )}
    </Dialog>
  );
}

/** Slack and Stripe create their secrets themselves. For all other senders, the server creates the secret. */
export function RotateSecret({ trigger, onChanged }: { trigger: Trigger; onChanged: () => void }) {
  const { id, verify } = trigger;
  const [isOpen, setOpen] = useState(false);
  const [made, setMade] = useState<NewTrigger>();
  const words = triggerTexts();
  const isOwn = verify.scheme === "slack" || verify.scheme === "stripe";
  const rotate = async (secret?: string) => {
    setMade(await client.triggers.rotate(id, secret === undefined ? {} : { secret }));
    setOpen(false);
    onChanged();
  };
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {words.rotate}
      </button>
      {isOpen && (
        <Dialog title={words.rotate} onClose={() => setOpen(false)}>
          <p>{words.rotateAbout}</p>
          {isOwn ? (
            <FieldsForm
              fields={[
                {
                  name: "secret",
                  title: words.secret,
                  description: words.ownSecret,
                  kind: "text",
                  required: true,
                },
              ]}
              values={{}}
              submit={t().shared.save}
              onSubmit={({ secret }) => rotate(String(secret))}
            />
          ) : (
            <p class="row">
              <Action class="primary" onClick={() => rotate()}>
                {words.rotate}
              </Action>
            </p>
          )}
        </Dialog>
      )}
      {made && <ShownOnce trigger={made} onClose={() => setMade(undefined)} />}
    </>
  );
}
